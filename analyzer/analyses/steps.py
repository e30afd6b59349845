"""The profiler's steps: the host's time, and the device work that was launched in each."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index.build import Chains
from analyzer.index.within import processes, work_of
from analyzer.model import Column, Section, Table, Unit

ORDER = 27

#: More steps than this are shown only when asked for: what matters of them is the spread.
SHOWN = 12


@dataclass(frozen=True, slots=True)
class Step:
    """One profiler step. device_busy_ns: union per device of the work that was launched in it."""

    name: str
    cpu_ns: int
    device_busy_ns: int
    events: int
    launches: int


@dataclass(frozen=True, slots=True)
class Steps:
    rows: tuple[Step, ...]  # in time order

    def contract(self) -> dict[str, Any]:
        return {
            "steps": [
                {
                    "name": s.name,
                    "cpu_us": units.us(s.cpu_ns),
                    "device_busy_us": units.us(s.device_busy_ns),
                    "device_events": s.events,
                    "launches": s.launches,
                }
                for s in self.rows
            ]
        }

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return None
        times = [s.cpu_ns for s in self.rows]
        slowest = sorted(self.rows, key=lambda s: -s.cpu_ns)[:top]
        shown = [s for s in self.rows if s in slowest]
        spread = f"CPU: median {units.duration(statistics.median(times))}, min {units.duration(min(times))}, "
        table = Table(
            "Steps" if len(shown) == len(self.rows) else "Slowest steps",
            (
                Column("step", Unit.TEXT),
                Column("CPU", Unit.NS, bar=True),
                Column("device busy", Unit.NS),
                Column("events", Unit.COUNT),
                Column("launches", Unit.COUNT),
            ),
            tuple((s.name, s.cpu_ns, s.device_busy_ns, s.events, s.launches) for s in shown),
            hidden=len(self.rows) - len(shown),
            note=f"{spread}max {units.duration(max(times))} over {len(self.rows):,} steps",
        )
        return Section("steps", "Steps", tables=(table,), detail=len(self.rows) > SHOWN)


def analyze(chains: Chains) -> Steps:
    host, rows = chains.host, chains.steps
    if not len(rows):
        return Steps(())
    work = work_of(chains, rows, any_thread=True)
    busy = np.zeros(len(rows), np.int64)
    launch = chains.device["launch"].fill_null(-1).to_numpy()
    when = host.start[launch]
    process = processes(chains)
    step = np.full(len(launch), -1, np.int64)
    for one in np.unique(process[rows]):
        own = np.nonzero(process[rows] == one)[0]
        slot = np.searchsorted(host.start[rows[own]], when, "right") - 1
        mine = (slot >= 0) & (process[launch] == one)
        step[mine] = own[slot[mine]]
    inside = (launch >= 0) & (step >= 0) & (when < host.end[rows][np.maximum(step, 0)])
    per_step = chains.union(
        chains.device.select("device", "ts", "end").with_columns(step=pl.Series(step)).filter(pl.Series(inside)),
        ["step", "device"],
    )
    np.add.at(busy, per_step["step"].to_numpy(), per_step["length"].to_numpy())
    names = chains.text(host.frame["name"].gather(rows)).to_list()
    return Steps(
        tuple(
            Step(name, int(host.end[r] - host.start[r]), int(busy[i]), int(work.events[i]), int(work.launches[i]))
            for i, (name, r) in enumerate(zip(names, rows, strict=True))
        )
    )
