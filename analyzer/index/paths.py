"""Paths of names: a number for each row that is equal exactly for equal paths from the top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Tree

#: Up to so many possible values a table of them is faster than sorting.
TABLE = 1 << 22


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
    since, fresh = -1, 0  # numbers of the level above
    while len(level):
        up = parent[level]
        above = np.where(up >= 0, path[up], -1) - since
        place, count = _dense(above * keys + key[level], (fresh - since) * keys)
        path[level] = fresh + place
        since, fresh = fresh, fresh + count
        lo, hi = np.searchsorted(of, level, "left"), np.searchsorted(of, level, "right")
        counts = hi - lo
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        level = children[np.repeat(lo, counts) + offset]
    return path


def _dense(values: Ints, limit: int) -> tuple[Ints, int]:
    """Values of [0, limit) numbered from 0 in their order, and how many there are."""
    if limit > TABLE:
        found, place = np.unique(values, return_inverse=True)
        return place, len(found)
    seen = np.zeros(limit, bool)
    seen[values] = True
    number = np.cumsum(seen) - 1
    return number[values], int(number[-1]) + 1
