"""Annotations: per call, the host's time, the device's, and what bounds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.index.bound import Verdict
from analyzer.index.build import Chains
from analyzer.index.intervals import spread
from analyzer.index.vocabulary import Role
from analyzer.index.within import launched_in, work_of
from analyzer.model import Column, Section, Table, Unit

ORDER = 25

#: Verdicts are given to the annotations that take the most host time: beyond that many they are noise.
JUDGED = 64


@dataclass(frozen=True, slots=True)
class Annotation:
    """All calls of one annotation; medians per call, times in ns.

    tax_ns     host time less blocking waits and the profiler's time.
    *_spread   robust standard deviation over the calls.
    """

    name: str
    calls: int
    cpu_total_ns: int
    self_cpu_ns: int
    cpu_ns: float
    cpu_spread_ns: float
    cpu_max_ns: int
    tax_ns: float
    device_ns: float
    device_spread_ns: float
    device_max_ns: int
    events: float
    kernels: float
    copies: float
    fills: float
    launches: float
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class Annotations:
    rows: tuple[Annotation, ...]

    def contract(self) -> dict[str, Any]:
        return {
            "annotations": [
                {
                    "name": a.name,
                    "calls": a.calls,
                    "cpu_us_median": units.us(a.cpu_ns),
                    "cpu_us_spread": units.us(a.cpu_spread_ns),
                    "cpu_us_max": units.us(a.cpu_max_ns),
                    "tax_us_median": units.us(a.tax_ns),
                    "cpu_us": units.us(a.cpu_total_ns),
                    "self_cpu_us": units.us(a.self_cpu_ns),
                    "device_us_median": units.us(a.device_ns),
                    "device_us_spread": units.us(a.device_spread_ns),
                    "device_us_max": units.us(a.device_max_ns),
                    "device_events_median": a.events,
                    "kernels_median": a.kernels,
                    "copies_median": a.copies,
                    "memsets_median": a.fills,
                    "launches_median": a.launches,
                    "verdict": a.verdict.bound if a.verdict else None,
                    "verdict_reason": a.verdict.reason if a.verdict else None,
                }
                for a in self.rows
            ],
        }

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return None
        table = Table(
            "Annotations",
            (
                Column("annotation", Unit.NAME),
                Column("calls", Unit.COUNT),
                Column("CPU", Unit.NS),
                Column("max", Unit.NS),
                Column("device", Unit.NS),
                Column("events", Unit.COUNT),
                Column("launches", Unit.COUNT),
                Column("verdict", Unit.TEXT),
            ),
            tuple(
                (
                    a.name,
                    a.calls,
                    a.cpu_ns,
                    a.cpu_max_ns,
                    a.device_ns,
                    a.events,
                    a.launches,
                    a.verdict.bound if a.verdict else "no device work",
                )
                for a in self.rows[:top]
            ),
            hidden=max(0, len(self.rows) - top),
            note="medians per call, with the CPU's max",
        )
        return Section("annotations", "Annotations", tables=(table,))


def analyze(chains: Chains) -> Annotations:
    host = chains.host
    name = host.name
    mine = (chains.cat == Cat.ANNOTATION) & (chains.role != Role.STEP)
    outermost = host.outermost(np.where(mine, name, -1 - np.arange(host.height)).astype(np.int64))
    rows = np.nonzero(mine & outermost)[0]
    work = work_of(chains, rows)
    table = (
        pl.DataFrame(
            {
                "name": name[rows],
                "row": rows,
                "cpu": host.end[rows] - host.start[rows],
                "own": host.self_ns[rows],
                "tax": np.maximum(
                    (host.end - host.start - host.below(chains.wait_ns) - host.below(chains.profiler_ns))[rows], 0
                ),
                "device": work.device_ns,
                "events": work.events,
                "kernels": work.kernels,
                "copies": work.copies,
                "fills": work.fills,
                "launches": work.launches,
            }
        )
        .group_by("name")
        .agg(
            calls=pl.len(),
            cpu_total_ns=pl.col("cpu").sum(),
            self_cpu_ns=pl.col("own").sum(),
            cpu_ns=pl.col("cpu").median(),
            cpu_spread_ns=spread("cpu"),
            cpu_max_ns=pl.col("cpu").max(),
            tax_ns=pl.col("tax").median(),
            device_ns=pl.col("device").median(),
            device_spread_ns=spread("device"),
            device_max_ns=pl.col("device").max(),
            events=pl.col("events").median(),
            kernels=pl.col("kernels").median(),
            copies=pl.col("copies").median(),
            fills=pl.col("fills").median(),
            launches=pl.col("launches").median(),
            rows=pl.col("row"),
        )
        .sort(["cpu_total_ns", "name"], descending=[True, False])
    )
    names = chains.text(table["name"])
    out = []
    for rank, (text, calls) in enumerate(zip(names, table["rows"], strict=True)):
        judged = rank < JUDGED and chains.device.height > 0
        figures = table.drop("name", "rows").row(rank, named=True)
        out.append(Annotation(name=text, verdict=_verdict(chains, calls.to_numpy()) if judged else None, **figures))
    return Annotations(tuple(out))


def _verdict(chains: Chains, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Verdict | None:
    """Bound of the work launched in some annotations, with the idle time that its launches ended."""
    mine = launched_in(chains, rows)
    if not mine.any():
        return None
    gaps = np.nonzero(mine[chains.gaps["after"].to_numpy()])[0]
    pieces = chains.gap_pieces.filter(pl.col("gap").is_in(gaps))
    return chains.judge(chains.device.filter(pl.Series(mine)), pieces)
