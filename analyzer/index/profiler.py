"""The profiler's own events, which lie on a lane of their own: whose time did they take?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index import intervals, vocabulary
from analyzer.index.tree import runs

if TYPE_CHECKING:
    from analyzer.index.host import Host
    from analyzer.index.tree import Ints, Rows


@dataclass(frozen=True)
class Profiler:
    """lane: rows of `schema.HOST` of category OVERHEAD."""

    lane: pl.DataFrame
    host: Host

    @cached_property
    def _is_queue_full(self) -> pl.Series:
        return pl.Series(vocabulary.matches(self.host.names, vocabulary.QUEUE_FULL)).gather(self.lane["name"])

    @cached_property
    def queue_full(self) -> Ints:
        """Host rows for which it noted that the launch queue was full: such a call waited, the profiler did nothing."""
        found = self._innermost(self.lane.filter(self._is_queue_full))
        return np.unique(found[found >= 0]).astype(np.int64)

    @cached_property
    def events(self) -> pl.DataFrame:
        """Events of the profiler and of loading:

        ts, end (ns), profiler (bool: its own, not module or function loading by name), host (the innermost host row
        that spans it, -1; of several threads' the shortest), thread (of that row, -1).
        """
        rows = self.lane.filter(~self._is_queue_full)
        own = pl.Series(vocabulary.matches(self.host.names, vocabulary.PROFILER_OVERHEAD))
        best = self._innermost(rows)
        owner = self.host.thread[best] if self.host.height else best
        return rows.select(
            "ts",
            end=pl.col("ts") + pl.col("dur"),
            profiler=own.gather(rows["name"]),
            host=pl.Series(best),
            thread=pl.Series(np.where(best >= 0, owner, -1).astype(np.int32)),
        )

    @cached_property
    def busy(self) -> pl.DataFrame:
        """Disjoint sorted intervals (ts, end) of its own work, all threads."""
        mine = self.events.filter("profiler").with_columns(all=pl.lit(0))
        return intervals.merged(mine, ["all"]).select("ts", "end")

    @cached_property
    def inside(self) -> Ints:
        """Its time that fell into each host row itself (ns)."""
        mine = self.events.filter(pl.col("profiler") & (pl.col("host") >= 0))
        merged = intervals.union_length(mine, ["host"])
        out = np.zeros(self.host.height, np.int64)
        out[merged["host"].to_numpy()] = merged["length"].to_numpy()
        return out

    def beside(self, waits: Ints) -> Ints:
        """The same, at most the row's duration less its wait (ns, by host row).

        What the profiler did while the row waited anyway is the wait's, so that nobody takes it out twice.
        """
        rest = np.maximum(self.host.self_ns - waits, 0)
        return np.where(waits > 0, np.minimum(self.inside, rest), self.inside)

    def _innermost(self, overhead: pl.DataFrame) -> Rows:
        """Host row of each event, as `events` says."""
        tree = self.host
        ts = overhead["ts"].to_numpy()
        end = ts + overhead["dur"].to_numpy()
        best = np.full(len(ts), -1, np.int32)
        if not len(ts) or not tree.height:
            return best
        length = tree.end - tree.start
        for lo, hi in runs(tree.thread):
            row = (lo + np.searchsorted(tree.start[lo:hi], ts, side="right") - 1).astype(np.int32)
            row[row < lo] = -1
            climbing = np.nonzero(row >= 0)[0]
            while len(climbing):
                climbing = climbing[tree.end[row[climbing]] < end[climbing]]
                row[climbing] = tree.parent[row[climbing]]
                climbing = climbing[row[climbing] >= 0]
            better = (row >= 0) & ((best < 0) | (length[row] < length[best]))
            best[better] = row[better]
        return best
