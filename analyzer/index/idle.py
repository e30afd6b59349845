"""Idle intervals of the devices, inside their spans and at the window's edges, and the causes of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index import causes, intervals, parts, pauses
from analyzer.index.activity import Cause
from analyzer.index.sums import sums
from analyzer.index.tree import take

if TYPE_CHECKING:
    from analyzer.index.device import Device
    from analyzer.index.earlier_work import EarlierWork
    from analyzer.index.host import Host
    from analyzer.index.launching import Launching
    from analyzer.index.profiler import Profiler
    from analyzer.index.window import Window

_NO_ROW = pl.lit(None, dtype=pl.UInt32)


@dataclass(frozen=True)
class Idle:
    """Rows `after` and `before` are the device's, `launch` the host's."""

    host: Host
    device: Device
    launching: Launching
    profiler: Profiler
    threads: causes.Threads
    window: Window | None
    earlier_work: EarlierWork

    # -- intervals --------------------------------------------------------------------------------

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """Idle intervals inside each device's span, by device and time:

        device, start, end (ns), after: device row that ends it, before: row of the latest work ended,
        launch, same_launch, same_stream as `causes.attribute` wants them, handed (bool: another thread launched
        the work before).
        """
        work, launch = self.device.frame, pl.Series(self.device.launch)
        # By device and start: the first work of a device has no gap before it, so that none reaches into another's.
        latest = pl.col("frontier").is_null() | (pl.col("end") >= pl.col("frontier"))
        last = pl.when(latest).then(pl.col("row")).forward_fill().shift(1)
        found = (
            work.lazy()
            .select("device", "launch", "ts", "end", "frontier")
            .with_row_index("row")
            .with_columns(before=last)
            .filter(pl.col("ts") > pl.col("frontier"))
            .select("device", "launch", start="frontier", end="ts", after="row", before="before")
            .collect()
        )
        ended, stream = launch.gather(found["before"]), work["stream"]
        next_ = launch.gather(found["after"])
        # A graph's end stands for all of its branches, on whatever stream the last of them ran.
        graph = pl.Series(take(self.device.launched_events, ended.to_numpy()) > 1) & (ended >= 0)
        return found.with_columns(
            same_launch=(ended == next_) & (ended >= 0),
            same_stream=(stream.gather(found["before"]) == stream.gather(found["after"])) | graph,
            handed=self._thread_of(ended) != self._thread_of(next_),
        )

    @cached_property
    def edges(self) -> pl.DataFrame:
        """Lead-in of each device: from the window's start to its first work. Columns as `gaps`."""
        if self.window is None:
            return self.gaps.clear()
        limits = self.window
        return (
            self.device.frame.with_row_index("after")
            .filter(pl.col("frontier").is_null() & (pl.col("ts") > limits.start))
            .select(
                "device",
                "launch",
                start=pl.lit(limits.start, dtype=pl.Int64),
                end=pl.min_horizontal("ts", pl.lit(limits.end)),
                after="after",
                before=_NO_ROW,
                same_launch=pl.lit(False),
                same_stream=pl.lit(False),
                handed=pl.lit(True),
            )
        )

    @cached_property
    def tails(self) -> pl.DataFrame:
        """Tail-out of each device: from its last work to the window's end. device, start, end (ns), thread.

        The thread that launched last, or one that launches at all; -1 where nothing did.
        """
        if self.window is None:
            return pl.DataFrame(schema={"device": pl.Int32, "start": pl.Int64, "end": pl.Int64, "thread": pl.Int32})
        limits = self.window
        last = (
            self.device.frame.group_by("device", maintain_order=True)
            .agg(start=pl.col("end").max(), launch=pl.col("launch").sort_by("ts").drop_nulls().last())
            .with_columns(
                start=pl.max_horizontal("start", pl.lit(limits.start)), end=pl.lit(limits.end, dtype=pl.Int64)
            )
            .filter(pl.col("start") < pl.col("end"))
        )
        return last.with_columns(thread=self._thread_of(last["launch"].fill_null(-1))).drop("launch")

    @cached_property
    def spans(self) -> pl.DataFrame:
        """All idle intervals that touch the window: gaps, then lead-ins, then tail-outs, each cut to it.

        device, start, end (ns), thread (that launched what ends it; of a tail, what came before; -1), handed,
        edge (bool), after, before (device rows, null where there is none), launch (host row, null).
        """
        if self.window is None:
            return self._spans(self.gaps.clear(), edge=False)
        gaps = self._spans(self.gaps, edge=False)
        tails = self.tails.with_columns(
            handed=pl.lit(True), edge=pl.lit(True), after=_NO_ROW, before=_NO_ROW, launch=pl.lit(None, dtype=pl.Int32)
        ).select(gaps.columns)
        return pl.concat([gaps, self._spans(self.edges, edge=True), tails])

    @cached_property
    def late(self) -> dict[int, intervals.Cover]:
        """By device, the idle time in which the call that ends it had not returned: the host was late."""
        waited = self.spans.filter(pl.col("launch").is_not_null())
        returned = pl.Series(take(self.host.end, waited["launch"].to_numpy()), dtype=pl.Int64)
        waited = waited.with_columns(ts="start", end=pl.min_horizontal("end", returned))
        return intervals.covers(waited.filter(pl.col("end") > pl.col("ts")))

    def _spans(self, idle: pl.DataFrame, *, edge: bool) -> pl.DataFrame:
        thread = self._thread_of(idle["launch"].fill_null(-1))
        return idle.select(
            "device", "start", "end", thread, "handed", pl.lit(edge).alias("edge"), "after", "before", "launch"
        )

    def _thread_of(self, launch: pl.Series) -> pl.Series:
        """Thread of each launching host row; -1 for -1."""
        row = launch.to_numpy()
        return pl.Series("thread", np.where(row >= 0, take(self.host.thread, row), -1).astype(np.int32))

    # -- causes -----------------------------------------------------------------------------------

    @cached_property
    def gap_pieces(self) -> pl.DataFrame:
        """Every gap cut into causes; `gap` is a row of `gaps`."""
        return self._attribute(self.gaps)

    @cached_property
    def edge_pieces(self) -> pl.DataFrame:
        """The lead-ins; `gap` is a row of `edges`."""
        return self._attribute(self.edges)

    @cached_property
    def tail_pieces(self) -> pl.DataFrame:
        """The tail-outs, by what the thread that launched last did then; `gap` is a row of `tails`."""
        out = [self.gap_pieces.clear()]
        for number, (_, start, end, thread) in enumerate(self.tails.iter_rows()):
            if thread < 0:
                unlinked = {"gap": number, "cause": int(Cause.UNLINKED), "owner": -1, "quiet": False}
                out.append(pl.DataFrame([{**unlinked, "begin": start, "ns": end - start}], schema=causes.PIECES))
            else:
                out.append(causes.of_thread(self.threads, thread, number, start, end))
        return pl.concat(out)

    @cached_property
    def _cut(self) -> pl.DataFrame:
        """All idle time of the window: `causes.PIECES` cut to it, `gap` a row of `spans`."""
        if self.window is None:
            return self.gap_pieces.clear()
        gaps, edges = self.gaps.height, self.edges.height
        inside = self.window.start, self.window.end
        return pl.concat(
            [
                parts.clipped(self.gap_pieces, *inside),
                parts.clipped(self.edge_pieces, *inside).with_columns(pl.col("gap") + gaps),
                parts.clipped(self.tail_pieces, *inside).with_columns(pl.col("gap") + gaps + edges),
            ]
        )

    @cached_property
    def pauses(self) -> pauses.Pauses:
        """Which of `pieces` are pauses, and where; see `pauses.find`."""
        host = self.host
        launches = np.sort(host.start[self.launching.recorded])
        if self.window is not None:
            launches = launches[(launches >= self.window.start) & (launches < self.window.end)]
        borders = np.concatenate([host.start[host.steps], host.end[host.steps]])
        return pauses.find(self._cut, self.spans, self.threads, host.names, host.own_ns, launches, borders)

    @cached_property
    def pieces(self) -> pl.DataFrame:
        """All idle time of the window: `causes.PIECES` cut to it, `gap` a row of `spans`, and `pause` (bool)."""
        return self._cut.with_columns(pause=pl.Series(self.pauses.pieces))

    @cached_property
    def by_cause(self) -> pl.DataFrame:
        """Idle time in the window of each gap by cause: `gap`, a row of `spans`, its columns, `cause`, `ns`.

        Lead-ins and tail-outs are gaps, too, with `edge` set.
        """
        spans = self.spans.with_row_index("gap").with_columns(pl.col("gap").cast(pl.Int64))
        pieces = sums(parts.usual(self.pieces), {"gap": spans.height, "cause": len(Cause)})
        return spans.join(pieces, on="gap")

    def _attribute(self, idle: pl.DataFrame) -> pl.DataFrame:
        """Causes of idle intervals (rows as in `gaps`); see `causes.attribute`."""
        busy = self.profiler.busy
        covered = intervals.Cover(busy["ts"].to_numpy(), busy["end"].to_numpy())
        pieces = causes.attribute(idle, self.launching.lost_at, covered, self.threads)
        return self._with_earlier_work(idle, pieces)

    def _with_earlier_work(self, idle: pl.DataFrame, pieces: pl.DataFrame) -> pl.DataFrame:
        """Idle time that ends with earlier work belongs to it, and so does what was not recorded of it."""
        found, cause = self.earlier_work, pl.lit(int(Cause.EARLIER_WORK), dtype=pl.Int8)
        start = self.window.start if self.window else 0
        ends = pl.Series(found.recorded).gather(idle["after"]) & (idle["end"] > start)
        if ends.any():
            mine = ends.gather(pieces["gap"])
            pieces = pieces.with_columns(cause=pl.when(mine).then(cause).otherwise("cause"))
        device = idle["device"].to_numpy()
        for of, begin, end in found.unrecorded.iter_rows():
            mine = pl.Series(device == of).gather(pieces["gap"])
            stop = pl.col("begin") + pl.col("ns")
            touched = pl.Series(mine) & ((pieces["begin"] < end) & (pieces["begin"] + pieces["ns"] > begin))
            if touched.any():
                some = pieces.filter(touched)
                inner = parts.clipped(some, begin, end).with_columns(
                    cause=cause, owner=pl.lit(-1, dtype=pl.Int32), quiet=pl.lit(False)
                )
                before = some.filter(pl.col("begin") < begin).with_columns(ns=begin - pl.col("begin"))
                after = some.filter(stop > end).with_columns(begin=pl.lit(end, dtype=pl.Int64), ns=stop - end)
                pieces = pl.concat([pieces.filter(~touched), before, inner, after])
        return pieces
