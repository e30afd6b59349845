"""Devices: busy, idle, and what kind of work kept them busy. Formulas: DESIGN's words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import intervals
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.index.cells import Cells
from analyzer.index.parts import Part
from analyzer.report.blocks import Block, Note, Section, table
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, Share, column
from analyzer.report.results import Result

ORDER = 10

#: Cells of the timeline; renderers join neighbours to fit their width.
CELLS = 240


class Device(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "device"

    device: Annotated[int, column("device", "id of the device")]
    name: Annotated[Name | None, column("", "of the device's model; null: the trace does not say")]
    span_ns: Annotated[Ns, column("span", "from the first start to the last end of device work")]
    busy_ns: Annotated[Ns, column("busy", "union of all device work")]
    idle_ns: Annotated[Ns, column("idle", "span less busy")]
    utilization: Annotated[Share | None, column("of span", "busy by span; null: a span of no length")]
    events: Annotated[Count, column("events", "kernels, copies and fills")]
    kernels: Annotated[Count, column("", "of the events, kernels")]
    kernel_sum_ns: Annotated[Ns, column("", "sum of the kernels' durations: those side by side count each")]
    copy_only_ns: Annotated[Ns, column("copies alone", "busy with copies that no other work overlaps")]
    gaps: Annotated[Count, column("gaps", "maximal idle intervals inside the span")]
    max_gap_ns: Annotated[Ns, column("longest gap", "duration of the longest one; 0: none")]
    compute_ns: Annotated[Ns, column("compute", "union of the kernels that are no communication")]
    communication_ns: Annotated[Ns, column("", "union of the kernels of collectives")]
    exposed_communication_ns: Annotated[Ns, column("exposed comm.", "communication that no compute kernel overlaps")]
    window_busy_ns: Annotated[Ns, column("", "busy in the window")]
    window_idle_ns: Annotated[Ns, column("", "idle in the window, but for earlier work that was not recorded")]
    lead_in_ns: Annotated[Ns, column("", "from the window's start to the first device work; 0: it was at work before")]
    tail_out_ns: Annotated[Ns, column("", "from the last device work to the window's end")]


class Timeline(Row, frozen=True, kw_only=True):
    """One device over the window, in equal cells."""

    IDENTITY: ClassVar[str] = "device"

    device: Annotated[int, column("device", "id of the device")]
    start_ns: Annotated[Ns, column("start", "of the first cell")]
    cell_ns: Annotated[MeanNs, column("cell", "length of a cell")]
    cells: Annotated[
        tuple[dict[str, float], ...], column("", "share of each cell by part, as in `verdict.parts`; zero left out")
    ]
    busy: Annotated[tuple[float, ...], column("", "share of each cell that the device was busy")]

    def share(self, part: Part) -> tuple[float, ...]:
        """Share of each cell that a part takes; empty: it takes none of any."""
        shares = tuple(cell.get(part.key, 0.0) for cell in self.cells)
        return shares if any(shares) else ()


class Devices(Result, frozen=True, kw_only=True):
    SECTION = "devices"
    TITLE = "Devices"

    devices: tuple[Device, ...]
    timeline: tuple[Timeline, ...]

    def blocks(self) -> Iterator[Block]:
        if not self.devices:
            yield Note("No device work in this trace: idle time is n/a.")
            return
        yield table(
            "Devices",
            Device,
            self.devices,
            "device",
            "busy_ns",
            "utilization",
            "idle_ns",
            "span_ns",
            "compute_ns",
            "copy_only_ns",
            "exposed_communication_ns",
            "events",
            "gaps",
            "max_gap_ns",
        )

    def section(self) -> Section | None:
        # One device is on the first screen, with its picture.
        section = super().section()
        return section and replace(section, detail=len(self.devices) == 1)


def analyze(chains: Chains) -> Devices:
    work, window = chains.device.frame, chains.window
    if window is None or not work.height:
        return Devices(devices=(), timeline=())
    kernel = pl.col("cat") == int(Cat.KERNEL)
    by = ["device"]

    def union(frame: pl.DataFrame) -> dict[int, int]:
        return dict(intervals.union_length(frame.drop("frontier"), by).iter_rows())

    other = union(work.filter((pl.col("cat") != int(Cat.MEMCPY)) | pl.col("communication")))
    either = union(work.filter(kernel | pl.col("communication")))
    compute = union(work.filter(kernel & ~pl.col("communication")))
    communication = union(work.filter(pl.col("communication")))
    gaps = {
        device: (count, longest)
        for device, count, longest in chains.idle.gaps.group_by("device")
        .agg(n=pl.len(), longest=(pl.col("end") - pl.col("start")).max())
        .iter_rows()
    }
    busy = union(work)
    window_busy = union(chains.account.work)
    idle = chains.idle.pieces.filter(pl.col("cause") != int(Cause.EARLIER_WORK))
    idle = idle.with_columns(device=chains.idle.spans["device"].gather(idle["gap"]))
    window_idle = dict(idle.group_by("device").agg(pl.col("ns").sum()).iter_rows())
    parts = {found.device: _parts(found) for found in chains.account.timeline(CELLS)}
    rows, timeline = [], []
    for key, group in work.group_by("device", maintain_order=True):
        device = int(key[0])
        first, last = int(group["ts"].min()), int(group["end"].max())  # type: ignore[arg-type]
        of_kind = group.filter(kernel)
        count, longest = gaps.get(device, (0, 0))
        rows.append(
            Device(
                device=device,
                name=chains.device.name_of(device),
                span_ns=last - first,
                busy_ns=busy[device],
                idle_ns=last - first - busy[device],
                utilization=busy[device] / (last - first) if last > first else None,
                events=group.height,
                kernels=of_kind.height,
                kernel_sum_ns=int(of_kind["dur"].sum()),
                copy_only_ns=busy[device] - other.get(device, 0),
                gaps=count,
                max_gap_ns=longest,
                compute_ns=compute.get(device, 0),
                communication_ns=communication.get(device, 0),
                exposed_communication_ns=either.get(device, 0) - compute.get(device, 0),
                window_busy_ns=window_busy.get(device, 0),
                window_idle_ns=window_idle.get(device, 0),
                lead_in_ns=max(0, min(first, window.end) - window.start),
                tail_out_ns=max(0, window.end - max(last, window.start)),
            )
        )
        shares = _busy_shares(chains.device.busy[device], window.start, window.end)
        timeline.append(
            Timeline(
                device=device,
                start_ns=window.start,
                cell_ns=window.duration / CELLS,
                cells=parts.get(device, ()),
                busy=tuple(shares),
            )
        )
    return Devices(devices=tuple(rows), timeline=tuple(timeline))


def _parts(found: Cells) -> tuple[dict[str, float], ...]:
    """Shares of each cell by part; to a millionth, and those without left out."""
    rounded = found.shares.round(6)
    return tuple({part.key: float(row[part]) for part in Part if row[part]} for row in rounded)


def _busy_shares(busy: intervals.Cover, start: int, end: int) -> list[float]:
    """Busy share of each of CELLS equal cells of the window: differences of the running busy time."""
    running = busy.before(np.linspace(start, end, CELLS + 1))
    width = (end - start) / CELLS or 1.0
    shares: list[float] = np.clip(np.diff(running) / width, 0, 1).round(6).tolist()
    return shares
