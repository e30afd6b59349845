"""What a file is, before any judgement: header, producer, devices, counts, what was recorded."""

from __future__ import annotations

from typing import Any

import polars as pl

from analyzer import units
from analyzer.events import select
from analyzer.events.schema import Cat, Trace
from analyzer.index.build import build
from analyzer.model import SCHEMA_VERSION, Column, Headline, Metric, Report, Section, Table, Unit, Value

#: Flags that the profiler writes when it was asked for more, and what they cost.
_FLAGS = (
    ("with_stack", "Python stacks", "inflates CPU times"),
    ("record_shapes", "input shapes", "inflates CPU times a little"),
    ("profile_memory", "memory instants", "inflates CPU times a little"),
    ("with_modules", "module hierarchy", None),
    ("with_flops", "FLOP estimates", None),
)
_VERSIONS = (
    "cuda_runtime_version",
    "cuda_driver_version",
    "cupti_version",
    "hip_runtime_version",
    "hip_driver_version",
)


def describe(trace: Trace) -> Report:
    """A report with no analysis in it."""
    chains = build(trace)
    header, window = trace.header, chains.window
    linked = int(chains.device["launch"].is_not_null().sum())
    work = chains.device.height
    steps = select.step_names(trace)
    facts: dict[str, tuple[Value, Unit, str | None]] = {
        "format": (trace.format, Unit.TEXT, None),
        "text": (trace.bytes, Unit.BYTES, "uncompressed"),
        "producer": (header.producer, Unit.TEXT, None),
        "window": (window.duration if window else None, Unit.NS, None if window else "no events"),
        "steps": (len(steps), Unit.COUNT, f"{steps[0]} to {steps[-1]}" if steps else "no profiler steps were marked"),
        "rank": (_text(header.distributed.get("rank")), Unit.TEXT, None),
        "world size": (_text(header.distributed.get("world_size")), Unit.TEXT, None),
        "threads": (int(chains.host.frame["thread"].n_unique()), Unit.COUNT, "with host events"),
        "events": (trace.events, Unit.COUNT, None),
        "complete events": (trace.complete_events, Unit.COUNT, None),
        "damaged events": (trace.damaged_events, Unit.COUNT, None),
        "linked": (linked / work if work else None, Unit.SHARE, None if work else "no device work"),
    }
    facts |= {key: (_text(header.extra[key]), Unit.TEXT, None) for key in _VERSIONS if key in header.extra}
    facts |= {
        title: (
            "recorded" if header.extra.get(flag) else "not recorded",
            Unit.TEXT,
            cost if header.extra.get(flag) else None,
        )
        for flag, title, cost in _FLAGS
    }
    section = Section(
        "info",
        "What the file is",
        metrics=tuple(Metric(title, value, unit, note) for title, (value, unit, note) in facts.items()),
    )
    counts = _counts(trace)
    table = Table(
        "Events that are read",
        (Column("category", Unit.TEXT), Column("events", Unit.COUNT, bar=True)),
        tuple(counts.items()),
    )
    contract: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "info": {title.replace(" ", "_"): value for title, (value, _, _) in facts.items()},
        "categories": counts,
        "devices": [dict(d) for d in header.devices],
        "warnings": [{"code": w.code, "message": w.message} for w in trace.warnings],
    }
    devices = sorted({str(d["name"]) for d in header.devices if d.get("name")})
    headline = Headline(
        source=(trace.path.replace("\\", "/").rpartition("/")[2], ", ".join(devices) or header.producer),
        bound="info",
        reason=f"{units.plural(trace.events, 'event')}, {units.plural(work, 'device event')}",
        strips=(),
        trust=(),
        path=trace.path,
    )
    kinds = Section("events", "Events", tables=(table,))
    return Report(contract, headline, (section, kinds), (), (*trace.warnings, *chains.warnings))


def _counts(trace: Trace) -> dict[str, int]:
    both = pl.concat([trace.host.select("cat"), trace.device.select("cat")])
    counts = both["cat"].value_counts().sort("count", descending=True)
    return {Cat(cat).name.lower(): count for cat, count in counts.iter_rows()}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
