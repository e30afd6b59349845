"""Where the window went, and what therefore bounds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from analyzer.index import cells, parts
from analyzer.index.bound import Verdict, judge
from analyzer.index.tree import take

if TYPE_CHECKING:
    from analyzer.events.schema import Trace
    from analyzer.index.earlier_work import EarlierWork
    from analyzer.index.idle import Idle
    from analyzer.index.tree import Mask
    from analyzer.index.window import Window


@dataclass(frozen=True)
class Account:
    """autotuning: device rows that a compiler launched to try them."""

    trace: Trace
    window: Window | None
    earlier_work: EarlierWork
    autotuning: Mask
    idle: Idle

    @cached_property
    def work(self) -> pl.DataFrame:
        """Device work in the window, cut to it: `Device.frame` with earlier and autotuning (bool)."""
        marked = self.idle.device.frame.with_columns(
            earlier=pl.Series(self.earlier_work.recorded), autotuning=pl.Series(self.autotuning)
        )
        return parts.clipped(marked, self.window.start, self.window.end) if self.window else marked.clear()

    @cached_property
    def parts(self) -> dict[parts.Part, int]:
        """Parts of the window (ns, averaged over devices); add up to it. Empty without device work."""
        devices = int(self.idle.device.frame["device"].n_unique())
        if not devices:
            return {}
        return parts.total(parts.busy(self.work), parts.idle(self.idle.pieces), devices=devices)

    def judge(self, mine: Mask) -> Verdict:
        """What bounds some device work (by row) with the idle time that it ended."""
        work = self.idle.device.frame.select("device", "ts", "end", "cat", "communication").filter(pl.Series(mine))
        marked = work.with_columns(earlier=pl.lit(False), autotuning=pl.Series(self.autotuning[mine]))
        return judge(parts.total(parts.busy(marked), parts.idle(self.ended(mine))))

    def ended(self, mine: Mask) -> pl.DataFrame:
        """Pieces of the idle time that some device work (by row) ended: cause, ns, pause."""
        after = self.idle.spans["after"]
        spans = take(mine, after.fill_null(0).to_numpy()) & after.is_not_null().to_numpy()
        pieces = self.idle.pieces.select("cause", "ns", "pause")
        return pieces.filter(pl.Series(spans[self.idle.pieces["gap"].to_numpy()]))

    def timeline(self, count: int) -> list[cells.Cells]:
        """The window of each device in `count` cells, each divided into parts."""
        if not self.parts or self.window is None or not self.window.duration:
            return []
        return cells.find(self.window, self.work, self.idle.spans, self.idle.pieces, count)

    @cached_property
    def verdict(self) -> Verdict:
        """What bounds the window, the mean of all devices."""
        if self.parts and self.window is not None:
            ranks = self.trace.header.distributed.get("world_size")
            return judge(self.parts, ranks if type(ranks) is int else 1)
        host, launching = self.idle.host, self.idle.launching
        if not host.height:
            return Verdict("nothing-to-judge", "no events to analyse", {})
        launched, captured = int(host.launch_calls.sum()), int(launching.captures.captured.sum())
        if launched and captured == launched:
            return Verdict("nothing-to-judge", "a graph was captured: its launches ran nothing", {})
        left_out = next((w.message for w in self.trace.warnings if w.code == "unknown-category"), None)
        if left_out is not None:
            return Verdict("nothing-to-judge", f"no device work that is understood: {left_out}", {})
        reason = "the trace holds no device work: only the host's side is judged"
        if launched:
            reason = f"{launched:,} launches but no device record: what the device did was not recorded"
        return Verdict("cpu-only", reason, {})
