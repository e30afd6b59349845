"""Why a device was idle: every interval cut into pieces that each have one cause.

The formula is DESIGN's "cause of a gap". The pieces of an interval add up to it to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.activity import Activity, Cause
from analyzer.index.timeline import Line, cut, flatten, overlay
from analyzer.index.tree import take

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.tree import Ints, Rows, Tree

#: An in-order stream goes from one queued kernel to the next in 1 to 3 µs (a memory flush and the
#: next grid's set-up); up to 10 µs nothing else needs to have happened.
TURNAROUND_NS = 10_000

#: An operator's first call counts as first use where it took this many times the median of its
#: later calls, and this much longer: less is warm-up of caches, and within the noise of a CPU.
FIRST_USE_RATIO = 3
FIRST_USE_NS = 100_000

#: Causes that a profiler or loading event on its own lane, or a Python frame's context, may refine.
_REFINABLE = (Cause.DISPATCH, Cause.COMPILED_OVERHEAD, Cause.PYTHON, Cause.NO_HOST_EVENT)

PIECES = {"gap": pl.Int64, "cause": pl.Int8, "owner": pl.Int32, "ns": pl.Int64}


@dataclass(frozen=True)
class Threads:
    """The lines of every thread, built when first asked for: most threads never launch anything."""

    host: Tree
    host_activity: Activity
    frames: Tree
    frame_activity: Activity
    overhead: pl.DataFrame
    first_use: npt.NDArray[np.float64]  # per host row: share of its own time that is first use
    cache: dict[int, tuple[Ints, tuple[Rows | None, ...]]] = field(default_factory=dict)

    def pieces(self, thread: int, start: Ints, end: Ints) -> tuple[Ints, npt.NDArray[np.int8], Rows, Ints]:
        """What a thread did in each interval: (interval, cause, owner name, ns), one entry a piece."""
        time, (host, frame, flag) = self._lines(thread)
        interval, segment, begin, stop = cut(time, start, end)
        host, frame, flag = (_owners(line, segment) for line in (host, frame, flag))

        cause = np.where(host >= 0, take(self.host_activity.cause, host), np.int8(Cause.NO_HOST_EVENT))
        owner = _names(self.host, take(self.host_activity.owner, host), host >= 0)
        open_ = np.isin(cause, _REFINABLE)
        in_frame = frame >= 0
        frame_cause = take(self.frame_activity.cause, frame)
        frame_owner = _names(self.frames, take(self.frame_activity.owner, frame), in_frame)
        context = open_ & in_frame & (frame_cause != Cause.PYTHON)
        plain = open_ & in_frame & ~context & np.isin(cause, (Cause.PYTHON, Cause.NO_HOST_EVENT))
        cause[context] = frame_cause[context]
        cause[plain] = Cause.PYTHON
        owner[context | plain] = frame_owner[context | plain]
        loading, profiler = flag == 0, flag == 1
        cause[loading & np.isin(cause, _REFINABLE)] = Cause.FIRST_USE
        cause[profiler] = Cause.PROFILER
        return self._split_first_use(interval, cause, owner, stop - begin, host)

    def _split_first_use(
        self, interval: Ints, cause: npt.NDArray[np.int8], owner: Rows, ns: Ints, host: Rows
    ) -> tuple[Ints, npt.NDArray[np.int8], Rows, Ints]:
        """Of a first call's own time, the excess over its later calls is first use."""
        row = take(self.host_activity.owner, host)
        excess = np.where(
            (cause == Cause.DISPATCH) & (host >= 0) & (row >= 0), ns * take(self.first_use, row), 0
        ).astype(np.int64)
        extra = np.nonzero(excess)[0]
        return (
            np.concatenate([interval, interval[extra]]),
            np.concatenate([cause, np.full(len(extra), Cause.FIRST_USE, np.int8)]),
            np.concatenate([owner, owner[extra]]),
            np.concatenate([ns - excess, excess[extra]]),
        )

    def _lines(self, thread: int) -> tuple[Ints, tuple[Rows | None, ...]]:
        """Borders of a thread, and who is innermost on each of its lines: host events, frames, overhead."""
        if thread not in self.cache:
            self.cache[thread] = overlay(
                self._line(self.host, thread), self._line(self.frames, thread), self._flags(thread)
            )
        return self.cache[thread]

    def _line(self, tree: Tree, thread: int) -> Line:
        return flatten(tree, *tree.rows_of(thread))

    def _flags(self, thread: int) -> Line:
        """Overhead inside this thread's events: 1 the profiler's, 0 loading, -1 neither."""
        mine = self.overhead.filter(pl.col("thread") == thread).sort("ts")
        start, end = mine["ts"].to_numpy(), mine["end"].to_numpy()
        time = np.unique(np.concatenate([start, end]))
        owner = np.full(len(time), -1, np.int32)
        for kind in (False, True):  # where both overlap, the profiler's time is nobody's fault
            some = mine["profiler"].to_numpy() == kind
            covered = np.searchsorted(np.sort(start[some]), time, "right") > np.searchsorted(
                np.sort(end[some]), time, "right"
            )
            owner[covered] = int(kind)
        return Line(time, owner)


