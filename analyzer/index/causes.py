"""Why a device was idle: every interval cut into pieces that each have one cause.

The formula is DESIGN's "cause of a gap". The pieces of an interval tile it, to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from analyzer.index.activity import Activity, Cause
from analyzer.index.bound import LATENCY_LIMIT_NS
from analyzer.index.intervals import Cover
from analyzer.index.timeline import Line, cut, flatten, overlay
from analyzer.index.tree import take

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.activity import Codes
    from analyzer.index.handover import Partners
    from analyzer.index.tree import Ints, Mask, Rows, Tree

#: An in-order stream goes from one queued kernel to the next in 1 to 3 µs (a memory flush and the
#: next grid's set-up); up to 10 µs nothing else needs to have happened.
TURNAROUND_NS = 10_000

#: Causes that a profiler or loading event on its own lane, or a Python frame's context, may refine.
_REFINABLE = (Cause.DISPATCH, Cause.COMPILED_OVERHEAD, Cause.PYTHON, Cause.NO_HOST_EVENT)
#: Of these a first call has an excess.
USED = (Cause.DISPATCH, Cause.COMPILED_OVERHEAD, Cause.PYTHON)
_LOADING, _CAPTURE, _PROFILER = range(3)

#: gap: row of the idle intervals; owner: a name id or -1; quiet: inside operators that launch nothing.
PIECES = {
    "gap": pl.Int64, "cause": pl.Int8, "owner": pl.Int32, "quiet": pl.Boolean, "begin": pl.Int64, "ns": pl.Int64,
}  # fmt: skip


class Cut(NamedTuple):
    """Pieces of intervals, an entry each: which interval, from where (ns), how long, and what was done."""

    interval: Ints
    begin: Ints
    ns: Ints
    cause: Codes
    owner: Rows
    unit: Rows  # host row of the operator, annotation or bare call whose time it is; -1
    weak: Mask  # the thread itself did nothing that says why

    def take(self, rows: npt.NDArray[np.generic]) -> Cut:
        return Cut(*(column[rows] for column in self))

    @staticmethod
    def join(*parts: Cut) -> Cut:
        return Cut(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@dataclass(frozen=True)
class Threads:
    """What every thread did at any instant. Its lines are built when first asked for: most never launch.

    overhead    columns ts, end, profiler, thread: events of the profiler's lane and whose time they took.
    captures    thread -> (ts, end) of graph captures that it took part in.
    first_use   per host row, the share of its own time that is first use; `unit`: whose time a row's is.
    quiet       per host row, whether it lies in operators that launch nothing.
    backward    frames that wait for the autograd engine.
    """

    host: Tree
    is_call: Mask
    host_activity: Activity
    frames: Tree
    frame_activity: Activity
    overhead: pl.DataFrame
    captures: dict[int, pl.DataFrame]
    first_use: npt.NDArray[np.float64]
    unit: Rows
    quiet: Mask
    backward: Mask
    partners: Partners
    cache: dict[int, tuple[Ints, tuple[Rows | None, ...]]] = field(default_factory=dict)

    def pieces(self, thread: int, start: Ints, end: Ints) -> Cut:
        """What was done for a thread in each interval; where it did nothing, by whom it waited for."""
        found = self._cut(thread, start, end)
        for other in self.partners.asks.get(thread, ()):
            ask = np.nonzero(found.weak)[0]
            if not len(ask):
                break
            said = self._cut(other, found.begin[ask], found.begin[ask] + found.ns[ask])
            mine = ask[said.interval]
            # The caller of backward has its own say where the engine is idle; an engine has none.
            knows = ~said.weak if self.partners.engine[other] else said.cause != Cause.NO_HOST_EVENT
            own = found.take(mine)
            answer = Cut(
                interval=found.interval[mine],
                begin=said.begin,
                ns=said.ns,
                cause=np.where(knows, said.cause, own.cause),
                owner=np.where(knows, said.owner, own.owner),
                unit=np.where(knows, said.unit, own.unit),
                weak=~knows,
            )
            found = Cut.join(found.take(~found.weak), answer)
        return self._split_first_use(found)

    def speaker(self, thread: int, at: int) -> int:
        """The thread that says what was done for `thread` at an instant."""
        found = self._cut(thread, np.array([at]), np.array([at + 1]))
        if found.weak.all():
            for other in self.partners.asks.get(thread, ()):
                said = self._cut(other, np.array([at]), np.array([at + 1]))
                knows = ~said.weak if self.partners.engine[other] else said.cause != Cause.NO_HOST_EVENT
                if knows.any():
                    return other
        return thread

    def _cut(self, thread: int, start: Ints, end: Ints) -> Cut:
        """What one thread did itself."""
        time, (host, frame, flag) = self._lines(thread)
        interval, segment, begin, stop = cut(time, start, end)
        host, frame, flag = (_owners(line, segment) for line in (host, frame, flag))

        inside = host >= 0
        cause = np.where(inside, take(self.host_activity.cause, host), np.int8(Cause.NO_HOST_EVENT))
        owner = _names(self.host, take(self.host_activity.owner, host), inside)
        unit = np.where(inside, take(self.unit, host), np.int32(-1)).astype(np.int32)
        in_frame = frame >= 0
        weak = np.isin(cause, (Cause.PYTHON, Cause.NO_HOST_EVENT)) & (~in_frame | take(self.backward, frame))
        if in_frame.any():
            open_ = np.isin(cause, _REFINABLE)
            frame_cause = take(self.frame_activity.cause, frame)
            frame_owner = _names(self.frames, take(self.frame_activity.owner, frame), in_frame)
            wrapper = frame_cause == Cause.COMPILED_OVERHEAD
            # A frame that an operator called (a hook, a custom function) is the inner one.
            called = inside & ~take(self.is_call, host) & (take(self.frames.start, frame) > take(self.host.start, host))
            plain = open_ & in_frame & (called | np.isin(cause, (Cause.PYTHON, Cause.NO_HOST_EVENT)))
            context = open_ & in_frame & (frame_cause != Cause.PYTHON) & (~wrapper | plain)
            plain &= ~context
            cause[context] = frame_cause[context]
            cause[plain] = Cause.PYTHON
            owner[context | plain] = frame_owner[context | plain]
            unit[plain] = -1  # a frame says more than the annotation around it
            weak &= ~context | wrapper
        if flag.max(initial=-1) >= 0:
            cause[(flag == _LOADING) & np.isin(cause, _REFINABLE)] = Cause.FIRST_USE
            cause[(flag == _CAPTURE) & np.isin(cause, _REFINABLE)] = Cause.GRAPH_CAPTURE
            cause[flag == _PROFILER] = Cause.PROFILER
            weak &= flag < 0
        return _merged(Cut(interval, begin, stop - begin, cause, owner, unit, weak))

    def _split_first_use(self, found: Cut) -> Cut:
        """Of a first call's own time, the excess over its later calls is first use."""
        part = np.where(np.isin(found.cause, USED) & (found.unit >= 0), take(self.first_use, found.unit), 0.0)
        extra = np.nonzero(part > 0)[0]
        if not len(extra):
            return found
        excess = (found.ns[extra] * part[extra]).astype(np.int64)
        first = found.take(extra)._replace(ns=excess, cause=np.full(len(extra), Cause.FIRST_USE, np.int8))
        begin, ns = found.begin.copy(), found.ns.copy()
        begin[extra] += excess
        ns[extra] -= excess
        return Cut.join(found._replace(begin=begin, ns=ns), first)

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
        """What besides its events is known of a thread: loading, capture, the profiler's work; -1 nothing."""
        mine = self.overhead.filter(pl.col("thread") == thread)
        captures = self.captures.get(thread, mine.clear())
        # Where they overlap: the profiler's time is nobody's fault, and whatever a capture loads is a capture's.
        kinds = [
            (_LOADING, mine.filter(~pl.col("profiler"))),
            (_CAPTURE, captures),
            (_PROFILER, mine.filter("profiler")),
        ]
        borders = [rows[column].to_numpy() for _, rows in kinds for column in ("ts", "end")]
        time = np.unique(np.concatenate(borders)) if borders else np.zeros(0, np.int64)
        owner = np.full(len(time), -1, np.int32)
        for kind, rows in kinds:
            begun = np.searchsorted(np.sort(rows["ts"].to_numpy()), time, "right")
            owner[begun > np.searchsorted(np.sort(rows["end"].to_numpy()), time, "right")] = kind
        return Line(time, owner)


