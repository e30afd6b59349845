"""Which event is innermost at any instant: a thread flattened to a piecewise-constant line.

Built once for a thread, it answers in one binary search what the thread was doing, and turns "how did
this interval pass" into a cut of sorted segments: linear in events, however deeply they nest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.tree import Ints, Rows, Tree


@dataclass(frozen=True)
class Line:
    """From `time[k]` on, until `time[k + 1]`, the row `owner[k]` is innermost; -1: no event."""

    time: Ints
    owner: Rows

    def at(self, t: Ints) -> Rows:
        """Innermost row at each instant. Shape as `t`."""
        if not len(self.time):
            return np.full(len(t), -1, np.int32)
        position = np.searchsorted(self.time, t, side="right") - 1
        return np.where(position < 0, np.int32(-1), self.owner[np.maximum(position, 0)]).astype(np.int32)


def flatten(tree: Tree, lo: int, hi: int) -> Line:
    """The line of one thread: rows [lo, hi) of the tree."""
    rows = np.arange(lo, hi, dtype=np.int32)
    # An event without length is never innermost for any time; left in, its start would sort after its end.
    rows = rows[tree.end[lo:hi] > tree.start[lo:hi]]
    if not len(rows):
        return Line(np.zeros(0, np.int64), np.zeros(0, np.int32))
    # On equal ends the inner event ends first: walk the preorder backwards through a stable sort.
    closing = rows[::-1][np.argsort(tree.end[rows[::-1]], kind="stable")]
    starts, ends = tree.start[rows], tree.end[closing]
    # Merge two sorted lists by rank: an end comes before a start at the same instant.
    end_at = np.arange(len(rows)) + np.searchsorted(starts, ends, side="left")
    start_at = np.arange(len(rows)) + np.searchsorted(ends, starts, side="right")
    time = np.empty(2 * len(rows), np.int64)
    owner = np.empty(2 * len(rows), np.int32)
    time[start_at], owner[start_at] = starts, rows
    time[end_at], owner[end_at] = ends, tree.parent[closing]
    lasting = np.append(time[1:] > time[:-1], True)
    return Line(time[lasting], owner[lasting])


def overlay(*lines: Line) -> tuple[Ints, tuple[Rows | None, ...]]:
    """Several lines over the same time axis: the common borders, and each line's owner from there on.

    None stands for a line without any border: nothing is ever innermost on it.
    """
    used = [line for line in lines if len(line.time)]
    time = used[0].time if used else np.zeros(0, np.int64)
    for line in used[1:]:
        time = _merge(time, line.time)
    return time, tuple(
        None if not len(line.time) else line.owner if len(used) == 1 else line.at(time) for line in lines
    )


def _merge(a: Ints, b: Ints) -> Ints:
    """Sorted union of two sorted lists without repeats: what of the shorter is new is put in its place."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    place = np.searchsorted(long, short)
    fresh = long[np.minimum(place, len(long) - 1)] != short
    return np.insert(long, place[fresh], short[fresh])


def cut(time: Ints, start: Ints, end: Ints) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Ints, Ints]:
    """Cut each interval [start, end) at the borders `time`.

    Returns (interval, segment, from, to): one entry a piece, `segment` -1 before the first border.
    The pieces of an interval add up to it, to the nanosecond.
    """
    first = np.searchsorted(time, start, side="right") - 1
    past = np.searchsorted(time, end, side="left")
    counts = np.where(end > start, np.maximum(past - first, 1), 0)
    interval = np.repeat(np.arange(len(start)), counts)
    offset = np.arange(len(interval)) - np.repeat(np.cumsum(counts) - counts, counts)
    segment = first[interval] + offset
    begin = np.where(offset == 0, start[interval], time[np.maximum(segment, 0)] if len(time) else 0)
    following = segment + 1
    stop = np.where(
        offset == counts[interval] - 1,
        end[interval],
        time[np.minimum(following, len(time) - 1)] if len(time) else 0,
    )
    return interval, segment, begin, stop
