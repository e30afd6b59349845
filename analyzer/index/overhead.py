"""The profiler's own events, which lie on a lane of their own: whose time did they take?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.tree import runs

if TYPE_CHECKING:
    from analyzer.index.tree import Tree


def assign(overhead: pl.DataFrame, profiler: pl.Series, tree: Tree) -> pl.DataFrame:
    """Give each overhead event to the innermost host event that spans it.

    overhead  rows of `schema.HOST` of category OVERHEAD. profiler: by name, whether it is the
              profiler's own (buffers), not module or function loading.
    Returns columns ts, end, profiler (bool), host (row of the tree, -1: nothing spans it) and
    thread (of that host event, -1). If events of several threads span it, the shortest one wins.
    """
    ts = overhead["ts"].to_numpy()
    end = ts + overhead["dur"].to_numpy()
    best = np.full(len(ts), -1, np.int32)
    if len(ts) and tree.height:
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
    owner = tree.thread[best] if tree.height else np.full(len(ts), -1, np.int32)
    return pl.DataFrame(
        {
            "ts": ts,
            "end": end,
            "profiler": profiler.gather(overhead["name"]),
            "host": best,
            "thread": np.where(best >= 0, owner, -1).astype(np.int32),
        }
    )
