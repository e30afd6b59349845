"""A `Trace` as plain rows, and how they are held against the oracle's."""

from __future__ import annotations

import io
import json
import sys
from typing import Any
from unittest import mock

from analyzer.events.schema import Trace
from analyzer.sources.kineto.read import Reading, read
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Source
from tests.sources.oracle import Facts


def read_bytes(text: bytes, **options: Any) -> Trace:
    """Read text as if it came down a pipe."""
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(text))):
        return read("-", **options)


def read_in_blocks(text: bytes, *, block: int, chunk: int, jobs: int = 1) -> Trace:
    """Read text in blocks and chunks of a size; with `jobs`, by workers from the first byte on."""
    notes = Notes()
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(text))),
        Source("-", notes) as source,
    ):
        return Reading(source, notes, jobs=jobs, block=block, chunk=chunk, small=-1, head=64).run()


def host_rows(trace: Trace) -> list[tuple[Any, ...]]:
    names, threads = trace.names.to_list(), trace.threads.select("pid", "tid").rows()
    inputs = [tuple(None if v is None else json.loads(v) for v in row) for row in trace.inputs.rows()]
    collectives = trace.collectives.rows()
    return [
        (row["cat"], names[row["name"]], *threads[row["thread"]], row["ts"], row["dur"], row["correlation"],
         json.loads(names[row["shapes"]]) if row["shapes"] >= 0 else None, _at(inputs, row["inputs"]),
         _at(collectives, row["collective"]), row["seq"], row["fwd_thread"])
        for row in trace.host.iter_rows(named=True)
    ]  # fmt: skip


def device_rows(trace: Trace) -> list[tuple[Any, ...]]:
    names, threads = trace.names.to_list(), trace.threads.select("pid", "tid").rows()
    configs, collectives = trace.configs.rows(), trace.collectives.rows()
    return [
        (row["cat"], names[row["name"]], *threads[row["thread"]], row["device"], row["stream"], row["ts"], row["dur"],
         row["correlation"], _at(configs, row["config"]), row["bytes"], _at(collectives, row["collective"]))
        for row in trace.device.iter_rows(named=True)
    ]  # fmt: skip


def _at(rows: list[Any], row: int) -> Any:
    return rows[row] if row >= 0 else None


def differences(trace: Trace, want: Facts) -> list[str]:
    """What differs, in words; empty where nothing does."""
    count = {w.code: w.count or 0 for w in trace.warnings}
    out = []
    for what, got, expected in (
        ("events", trace.events, want.events),
        ("complete events", trace.complete_events, want.complete),
        ("bad durations", count.get("bad-duration", 0), want.bad_durations),
        ("bad times", count.get("bad-timestamp", 0), want.bad_times),
        ("base", trace.base_ns, want.base_ns + want.first_ns),
        ("damaged events", trace.damaged_events, 0),
        ("truncated", trace.truncated_at_byte, None),
    ):
        if got != expected:
            out.append(f"{what}: {got}, expected {expected}")
    for what, rows, wanted in (
        ("host", host_rows(trace), want.host),
        ("device", device_rows(trace), want.device),
        ("memory", trace.memory.rows(), want.memory),
    ):
        if rows != wanted:
            first = next((i for i, (a, b) in enumerate(zip(rows, wanted, strict=False)) if a != b), None)
            out.append(f"{what}: {len(rows)} rows, expected {len(wanted)}")
            if first is not None:
                out.append(f"  row {first}: {rows[first]}, expected {wanted[first]}")
    return out


def same(one: Trace, other: Trace) -> bool:
    """Are two traces equal in everything, positions of names included?"""
    frames = ("threads", "configs", "inputs", "collectives", "host", "device", "memory")
    return (
        all(getattr(one, f).equals(getattr(other, f), null_equal=True) for f in frames)
        and one.names.equals(other.names)
        and (one.events, one.complete_events, one.damaged_events, one.truncated_at_byte, one.base_ns, one.bytes)
        == (
            other.events,
            other.complete_events,
            other.damaged_events,
            other.truncated_at_byte,
            other.base_ns,
            other.bytes,
        )
        and one.warnings == other.warnings
        and one.header == other.header
    )
