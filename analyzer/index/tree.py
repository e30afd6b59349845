"""Nesting of host events: who runs inside whom, and what time is whose own.

Events of a thread, sorted by start and then longest first, are the preorder walk of a forest: an
event is a child of the latest event before it that has not ended when it starts. A child that
outlives its parent (clock resolution, asynchronous ends) is clamped to it, so that the intervals of
a thread are laminar: any two nest or are disjoint. From that alone follows all the rest: a subtree is
a range of rows, a sum over a subtree is a difference of two running totals, and the self times of a
thread add up to the union of its events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Rows = npt.NDArray[np.int32]
    Mask = npt.NDArray[np.bool_]

#: Rounds of clamping before the exact walk takes over. Real traces need one or two; only a made-up
#: staircase of overlapping events needs more, and would make the rounds quadratic.
_CLAMP_ROUNDS = 8

#: On equal intervals the outer event is the annotation, then the operator, then the call.
_OUTER_FIRST = {0: 1, 1: 0, 2: 1, 3: 2, 4: 3}


@dataclass(frozen=True)
class Tree:
    """A forest in preorder. All arrays have one entry an event (rows), times in ns.

    frame    the sorted events: columns of `schema.HOST`; `dur` is the clamped duration.
    start    start of the event; end: its clamped end.
    parent   row of the parent, -1 at the top.
    last     one past the last row of the subtree: the subtree is rows [i, last[i]).
    clamped  how many events were cut to their parent, and `clamped_ns` by how much in total.
    """

    frame: pl.DataFrame
    start: Ints
    end: Ints
    parent: Rows
    last: Rows
    clamped: int
    clamped_ns: int

    @property
    def height(self) -> int:
        return len(self.start)

    @cached_property
    def thread(self) -> Rows:
        return self.frame["thread"].to_numpy()

    @cached_property
    def name(self) -> Rows:
        """Name ids."""
        return self.frame["name"].to_numpy()

    @cached_property
    def self_ns(self) -> Ints:
        """Duration less the direct children, which are disjoint and inside. Shape (rows,)."""
        own = self.end - self.start
        child = self.parent >= 0
        return own - np.bincount(
            self.parent[child], weights=own[child].astype(np.float64), minlength=self.height
        ).astype(np.int64)

    def rows_of(self, thread: int) -> tuple[int, int]:
        """(first, past) of a thread's rows."""
        lo, hi = np.searchsorted(self.thread, [thread, thread + 1])
        return int(lo), int(hi)

    def path_at(self, thread: int, t: int) -> list[int]:
        """Rows that are open at time `t` on a thread, innermost first."""
        lo, hi = self.rows_of(thread)
        row = int(lo + np.searchsorted(self.start[lo:hi], t, side="right")) - 1
        path = []
        row = row if row >= lo else -1
        while row >= 0:
            if self.end[row] > t:
                path.append(row)
            row = int(self.parent[row])
        return path

    def below(self, values: Ints) -> Ints:
        """Sum of `values` over each event's subtree, itself included. Shape (rows,)."""
        total = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
        return total[self.last] - total[:-1]

    def nearest(self, wanted: Mask) -> Rows:
        """Row of the nearest ancestor-or-self that is wanted, -1 if none. Shape (rows,)."""
        few = np.flatnonzero(wanted)
        return (
            _spread(few, self.last[few], self.height) if len(few) * 8 < self.height else _nearest(self.parent, wanted)
        )

    def enclosing(self, wanted: Mask) -> Rows:
        """Row of the nearest wanted proper ancestor, -1 if none. Shape (rows,)."""
        return np.append(self.nearest(wanted), np.int32(-1)).astype(np.int32)[self.parent]

    def outermost(self, mine: Mask, key: Ints | Rows) -> Mask:
        """Which of some rows have no proper ancestor among them with the same key (name, 0 and up). Shape (rows,).

        Within one key, rows are in preorder: a row is inside an earlier one exactly if some earlier
        subtree of that key reaches beyond it.
        """
        rows = np.flatnonzero(mine)
        out = np.zeros(self.height, bool)
        if not len(rows):
            return out
        k = key[rows]
        # Numbers of 16 bits are sorted by radix, in a fifth of the time; names are seldom more.
        order = np.argsort(k.astype(np.uint16) if k.max() < 1 << 16 else k, kind="stable")
        k, rows = k[order], rows[order]
        new = np.append(True, k[1:] != k[:-1])
        # A running maximum that restarts with each key: lift every group above the one before it.
        lift = (np.cumsum(new) - 1) * (self.height + 1)
        before = np.append(0, np.maximum.accumulate(self.last[rows] + lift)[:-1])
        out[rows] = new | (before - lift <= rows)
        return out