def _merged(found: Cut) -> Cut:
    """Neighbours that say the same become one piece."""
    if not len(found.ns):
        return found
    same = np.ones(len(found.ns) - 1, bool)
    for column in (found.interval, found.cause, found.owner, found.unit, found.weak):
        same &= column[1:] == column[:-1]
    heads = np.nonzero(np.append(True, ~same))[0]
    return found.take(heads)._replace(ns=np.add.reduceat(found.ns, heads))


def attribute(idle: pl.DataFrame, unrecorded: Ints, profiler: Cover, threads: Threads) -> pl.DataFrame:
    """Cut idle intervals of a device into causes.

    idle        columns start, end (ns), launch (host row that launched the work that ends the interval, null:
                unlinked), same_launch (bool: the work before came from the same call), same_stream (bool:
                it ran on the same stream, or was the end of a graph).
    unrecorded  sorted start times of launches that have no device record.
    profiler    when the profiler was at work.
    Returns PIECES. Zero pieces are left out.
    """
    host = threads.host
    launch = idle["launch"].fill_null(-1).to_numpy()
    start, end = idle["start"].to_numpy(), idle["end"].to_numpy()
    number = np.arange(len(start))
    linked = launch >= 0
    returned = np.where(linked, take(host.end, launch), 0)
    parts: list[pl.DataFrame] = []

    def add(where: Mask, cause: Cause, begin: Ints, ns: Ints, owner: Rows | None = None) -> None:
        who = owner[where] if owner is not None else np.full(int(where.sum()), -1, np.int32)
        parts.append(_frame(number[where], np.full(len(who), int(cause), np.int8), who, begin[where], ns[where]))

    length = end - start
    silent = np.searchsorted(unrecorded, end, "left") > np.searchsorted(unrecorded, start, "left")
    add(~linked & ~silent, Cause.UNLINKED, start, length)
    add(silent, Cause.NOT_RECORDED, start, length)
    in_time = linked & ~silent & (returned <= start)
    inside = in_time & idle["same_launch"].to_numpy()
    add(inside, Cause.GRAPH_INTERNAL, start, length)

    queued = in_time & ~inside
    # On one stream there is no other to wait for, up to what nothing that is seen here explains.
    alone = idle["same_stream"].to_numpy() & (length <= LATENCY_LIMIT_NS)
    short = queued & (alone | (length <= TURNAROUND_NS))
    covered = np.where(queued & (length > TURNAROUND_NS), profiler.within(start, end), 0)
    add(queued & (covered > 0), Cause.PROFILER, start, covered)
    add(short, Cause.DEVICE_TURNAROUND, start + covered, length - covered)
    add(queued & ~short, Cause.DEPENDENCY, start + covered, length - covered)

    late = linked & ~silent & (returned > start)
    until = np.minimum(returned, end)
    add(late, Cause.LAUNCH_LATENCY, until, end - until, _names(host, launch, linked))
    thread = np.where(linked, take(host.thread, launch), -1)
    for one in np.unique(thread[late]):
        mine = np.nonzero(late & (thread == one))[0]
        parts.append(_of_cut(threads, threads.pieces(int(one), start[mine], until[mine]), number[mine]))
    return pl.concat(parts).filter(pl.col("ns") > 0)


