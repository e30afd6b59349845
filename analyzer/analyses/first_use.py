"""First calls that took far longer than the later ones, and what was inside them; loading of modules and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.index.build import Chains
from analyzer.index.vocabulary import Call
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, Text, column
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Rows

ORDER = 42

#: First calls that are taken apart, the longest first.
LISTED = 10
#: Host calls that a first call consists of, by class.
CALLS = {
    Call.LAUNCH: "launch calls",
    Call.ALLOCATE: "allocation",
    Call.OCCUPANCY: "occupancy queries",
    Call.ATTRIBUTE: "attribute queries",
    Call.LOAD: "module loading calls",
    Call.WAIT: "waits",
}


class Inside(Row, frozen=True, kw_only=True):
    """A part of a first call."""

    IDENTITY: ClassVar[str] = "what"

    what: Annotated[Text, column("what", "class of host calls, loading, the profiler's buffer request, or unrecorded")]
    count: Annotated[Count | None, column("calls", "host calls; null: not told by calls")]
    ns: Annotated[Ns, column("time", "host time")]


class FirstCall(Row, frozen=True, kw_only=True):
    """An operator's first call."""

    name: Annotated[Name, column("operator", "as the profiler wrote it")]
    ns: Annotated[Ns, column("first", "host time of the first call")]
    later_ns_median: Annotated[MeanNs | None, column("later", "median of its later calls; null: none")]
    inside: Annotated[tuple[Inside, ...], column("", "what it consists of, the longest first")]


class FirstUses(Row, frozen=True, kw_only=True):
    calls: Annotated[tuple[FirstCall, ...], column("", "the longest first; at most 10")]
    loading_events: Annotated[Count, column("loading events", "of modules and functions, as the profiler marks them")]
    loading_ns: Annotated[Ns, column("loading", "host time of these")]
    profiler_started: Annotated[
        bool, column("", "it requested buffers, and no first call loaded or allocated: it was the profiler's own start")
    ]


class FirstUse(Result, frozen=True, kw_only=True):
    first_use: FirstUses


def analyze(chains: Chains) -> FirstUse:
    excess = chains.threads.first_use
    rows = np.nonzero(excess > 0)[0].astype(np.int32)
    rows = rows[np.argsort(-(excess * chains.host.own_ns)[rows])]
    # An operator around another first call only passes that one's time on.
    rows = rows[chains.host.own_ns[rows] * 2 > (chains.host.end - chains.host.start)[rows]]
    loading = chains.profiler.events.filter(~pl.col("profiler"))
    return FirstUse(
        first_use=FirstUses(
            calls=tuple(_call(chains, int(row)) for row in rows[:LISTED]),
            loading_events=loading.height,
            loading_ns=int((loading["end"] - loading["ts"]).sum()),
            profiler_started=_profiler_started(chains, rows),
        )
    )


def _profiler_started(chains: Chains, rows: Rows) -> bool:
    if not chains.profiler.events["profiler"].any() or not chains.profiler.events["profiler"].all():
        return False
    loads = np.isin(chains.host.call, (Call.ALLOCATE, Call.LOAD)).astype(np.int64)
    return not (chains.host.below(loads)[rows] > 0).any()


def _call(chains: Chains, row: int) -> FirstCall:
    host = chains.host
    later = np.nonzero((host.name == host.name[row]) & ~chains.host.is_call)[0]
    later = later[later != row]
    took = int(host.end[row] - host.start[row])
    return FirstCall(
        name=str(chains.trace.names[int(host.name[row])]),
        ns=took,
        later_ns_median=float(np.median((host.end - host.start)[later])) if len(later) else None,
        inside=tuple(sorted(_inside(chains, row, took), key=lambda part: -part.ns)),
    )


def _inside(chains: Chains, row: int, took: int) -> list[Inside]:
    """Host calls by class, the profiler, loading, and the rest; loading lies in what other parts count, too."""
    host = chains.host
    rows = slice(row, int(host.last[row]))
    call, own, is_call = chains.host.call[rows], host.self_ns[rows], chains.host.is_call[rows]
    parts = []
    for kind, word in CALLS.items():
        mine = is_call & (call == kind)
        if mine.any():
            parts.append(Inside(what=word, count=int(mine.sum()), ns=int(own[mine].sum())))
    profiler = int(chains.profiler_ns[rows].sum())
    rest = took - sum(part.ns for part in parts) - profiler
    if profiler:
        parts.append(Inside(what="the profiler's buffer request", count=None, ns=profiler))
    loading = chains.profiler.events.filter(
        ~pl.col("profiler") & (pl.col("host") >= row) & (pl.col("host") < host.last[row])
    )
    if loading.height:
        ns = int((loading["end"] - loading["ts"]).sum())
        parts.append(Inside(what="module and function loading", count=None, ns=ns))
    parts.append(Inside(what="inside the operator and its libraries, unrecorded", count=None, ns=rest))
    return parts
