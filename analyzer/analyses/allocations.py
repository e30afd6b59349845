"""Calls that fetch device memory from the driver and give it back, outside of first calls."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.index import exposure
from analyzer.index.build import Call, Chains
from analyzer.index.vocabulary import matches
from analyzer.report.columns import Count, Name, Ns, Row, Share, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

ORDER = 76

#: Operators that are listed, the most calls first.
LISTED = 10


class AllocatingOperator(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("operator", "operator or annotation that made the calls")]
    calls: Annotated[Count, column("calls", "of the driver's memory manager")]


class Traffic(Row, frozen=True, kw_only=True):
    """A first call fills the cache and finds its workspace: that is first use, and left out."""

    IDENTITY: ClassVar[str] = "late_share"

    allocating: Annotated[Durations | None, column("", "calls that allocate; null: none")]
    freeing: Annotated[Durations | None, column("", "calls that free; null: none")]
    late_share: Annotated[Share | None, column("late", "of their time in the window's second half; null: no calls")]
    exposed_ns: Annotated[Ns, column("exposed", "of their time, what the device waited for, each moment once")]
    operators: Annotated[tuple[AllocatingOperator, ...], column("", "who made them; at most 10")]


class Allocations(Result, frozen=True, kw_only=True):
    allocations: Traffic


def analyze(chains: Chains) -> Allocations:
    host, window = chains.host, chains.window
    cold = host.nearest(chains.threads.first_use > 0) >= 0
    rows = np.nonzero((chains.host.call == Call.ALLOCATE) & ~cold)[0]
    frees = matches(chains.trace.names, r"(?i)free|unmap|release|unregister")[host.name[rows]]
    length = (host.end - host.start)[rows]
    late = host.start[rows] > (window.start + window.duration // 2 if window else 0)
    total = int(length.sum())
    return Allocations(
        allocations=Traffic(
            allocating=Durations.of(pl.Series(length[~frees])),
            freeing=Durations.of(pl.Series(length[frees])),
            late_share=int(length[late].sum()) / total if total else None,
            exposed_ns=exposure.waited(chains, rows),
            operators=_operators(chains, rows),
        )
    )


def _operators(chains: Chains, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[AllocatingOperator, ...]:
    holders = chains.host.holder[rows]
    counted = (
        pl.DataFrame({"name": chains.host.name[holders[holders >= 0]]})
        .group_by("name")
        .len("calls")
        .sort("calls", "name", descending=[True, False])
        .head(LISTED)
    )
    return tuple(
        AllocatingOperator(name=name, calls=calls)
        for name, calls in zip(chains.trace.text(counted["name"]), counted["calls"], strict=True)
    )
