"""Blocking waits: where the host stood still for the device, by call and by the operator that asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index.build import Chains
from analyzer.report.blocks import Block, cells, table
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ns, Row, Unit, column
from analyzer.report.results import Result

ORDER = 45


class Wait(Row, frozen=True, kw_only=True):
    """Waits in one kind of call, under one path."""

    IDENTITY: ClassVar[str] = "operator"

    call: Annotated[Name, column("call", "of the runtime or driver")]
    operator: Annotated[Name | None, column("", "innermost operator or annotation around it; null: none")]
    path: Annotated[tuple[str, ...], column("", "annotations and operators around it, outermost first")]
    count: Annotated[Count, column("count", "waits")]
    total_ns: Annotated[Ns, column("host held", "sum of the host's time in them", bar=True)]
    median_ns: Annotated[MeanNs, column("median", "median wait")]
    max_ns: Annotated[Ns, column("max", "longest wait")]


class BlockingWaits(Row, frozen=True, kw_only=True):
    """All waits that began in the window, and what asked for them."""

    count: Annotated[Count, column("", "waits")]
    per_step: Annotated[MeanCount | None, column("", "waits by profiler steps; null: no steps")]
    total_ns: Annotated[Ns, column("", "sum of the host's time in them")]
    by_operator: tuple[Wait, ...]  # largest total first


class Waits(Result, frozen=True, kw_only=True):
    SECTION = "waits"
    TITLE = "Blocking waits"
    DETAIL = True

    waits: BlockingWaits

    def blocks(self) -> Iterator[Block]:
        w = self.waits
        if not w.by_operator:
            return
        per_step = "" if w.per_step is None else f", {units.count(w.per_step)} a step"
        yield table(
            "Blocking waits",
            Wait,
            w.by_operator,
            "call",
            cells("inside", Unit.NAME, lambda row: " > ".join(row.path[-3:]) or "(no operator)"),
            "count",
            "total_ns",
            "median_ns",
            "max_ns",
            note=f"{units.count(w.count)} waits hold the host for {units.duration(w.total_ns)}{per_step}; "
            "a wait is rarely idle time itself: it keeps the host from running ahead",
        )


def analyze(chains: Chains) -> Waits:
    """Those of the window: a final synchronize that the profiler flushes with is not the run's."""
    host, wait = chains.host, chains.waits.ns
    rows, window = chains.waits.rows, chains.window
    rows = rows[(host.end[rows] > window.start) & (host.start[rows] < window.end)] if window else rows[:0]
    holder = chains.host.holder[rows]
    frame = pl.DataFrame(
        {
            "call": host.name[rows],
            "holder": holder,
            "place": np.where(holder >= 0, chains.places.path_id[holder], -1),
            "ns": wait[rows],
        }
    )
    grouped = (
        frame.group_by("call", "place")
        .agg(
            holder=pl.col("holder").first(),
            count=pl.len(),
            total=pl.col("ns").sum(),
            median=pl.col("ns").median(),
            longest=pl.col("ns").max(),
        )
        .sort(["total", "holder"], descending=[True, False])
    )
    calls = chains.trace.text(grouped["call"])
    steps = len(chains.host.steps)
    by_operator = []
    for call, r in zip(calls, grouped.iter_rows(named=True), strict=True):
        path = chains.places.path(r["holder"])
        by_operator.append(
            Wait(
                call=call,
                operator=path[-1] if path else None,
                path=path,
                count=r["count"],
                total_ns=r["total"],
                median_ns=r["median"],
                max_ns=r["longest"],
            )
        )
    return Waits(
        waits=BlockingWaits(
            count=len(rows),
            per_step=len(rows) / steps if steps else None,
            total_ns=int(wait[rows].sum()),
            by_operator=tuple(by_operator),
        )
    )
