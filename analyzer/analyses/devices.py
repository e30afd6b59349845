"""Devices: busy, idle, and what kind of work kept them busy. Formulas: DESIGN's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.index import intervals
from analyzer.index.build import Chains
from analyzer.model import Column, Section, Strip, Table, Unit

ORDER = 10

#: Cells of the busy/idle picture; renderers join neighbours to fit their width.
STRIP_CELLS = 240


@dataclass(frozen=True, slots=True)
class Device:
    """Times in ns. communication_ns is the union of collectives, exposed what no other kernel overlaps."""

    id: int
    name: str | None
    span_ns: int
    busy_ns: int
    events: int
    kernels: int
    kernel_sum_ns: int
    copy_only_ns: int
    gaps: int
    max_gap_ns: int
    compute_ns: int
    communication_ns: int
    exposed_ns: int
    lead_in_ns: int
    tail_out_ns: int
    busy_shares: tuple[float, ...]

    @property
    def idle_ns(self) -> int:
        return self.span_ns - self.busy_ns

    @property
    def utilization(self) -> float | None:
        return self.busy_ns / self.span_ns if self.span_ns else None


@dataclass(frozen=True, slots=True)
class Devices:
    rows: tuple[Device, ...]
    window_ns: int

    def contract(self) -> dict[str, Any]:
        return {
            "devices": [
                {
                    "device": d.id,
                    "name": d.name,
                    "span_us": units.us(d.span_ns),
                    "busy_us": units.us(d.busy_ns),
                    "idle_us": units.us(d.idle_ns),
                    "utilization": d.utilization,
                    "events": d.events,
                    "kernels": d.kernels,
                    "kernel_sum_us": units.us(d.kernel_sum_ns),
                    "copy_only_us": units.us(d.copy_only_ns),
                    "gaps": d.gaps,
                    "max_gap_us": units.us(d.max_gap_ns),
                    "compute_us": units.us(d.compute_ns),
                    "communication_us": units.us(d.communication_ns),
                    "exposed_communication_us": units.us(d.exposed_ns),
                    "lead_in_us": units.us(d.lead_in_ns),
                    "tail_out_us": units.us(d.tail_out_ns),
                }
                for d in self.rows
            ]
        }

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return Section("devices", "Devices", notes=("No device work in this trace: idle time is n/a.",))
        columns = (
            Column("device", Unit.TEXT),
            Column("busy", Unit.NS),
            Column("of span", Unit.SHARE),
            Column("idle", Unit.NS),
            Column("span", Unit.NS),
            Column("compute", Unit.NS),
            Column("copies alone", Unit.NS),
            Column("exposed comm.", Unit.NS),
            Column("events", Unit.COUNT),
            Column("gaps", Unit.COUNT),
            Column("longest gap", Unit.NS),
        )
        rows = tuple(
            (
                f"{d.id}",
                d.busy_ns,
                d.utilization,
                d.idle_ns,
                d.span_ns,
                d.compute_ns,
                d.copy_only_ns,
                d.exposed_ns,
                d.events,
                d.gaps,
                d.max_gap_ns,
            )
            for d in self.rows[:top]
        )
        table = Table("Devices", columns, rows, hidden=max(0, len(self.rows) - top))
        return Section("devices", "Devices", tables=(table,), detail=len(self.rows) == 1)

    def strips(self, top: int) -> tuple[Strip, ...]:
        """One busy/idle picture a device, over the window."""
        return tuple(
            Strip(
                f"GPU {d.id}",
                d.busy_shares,
                self.window_ns // STRIP_CELLS,
                d.busy_ns,
                self.window_ns - d.busy_ns,
            )
            for d in self.rows[:top]
        )


def analyze(chains: Chains) -> Devices:
    work, window = chains.device, chains.window
    if window is None or not work.height:
        return Devices((), 0 if window is None else window.duration)
    kernel = pl.col("cat") == int(Cat.KERNEL)
    by = ["device"]

    def union(frame: pl.DataFrame) -> dict[int, int]:
        return dict(intervals.union_length(frame.drop("frontier"), by).iter_rows())

    kernels = union(work.filter(kernel))
    other = union(work.filter(pl.col("cat") != int(Cat.MEMCPY)))
    compute = union(work.filter(kernel & ~pl.col("communication")))
    communication = union(work.filter(pl.col("communication")))
    gaps = {
        device: (count, longest)
        for device, count, longest in chains.gaps.group_by("device")
        .agg(n=pl.len(), longest=(pl.col("end") - pl.col("start")).max())
        .iter_rows()
    }
    busy = union(work)
    rows = []
    for key, group in work.group_by("device", maintain_order=True):
        device = int(key[0])
        first, last = int(group["ts"].min()), int(group["end"].max())  # type: ignore[arg-type]
        of_kind = group.filter(kernel)
        count, longest = gaps.get(device, (0, 0))
        rows.append(
            Device(
                id=device,
                name=chains.device_name(device),
                span_ns=last - first,
                busy_ns=busy[device],
                events=group.height,
                kernels=of_kind.height,
                kernel_sum_ns=int(of_kind["dur"].sum()),
                copy_only_ns=busy[device] - other.get(device, 0),
                gaps=count,
                max_gap_ns=longest,
                compute_ns=compute.get(device, 0),
                communication_ns=communication.get(device, 0),
                exposed_ns=kernels.get(device, 0) - compute.get(device, 0),
                lead_in_ns=first - window.start,
                tail_out_ns=max(0, window.end - last),
                busy_shares=_busy_shares(group, window.start, window.end),
            )
        )
    return Devices(tuple(rows), window.duration)


def _busy_shares(work: pl.DataFrame, start: int, end: int) -> tuple[float, ...]:
    """Busy share of each of STRIP_CELLS equal cells of the window: differences of the running busy time."""
    disjoint = intervals.merged(work.drop("frontier"), ["device"])
    ts, te = disjoint["ts"].to_numpy(), disjoint["end"].to_numpy()
    total = np.concatenate(([0], np.cumsum(te - ts)))
    borders = np.linspace(start, end, STRIP_CELLS + 1)
    k = np.searchsorted(ts, borders, "right")
    running = total[k] - np.where(k > 0, np.maximum(0, te[k - 1] - borders), 0)
    width = (end - start) / STRIP_CELLS or 1.0
    return tuple(float(x) for x in np.clip(np.diff(running) / width, 0, 1))
