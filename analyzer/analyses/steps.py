"""The profiler's steps: the host's time, and the device work that was launched in each."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index import intervals
from analyzer.index.build import Chains
from analyzer.index.within import processes, work_of
from analyzer.report.blocks import Block, Section, table
from analyzer.report.columns import Count, Ns, Row, Text, column
from analyzer.report.results import Result

ORDER = 27

#: More steps than this are shown only when asked for, the slowest first: what matters of them is the spread.
SHOWN = 10


class Step(Row, frozen=True, kw_only=True):
    """One profiler step."""

    name: Annotated[Text, column("step", "as the profiler numbers it")]
    cpu_ns: Annotated[Ns, column("CPU", "the host's time", bar=True)]
    device_busy_ns: Annotated[Ns, column("device busy", "union per device of the work that was launched in it")]
    device_events: Annotated[Count, column("events", "device work that was launched in it")]
    launches: Annotated[Count, column("launches", "launch calls in it")]


class Steps(Result, frozen=True, kw_only=True):
    SECTION = "steps"
    TITLE = "Steps"

    steps: tuple[Step, ...]  # in time order

    def blocks(self) -> Iterator[Block]:
        if not self.steps:
            return
        times = [s.cpu_ns for s in self.steps]
        few = len(times) <= SHOWN
        spread = f"CPU: median {units.duration(statistics.median(times))}, min {units.duration(min(times))}, "
        yield table(
            "Steps" if few else "Slowest steps",
            Step,
            self.steps if few else sorted(self.steps, key=lambda s: -s.cpu_ns),
            "name",
            "cpu_ns",
            "device_busy_ns",
            "device_events",
            "launches",
            note=f"{spread}max {units.duration(max(times))} over {len(times):,} steps",
        )

    def section(self) -> Section | None:
        section = super().section()
        return section and replace(section, detail=len(self.steps) > SHOWN)


def analyze(chains: Chains) -> Steps:
    host, rows = chains.host, chains.host.steps
    if not len(rows):
        return Steps(steps=())
    work = work_of(chains, rows, any_thread=True)
    busy = np.zeros(len(rows), np.int64)
    launch = chains.device.frame["launch"].fill_null(-1).to_numpy()
    when = host.start[launch]
    process = processes(chains)
    step = np.full(len(launch), -1, np.int64)
    for one in np.unique(process[rows]):
        own = np.nonzero(process[rows] == one)[0]
        slot = np.searchsorted(host.start[rows[own]], when, "right") - 1
        mine = (slot >= 0) & (process[launch] == one)
        step[mine] = own[slot[mine]]
    inside = (launch >= 0) & (step >= 0) & (when < host.end[rows][np.maximum(step, 0)])
    per_step = intervals.union_length(
        chains.device.frame.select("device", "ts", "end").with_columns(step=pl.Series(step)).filter(pl.Series(inside)),
        ["step", "device"],
    )
    np.add.at(busy, per_step["step"].to_numpy(), per_step["length"].to_numpy())
    names = chains.trace.text(host.frame["name"].gather(rows)).to_list()
    return Steps(
        steps=tuple(
            Step(
                name=name,
                cpu_ns=int(host.end[r] - host.start[r]),
                device_busy_ns=int(busy[i]),
                device_events=int(work.events[i]),
                launches=int(work.launches[i]),
            )
            for i, (name, r) in enumerate(zip(names, rows, strict=True))
        )
    )