def build(events: pl.DataFrame) -> Tree:
    """The tree of host events; columns as in `schema.HOST`. Order of ties: outer kind, then file order."""
    frame = (
        events.with_columns(
            end=pl.col("ts") + pl.col("dur"),
            rank=pl.col("cat").replace_strict(_OUTER_FIRST, default=2, return_dtype=pl.UInt8),
        )
        .sort(["thread", "ts", "end", "rank"], descending=[False, False, True, False], maintain_order=True)
        .drop("rank")
    )
    start = frame["ts"].to_numpy()
    end = frame["end"].to_numpy().copy()
    thread = frame["thread"].to_numpy()
    raw_end = end.copy()
    parent = _parents(start, end, thread)
    for _ in range(_CLAMP_ROUNDS):
        late = (parent >= 0) & (end > end[parent])
        if not late.any():
            break
        # From the top down: what looks nested in a late event may begin after that event's true end.
        late &= np.append(_nearest(parent, late), np.int32(-1))[parent] < 0
        end[late] = end[parent[late]]
        parent = _parents(start, end, thread)
    else:
        parent = _walk(start, end, thread)
    cut = end < raw_end
    frame = frame.drop("end").with_columns(dur=pl.Series(end - start))
    return Tree(
        frame=frame,
        start=start,
        end=end,
        parent=parent,
        last=_last(start, end, thread),
        clamped=int(cut.sum()),
        clamped_ns=int((raw_end - end).sum()),
    )


def take(values: npt.NDArray[np.generic], rows: npt.NDArray[np.integer]) -> npt.NDArray:  # type: ignore[type-arg]
    """values[rows], with anything (the last entry, or 0) where a row is -1; never fails on no values."""
    return values[rows] if len(values) else np.zeros(len(rows), values.dtype)


def runs(sorted_values: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    """(first, past) of each run of equal values."""
    if not len(sorted_values):
        return []
    borders = np.nonzero(sorted_values[1:] != sorted_values[:-1])[0] + 1
    return list(pairwise([0, *borders.tolist(), len(sorted_values)]))


def _nearest(parent: Rows, wanted: Mask) -> Rows:
    """Nearest wanted ancestor-or-self by path doubling: every pass halves the way that is left, so that
    deep Python stacks cost log(depth) passes."""
    n = len(parent)
    jump = np.append(np.where(wanted, np.arange(n, dtype=np.int32), parent), np.int32(-1))
    jump = jump.astype(np.int32)
    while True:
        further = jump[jump]
        if np.array_equal(further, jump):
            return jump[:n]
        jump = further


def _spread(rows: Ints, past: Rows, count: int) -> Rows:
    """The same for a few wanted rows, by their subtrees [row, past): what is innermost changes at their ends only."""
    if not len(rows):
        return np.full(count, -1, np.int32)
    around = np.append(_parents(rows, past.astype(np.int64), np.zeros(len(rows), np.int32)), np.int32(-1))
    # Ends before the starts at the same place, and an inner end before the outer one: the last one counts.
    closing = np.argsort(past[::-1], kind="stable")
    closing = len(rows) - 1 - closing
    place = np.concatenate([past[closing], rows])
    owner = np.concatenate([around[closing], np.arange(len(rows), dtype=np.int32)])
    order = np.argsort(place, kind="stable")
    place, owner = place[order], owner[order]
    lengths = np.diff(np.append(place, count))
    inner = np.append(rows, -1)[owner]
    out: Rows = np.concatenate([np.full(place[0], -1), np.repeat(inner, lengths)]).astype(np.int32)
    return out


def _parents(start: Ints, end: Ints, thread: npt.NDArray[np.int32]) -> Rows:
    """Latest earlier row of the thread that has not ended: start from the previous row and climb."""
    n = len(start)
    parent = np.arange(-1, n - 1, dtype=np.int32)
    if n:
        parent[np.append(True, thread[1:] != thread[:-1])] = -1
    rows = np.nonzero(parent >= 0)[0]
    while len(rows):
        rows = rows[end[parent[rows]] <= start[rows]]
        parent[rows] = parent[parent[rows]]
        rows = rows[parent[rows] >= 0]
    return parent


def _walk(start: Ints, end: Ints, thread: npt.NDArray[np.int32]) -> Rows:
    """The same by a plain stack, clamping `end` in place: linear, whatever the input."""
    parent = np.full(len(start), -1, np.int32)
    stack: list[int] = []
    for i in range(len(start)):
        if i and thread[i] != thread[i - 1]:
            stack.clear()
        while stack and end[stack[-1]] <= start[i]:
            stack.pop()
        if stack:
            parent[i] = stack[-1]
            end[i] = min(end[i], end[stack[-1]])
        stack.append(i)
    return parent


def _last(start: Ints, end: Ints, thread: npt.NDArray[np.int32]) -> Rows:
    """One past the subtree: the first row of the thread that starts at or after the event's end."""
    last = np.empty(len(start), np.int32)
    for lo, hi in runs(thread):
        last[lo:hi] = lo + np.searchsorted(start[lo:hi], end[lo:hi], side="left")
    return np.maximum(last, np.arange(1, len(start) + 1, dtype=np.int32))