def first_use_share(tree: Tree, operator: npt.NDArray[np.bool_], own: Ints) -> npt.NDArray[np.float64]:
    """Per row, the share of its own time by which an operator's first call exceeds its later ones.

    own  own time of each row, its direct host calls included (ns). Zero for all but first calls.
    """
    share = np.zeros(tree.height)
    frame = pl.DataFrame({"row": np.arange(tree.height, dtype=np.int32), "own": own}).with_columns(
        name=tree.frame["name"], ts=tree.frame["ts"]
    )
    firsts = (
        frame.filter(pl.Series(operator))
        .sort("ts", maintain_order=True)
        .group_by("name")
        .agg(
            row=pl.col("row").first(),
            own=pl.col("own").first(),
            later=pl.col("own").slice(1).median(),
            calls=pl.len(),
        )
        .filter(
            (pl.col("calls") >= 3)
            & (pl.col("own") > FIRST_USE_RATIO * pl.col("later"))
            & (pl.col("own") - pl.col("later") >= FIRST_USE_NS)
        )
    )
    share[firsts["row"].to_numpy()] = (1 - firsts["later"] / firsts["own"]).to_numpy()
    return share


def attribute(idle: pl.DataFrame, unrecorded: Ints, profiler: pl.DataFrame, threads: Threads) -> pl.DataFrame:
    """Cut idle intervals of a device into causes.

    idle        columns start, end (ns), launch (host row that launched the work that ends the
                interval, null: unlinked), same_launch (bool: the work before came from the same call).
    unrecorded  sorted start times of launches that have no device record.
    profiler    disjoint sorted intervals ts, end of the profiler's own work.
    Returns PIECES: gap is the row of `idle`, owner a name id or -1. Zero pieces are left out.
    """
    host = threads.host
    gaps = idle.with_row_index("gap").with_columns(pl.col("gap").cast(pl.Int64))
    launch = gaps["launch"].fill_null(-1).to_numpy()
    start, end = gaps["start"].to_numpy(), gaps["end"].to_numpy()
    number = gaps["gap"].to_numpy()
    linked = launch >= 0
    returned = np.where(linked, take(host.end, launch), 0)
    parts: list[pl.DataFrame] = []

    def add(where: npt.NDArray[np.bool_], cause: Cause, ns: Ints, owner: Rows | None = None) -> None:
        who = owner[where] if owner is not None else np.full(int(where.sum()), -1, np.int32)
        parts.append(_piece_frame(number[where], np.full(len(who), int(cause), np.int8), who, ns[where]))

    length = end - start
    silent = (
        np.searchsorted(unrecorded, end, "left") > np.searchsorted(unrecorded, start, "left")
        if len(unrecorded)
        else np.zeros(len(start), bool)
    )
    add(~linked & ~silent, Cause.UNLINKED, length)
    add(silent, Cause.NOT_RECORDED, length)
    in_time = linked & ~silent & (returned <= start)
    inside = in_time & gaps["same_launch"].to_numpy()
    add(inside, Cause.GRAPH_INTERNAL, length)

    queued = in_time & ~inside
    short = queued & (length <= TURNAROUND_NS)
    add(short, Cause.DEVICE_TURNAROUND, length)
    covered = _covered(profiler, start, end)
    add(queued & ~short, Cause.PROFILER, covered)
    add(queued & ~short, Cause.DEPENDENCY, length - covered)

    late = linked & ~silent & (returned > start)
    until = np.minimum(returned, end)
    add(late, Cause.LAUNCH_LATENCY, end - until, _names(host, launch, linked))
    thread = np.where(linked, take(host.thread, launch), -1)
    for one in np.unique(thread[late]):
        mine = np.nonzero(late & (thread == one))[0]
        interval, cause, owner, ns = threads.pieces(int(one), start[mine], until[mine])
        parts.append(_piece_frame(number[mine][interval], cause, owner, ns))
    return pl.concat(parts).filter(pl.col("ns") > 0)


def _piece_frame(gap: Ints, cause: npt.NDArray[np.int8], owner: Rows, ns: Ints) -> pl.DataFrame:
    return pl.DataFrame({"gap": gap, "cause": cause, "owner": owner.astype(np.int32), "ns": ns}, schema=PIECES)


def _owners(line: Rows | None, segment: Ints) -> Rows:
    """Owner at each segment; -1 before the first, and on a line that never has one."""
    if line is None:
        return np.full(len(segment), -1, np.int32)
    return np.where(segment < 0, np.int32(-1), line[np.maximum(segment, 0)])


def _covered(intervals: pl.DataFrame, start: Ints, end: Ints) -> Ints:
    """Time of each [start, end) that disjoint sorted intervals cover."""
    if not intervals.height:
        return np.zeros(len(start), np.int64)
    ts, te = intervals["ts"].to_numpy(), intervals["end"].to_numpy()
    total = np.concatenate(([0], np.cumsum(te - ts)))

    def before(t: Ints) -> Ints:
        k = np.searchsorted(ts, t, "right")
        return total[k] - np.maximum(0, np.where(k > 0, te[k - 1] - t, 0))

    return before(end) - before(start)


def _names(tree: Tree, rows: Rows, valid: npt.NDArray[np.bool_]) -> Rows:
    """Name ids of tree rows; -1 where the row is -1 or not valid."""
    name = take(tree.name, rows)
    return np.where(valid & (rows >= 0), name, -1).astype(np.int32)
