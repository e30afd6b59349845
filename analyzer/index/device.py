"""The device's side: its work, clipped and linked to the calls that launched it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import intervals, kinds
from analyzer.index.links import Links, link
from analyzer.index.tree import take

if TYPE_CHECKING:
    from analyzer.events.schema import Trace
    from analyzer.index.host import Host
    from analyzer.index.tree import Ints, Rows


@dataclass(frozen=True)
class Device:
    """Work of all devices of a trace. Host rows are those of `host`."""

    trace: Trace
    host: Host

    @cached_property
    def properties(self) -> dict[int, Mapping[str, Any]]:
        """`deviceProperties` by device number, those of a file that makes sense only."""
        return {d["id"]: d for d in self.trace.header.devices if type(d.get("id")) is int}

    def name_of(self, device: int) -> str | None:
        """None where nothing says it. ROCm numbers its devices otherwise than its properties: one name is all's."""
        known = self.properties
        names = [d.get("name") for d in ([known[device]] if device in known else known.values())]
        name = names[0] if len(set(map(str, names))) == 1 else None
        return name if isinstance(name, str) and name else None

    @cached_property
    def _clipped(self) -> pl.DataFrame:
        return intervals.clip_overruns(self.trace.device)

    @cached_property
    def links(self) -> Links:
        return link(self.host.frame, self._clipped, self.trace.threads)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """Device work, by device and start: `schema.DEVICE` with

        end, clipped     ns; `dur` and `end` are after clipping
        launch           host row of the launching call, null: unlinked
        frontier         latest end of earlier work on the device, null for the first
        stream_frontier  the same on its stream
        kind             of the work, as `kinds.kinds` has it
        communication    bool: a collective's kernel, or a copy between devices
        """
        work = self._clipped.with_columns(self.links.launch.alias("launch"))
        work = intervals.with_frontier(work, ["device", "stream"]).rename({"frontier": "stream_frontier"})
        work = intervals.with_frontier(work, ["device"])
        launch = work["launch"].fill_null(-1).to_numpy()
        holder = np.where(launch >= 0, take(self.host.holder, launch), -1)
        operator = pl.Series(np.where(holder >= 0, take(self.host.name, holder), -1).astype(np.int32))
        recorded = (work["collective"] >= 0) & (work["cat"] == int(Cat.KERNEL))
        kind = kinds.kinds(work, self.trace.names, operator, recorded.to_numpy())
        return work.with_columns(kind=kind, communication=kind == "communication")

    @cached_property
    def busy(self) -> dict[int, intervals.Cover]:
        """When each device is at work, whatever the stream."""
        return intervals.covers(self.frame)

    @property
    def kind(self) -> pl.Series:
        """Kind of each row; see `kinds.kinds`."""
        return self.frame["kind"]

    @cached_property
    def launch(self) -> Rows:
        """Host row that launched each row; -1: unlinked."""
        return self.frame["launch"].fill_null(-1).to_numpy()

    @cached_property
    def launches(self) -> pl.DataFrame:
        """One row a call that launched device work:

        launch            host row
        first             device row of its first work; events: how many it launched
        work_start        start of that first work (ns); stream_frontier as in `frame`
        device_ns         sum of durations
        """
        return (
            self.frame.lazy()
            .with_row_index("row")
            .filter(pl.col("launch").is_not_null())
            .sort("launch", "ts", maintain_order=True)
            .group_by("launch", maintain_order=True)
            .agg(
                first=pl.col("row").first(),
                events=pl.len().cast(pl.Int64),
                work_start=pl.col("ts").first(),
                stream_frontier=pl.col("stream_frontier").first(),
                device_ns=pl.col("dur").sum(),
            )
            .collect()
        )

    @cached_property
    def launched_ns(self) -> Ints:
        """Device time that each host row launched itself (calls only)."""
        return self._of_host_rows("device_ns")

    @cached_property
    def launched_events(self) -> Ints:
        """Device events that each host row launched itself (calls only)."""
        return self._of_host_rows("events")

    def _of_host_rows(self, column: str) -> Ints:
        out = np.zeros(self.host.height, np.int64)
        out[self.launches["launch"].to_numpy()] = self.launches[column].to_numpy()
        return out

    @cached_property
    def skewed(self) -> int:
        """Events that start before their launch call: the clocks disagree."""
        linked = self.launch >= 0
        return int((self.frame["ts"].to_numpy()[linked] < self.host.start[self.launch[linked]]).sum())