def of_thread(threads: Threads, thread: int, gap: int, start: int, end: int) -> pl.DataFrame:
    """PIECES of one interval by what one thread did, whoever launches next."""
    found = threads.pieces(thread, np.array([start]), np.array([end]))
    return _of_cut(threads, found, np.array([gap])).filter(pl.col("ns") > 0)


def _of_cut(threads: Threads, found: Cut, number: Ints) -> pl.DataFrame:
    quiet = (found.unit >= 0) & take(threads.quiet, found.unit)
    return _frame(number[found.interval], found.cause, found.owner, found.begin, found.ns, quiet)


def _frame(gap: Ints, cause: Codes, owner: Rows, begin: Ints, ns: Ints, quiet: Mask | None = None) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "gap": gap,
            "cause": cause.astype(np.int8),
            "owner": owner.astype(np.int32),
            "quiet": np.zeros(len(gap), bool) if quiet is None else quiet,
            "begin": begin,
            "ns": ns,
        },
        schema=PIECES,
    )


def _owners(line: Rows | None, segment: Ints) -> Rows:
    """Owner at each segment; -1 before the first, and on a line that never has one."""
    if line is None:
        return np.full(len(segment), -1, np.int32)
    return np.where(segment < 0, np.int32(-1), line[np.maximum(segment, 0)])


def _names(tree: Tree, rows: Rows, valid: npt.NDArray[np.bool_]) -> Rows:
    """Name ids of tree rows; -1 where the row is -1 or not valid."""
    name = take(tree.name, rows)
    return np.where(valid & (rows >= 0), name, -1).astype(np.int32)
