"""Launches: how long from the call to the device's start, and what the time between consists of.

latency = device start - start of the call = the call itself + queue wait + bare latency. Queue wait is
the time that the stream still worked on earlier work; only the bare latency is the launch path's own.
A launch whose work starts before its call is clock skew, and is left out of the statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index.build import Chains
from analyzer.index.vocabulary import Call
from analyzer.model import Column, Metric, Section, Table, Unit

ORDER = 30


@dataclass(frozen=True, slots=True)
class HostCall:
    """One runtime or driver function. Times in ns; `kind` as `vocabulary.Call`."""

    name: str
    kind: str
    calls: int
    total_ns: int
    median_ns: float
    max_ns: int


@dataclass(frozen=True, slots=True)
class Launches:
    linked: int
    unlinked: int
    ambiguous: int
    skewed: int
    count: int
    steps: int
    graph_launches: int
    call_ns: float | None
    latency_ns: float | None
    queue_ns: float | None
    bare_ns: float | None
    bare_max_ns: int | None
    calls: tuple[HostCall, ...]

    def contract(self) -> dict[str, Any]:
        return {
            "links": {
                "linked": self.linked,
                "unlinked": self.unlinked,
                "clock_skewed": self.skewed,
                "launches": self.count,
                "ambiguous": self.ambiguous,
            },
            "launches": {
                "count": self.count,
                "per_step": self.count / self.steps if self.steps else None,
                "graph_launches": self.graph_launches,
                "call_us_median": units.us(self.call_ns),
                "latency_us_median": units.us(self.latency_ns),
                "queue_wait_us_median": units.us(self.queue_ns),
                "bare_latency_us_median": units.us(self.bare_ns),
                "bare_latency_us_max": units.us(self.bare_max_ns),
            },
            "host_calls": [
                {
                    "name": c.name,
                    "kind": c.kind,
                    "calls": c.calls,
                    "total_us": units.us(c.total_ns),
                    "median_us": units.us(c.median_ns),
                    "max_us": units.us(c.max_ns),
                }
                for c in self.calls
            ],
        }

    def section(self, top: int) -> Section | None:
        if not self.calls:
            return None
        why = None if self.count else "no device work is linked to a call"
        metrics = (
            Metric("launches", self.count, Unit.COUNT),
            Metric("per step", self.count / self.steps if self.steps else None, Unit.COUNT),
            Metric("call", self.call_ns, Unit.NS, why or "median: the launch call itself"),
            Metric("queue wait", self.queue_ns, Unit.NS, why or "median: the stream was still busy"),
            Metric("bare latency", self.bare_ns, Unit.NS, why or "median: what is left, the launch path's own"),
        )
        table = Table(
            "Runtime and driver calls",
            (
                Column("call", Unit.NAME),
                Column("kind", Unit.TEXT),
                Column("calls", Unit.COUNT),
                Column("total", Unit.NS, bar=True),
                Column("median", Unit.NS),
                Column("max", Unit.NS),
            ),
            tuple((c.name, c.kind, c.calls, c.total_ns, c.median_ns, c.max_ns) for c in self.calls[:top]),
            hidden=max(0, len(self.calls) - top),
        )
        return Section("launches", "Launches and host calls", metrics=metrics, tables=(table,), detail=True)


def analyze(chains: Chains) -> Launches:
    rows = chains.launches
    launch = rows["launch"].to_numpy()
    begin, returned = chains.host.start[launch], chains.host.end[launch]
    work = rows["work_start"].to_numpy()
    frontier = rows["stream_frontier"].fill_null(np.iinfo(np.int64).min).to_numpy()
    causal = work >= begin
    call_done = np.minimum(returned, work)
    free = np.minimum(np.maximum(call_done, frontier), work)
    bare = (work - free)[causal]
    linked = int(chains.device["launch"].is_not_null().sum())
    return Launches(
        linked=linked,
        unlinked=chains.device.height - linked,
        ambiguous=chains.links.ambiguous,
        skewed=chains.skewed,
        count=rows.height,
        steps=len(chains.steps),
        graph_launches=int((chains.call == Call.GRAPH).sum()),
        call_ns=_median((returned - begin)[causal]),
        latency_ns=_median((work - begin)[causal]),
        queue_ns=_median((free - call_done)[causal]),
        bare_ns=_median(bare),
        bare_max_ns=int(bare.max()) if len(bare) else None,
        calls=_calls(chains),
    )


def _median(values: np.ndarray[Any, np.dtype[np.int64]]) -> float | None:
    return float(np.median(values)) if len(values) else None


def _calls(chains: Chains) -> tuple[HostCall, ...]:
    table = (
        chains.host.frame.select("name", "dur")
        .with_columns(kind=pl.Series(chains.call))
        .filter(pl.Series(chains.is_call))
        .group_by("name")
        .agg(
            kind=pl.col("kind").first(),
            calls=pl.len(),
            total=pl.col("dur").sum(),
            median=pl.col("dur").median(),
            longest=pl.col("dur").max(),
        )
        .sort(["total", "name"], descending=[True, False])
    )
    names = chains.text(table["name"])
    return tuple(
        HostCall(name, Call(kind).name.lower(), calls, total, median, longest)
        for name, (_, kind, calls, total, median, longest) in zip(names, table.iter_rows(), strict=True)
    )
