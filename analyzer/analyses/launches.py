"""Launches: how long from the call to the device's start, and what the time between consists of.

latency = device start - start of the call = the call itself + queue wait + bare latency. Queue wait is
the time that the stream still worked on earlier work; only the bare latency is the launch path's own.
A launch whose work starts before its call is clock skew, and is left out of the statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import numpy as np
import polars as pl

from analyzer.index.build import Chains
from analyzer.index.vocabulary import Call
from analyzer.report.blocks import Block, metric, table
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ns, Row, Text, column
from analyzer.report.results import Result

ORDER = 30


class HostCall(Row, frozen=True, kw_only=True):
    """One runtime or driver function."""

    name: Annotated[Name, column("call", "the function")]
    kind: Annotated[
        Text,
        msgspec.Meta(extra_json_schema={"enum": [kind.name.lower() for kind in Call]}),
        column("kind", "what the function does, by its name"),
    ]
    calls: Annotated[Count, column("calls", "how often it was called")]
    total_ns: Annotated[Ns, column("total", "sum of the durations", bar=True)]
    median_ns: Annotated[MeanNs, column("median", "duration")]
    max_ns: Annotated[Ns, column("max", "duration of the longest call")]


class LinkCounts(Row, frozen=True, kw_only=True):
    """How much device work is linked to the call that launched it."""

    linked: Annotated[Count, column("linked", "device events with a call of the same correlation in the same process")]
    unlinked: Annotated[Count, column("unlinked", "device events without")]
    clock_skewed: Annotated[Count, column("clock skewed", "linked device events that start before their call")]
    launches: Annotated[Count, column("launches", "calls that launched device work; a graph launch is one")]
    ambiguous: Annotated[
        Count, column("ambiguous", "of the unlinked, those whose correlation calls of several processes have")
    ]


class LaunchTimes(Row, frozen=True, kw_only=True):
    """From the call to the device's start; clock skew left out of the times, which are null without linked work."""

    count: Annotated[Count, column("launches", "calls that launched device work; a graph launch is one")]
    per_step: Annotated[MeanCount | None, column("per step", "launches by steps; null: no steps")]
    graph_launches: Annotated[Count, column("graph launches", "calls that launch a graph, linked or not")]
    call_ns_median: Annotated[MeanNs | None, column("call", "the launch call itself")]
    latency_ns_median: Annotated[MeanNs | None, column("latency", "from the start of the call to the work's start")]
    queue_wait_ns_median: Annotated[MeanNs | None, column("queue wait", "of it, the stream was still busy")]
    bare_latency_ns_median: Annotated[
        MeanNs | None, column("bare latency", "what is left of the latency, the launch path's own")
    ]
    bare_latency_ns_max: Annotated[Ns | None, column("longest bare latency", "the launch path's own time at worst")]


class Launches(Result, frozen=True, kw_only=True):
    SECTION = "launches"
    TITLE = "Launches and host calls"
    DETAIL = True

    links: LinkCounts
    launches: LaunchTimes
    host_calls: tuple[HostCall, ...]

    def blocks(self) -> Iterator[Block]:
        if not self.host_calls:
            return
        why = None if self.launches.count else "no device work is linked to a call"
        yield metric(self.launches, "count")
        yield metric(self.launches, "per_step")
        yield metric(self.launches, "call_ns_median", why or "median: the launch call itself")
        yield metric(self.launches, "queue_wait_ns_median", why or "median: the stream was still busy")
        yield metric(self.launches, "bare_latency_ns_median", why or "median: what is left, the launch path's own")
        yield table(
            "Runtime and driver calls",
            HostCall,
            self.host_calls,
            "name",
            "kind",
            "calls",
            "total_ns",
            "median_ns",
            "max_ns",
        )


def analyze(chains: Chains) -> Launches:
    rows = chains.device.launches
    launch = rows["launch"].to_numpy()
    begin, returned = chains.host.start[launch], chains.host.end[launch]
    work = rows["work_start"].to_numpy()
    frontier = rows["stream_frontier"].fill_null(np.iinfo(np.int64).min).to_numpy()
    causal = work >= begin
    call_done = np.minimum(returned, work)
    free = np.minimum(np.maximum(call_done, frontier), work)
    bare = (work - free)[causal]
    linked = int(chains.device.frame["launch"].is_not_null().sum())
    return Launches(
        links=LinkCounts(
            linked=linked,
            unlinked=chains.device.frame.height - linked,
            clock_skewed=chains.device.skewed,
            launches=rows.height,
            ambiguous=chains.device.links.ambiguous,
        ),
        launches=LaunchTimes(
            count=rows.height,
            per_step=rows.height / len(chains.host.steps) if len(chains.host.steps) else None,
            graph_launches=int((chains.host.call == Call.GRAPH).sum()),
            call_ns_median=_median((returned - begin)[causal]),
            latency_ns_median=_median((work - begin)[causal]),
            queue_wait_ns_median=_median((free - call_done)[causal]),
            bare_latency_ns_median=_median(bare),
            bare_latency_ns_max=int(bare.max()) if len(bare) else None,
        ),
        host_calls=_calls(chains),
    )


def _median(values: np.ndarray[Any, np.dtype[np.int64]]) -> float | None:
    return float(np.median(values)) if len(values) else None


def _calls(chains: Chains) -> tuple[HostCall, ...]:
    functions = (
        chains.host.frame.select("name", "dur")
        .with_columns(kind=pl.Series(chains.host.call))
        .filter(pl.Series(chains.host.is_call))
        .group_by("name")
        .agg(
            kind=pl.col("kind").first(),
            calls=pl.len(),
            total_ns=pl.col("dur").sum(),
            median_ns=pl.col("dur").median(),
            max_ns=pl.col("dur").max(),
        )
        .sort(["total_ns", "name"], descending=[True, False])
    )
    names = chains.trace.text(functions["name"])
    return tuple(
        HostCall(name=name, kind=Call(row.pop("kind")).name.lower(), **row)
        for name, row in zip(names, functions.drop("name").iter_rows(named=True), strict=True)
    )
