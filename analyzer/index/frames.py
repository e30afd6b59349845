"""Python frames: a tree of their own, since their times are coarser and may cross operators'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyzer.index import tree
from analyzer.index.timeline import flatten
from analyzer.index.tree import Tree

if TYPE_CHECKING:
    import polars as pl

    from analyzer.index.host import Host
    from analyzer.index.tree import Ints, Rows


@dataclass(frozen=True)
class Frames(Tree):
    """names: the trace's, by id."""

    names: pl.Series

    def open_at(self, host: Host, rows: Ints | Rows) -> Rows:
        """Innermost frame (row) when each of some host rows starts; -1: none."""
        out = np.full(len(rows), -1, np.int32)
        if not self.height:
            return out
        threads = host.thread[rows]
        for thread in np.unique(threads):
            mine = threads == thread
            out[mine] = flatten(self, *self.rows_of(int(thread))).at(host.start[rows[mine]])
        return out

    def modules(self, host: Host, rows: Ints | Rows) -> Rows:
        """Name id of the `nn.Module` whose frame is open when each of some host rows starts; -1: none recorded."""
        open_ = self.open_at(host, rows)
        if not self.height:
            return open_
        module = self.nearest(self.names.str.starts_with("nn.Module: ").to_numpy()[self.name])
        found = np.where(open_ >= 0, module[open_], -1)
        return np.where(found >= 0, self.name[found], -1).astype(np.int32)


def build(events: pl.DataFrame, names: pl.Series) -> Frames:
    """events: rows of `schema.HOST` that are Python frames."""
    return Frames(**vars(tree.build(events)), names=names)
