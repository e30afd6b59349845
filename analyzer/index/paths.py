"""Paths of names: a number for each row that is equal exactly for equal paths from the top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Tree


def number(tree: Tree, key: Ints) -> Ints:
    """Path number of each row; `key` stands for the row's name. Shape (rows,).

    Resolved by depth: the number of a row is that of (its parent's number, its key).
    """
    parent = tree.parent
    path = np.full(tree.height, -1, np.int64)
    children = np.argsort(parent, kind="stable")
    of = parent[children]
    level = children[: np.searchsorted(of, 0)]
    keys = int(key.max()) + 1 if len(key) else 1
    fresh = 0
    while len(level):
        up = parent[level]
        above = np.where(up >= 0, path[up], -1)
        _, place = np.unique((above + 1) * keys + key[level], return_inverse=True)
        path[level] = fresh + place
        fresh += int(place.max()) + 1
        lo, hi = np.searchsorted(of, level, "left"), np.searchsorted(of, level, "right")
        counts = hi - lo
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        level = children[np.repeat(lo, counts) + offset]
    return path
