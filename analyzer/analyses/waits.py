"""Blocking waits: where the host stood still for the device, by call and by the operator that asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index.build import Chains
from analyzer.model import Column, Section, Table, Unit

ORDER = 45


@dataclass(frozen=True, slots=True)
class Wait:
    """One kind of wait: the call, the path of operators and annotations above it, times in ns."""

    call: str
    path: tuple[str, ...]
    count: int
    total_ns: int
    median_ns: float
    max_ns: int

    @property
    def operator(self) -> str | None:
        return self.path[-1] if self.path else None


@dataclass(frozen=True, slots=True)
class Waits:
    rows: tuple[Wait, ...]
    count: int
    total_ns: int
    steps: int

    def contract(self) -> dict[str, Any]:
        return {
            "waits": {
                "count": self.count,
                "per_step": self.count / self.steps if self.steps else None,
                "total_us": units.us(self.total_ns),
                "by_operator": [
                    {
                        "call": w.call,
                        "operator": w.operator,
                        "path": list(w.path),
                        "count": w.count,
                        "total_us": units.us(w.total_ns),
                        "median_us": units.us(w.median_ns),
                        "max_us": units.us(w.max_ns),
                    }
                    for w in self.rows
                ],
            }
        }

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return None
        per_step = f", {units.count(self.count / self.steps)} a step" if self.steps else ""
        table = Table(
            "Blocking waits",
            (
                Column("call", Unit.NAME),
                Column("inside", Unit.NAME),
                Column("count", Unit.COUNT),
                Column("host held", Unit.NS, bar=True),
                Column("median", Unit.NS),
                Column("max", Unit.NS),
            ),
            tuple(
                (
                    w.call,
                    " > ".join(w.path[-3:]) or "(no operator)",
                    w.count,
                    w.total_ns,
                    w.median_ns,
                    w.max_ns,
                )
                for w in self.rows[:top]
            ),
            hidden=max(0, len(self.rows) - top),
            note=f"{units.count(self.count)} waits hold the host for {units.duration(self.total_ns)}{per_step}; "
            "a wait is rarely idle time itself: it keeps the host from running ahead",
        )
        return Section("waits", "Blocking waits", tables=(table,), detail=True)


def analyze(chains: Chains) -> Waits:
    """A final synchronize that the profiler flushes with is not the run's, and is left out."""
    host, wait = chains.host, chains.wait_ns
    end = chains.window.end if chains.window else 0
    rows = np.nonzero((wait > 0) & (host.start < end))[0]
    holder = chains.holder[rows]
    frame = pl.DataFrame(
        {
            "call": host.name[rows],
            "holder": holder,
            "place": np.where(holder >= 0, chains.path_id[holder], -1),
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
    calls = chains.text(grouped["call"])
    return Waits(
        rows=tuple(
            Wait(call, chains.path(r["holder"]), r["count"], r["total"], r["median"], r["longest"])
            for call, r in zip(calls, grouped.iter_rows(named=True), strict=True)
        ),
        count=len(rows),
        total_ns=int(wait[rows].sum()),
        steps=len(chains.steps),
    )
