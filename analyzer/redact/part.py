"""Which events make up a part of a trace: some steps, a stretch of time, the calls of an annotation.

Steps, clock, links and categories are those of the trace as the reader gives it (`choose`); what no report needs of
a file, and a part of it does, is noted while it is read (`Marks`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from analyzer.events import select
from analyzer.events.builder import NULL
from analyzer.events.schema import Cat, Trace
from analyzer.events.select import Selection
from analyzer.index import selecting
from analyzer.sources.kineto import dialects
from analyzer.sources.kineto.arguments import CORRELATION_KEYS
from analyzer.sources.kineto.decode import Columns, inexact
from analyzer.sources.kineto.numbers import spell, to_ns
from analyzer.sources.kineto.packing import Event, first_id

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FLOWS = ("s", "t", "f")
_EXTERNAL = ("External id",)
_ANNOTATIONS = frozenset(name for name, code in dialects.CODES.items() if code == Cat.ANNOTATION)


class Marks(Columns):
    """Columns, and beside them what a part is cut by: the ends of arrows, and the ids of annotations.

    Times are absolute, in ns.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flow_key = array("q")
        self.flow_ts = array("q")
        self.flow_start = bytearray()
        self.annotations: list[tuple[int, int, int]] = []  # start, end, External id

    def add_events(self, events: Sequence[Any], legacy: bool = False) -> bool:
        flows = [e for e in events if type(e) is dict and e.get("ph") in _FLOWS]
        if any(map(inexact, flows)) or not super().add_events(events, legacy):
            return False
        for e in flows:
            if (ts := to_ns(e.get("ts"))) != NULL:
                self.flow_key.append(_flow_key(e))
                self.flow_ts.append(ts)
                self.flow_start.append(e["ph"] == "s")
        for e in events:
            if type(e) is dict and e.get("ph") == "X" and type(cat := e.get("cat")) is str and cat in _ANNOTATIONS:
                ts, dur, ident = to_ns(e.get("ts")), to_ns(e.get("dur")), first_id(e.get("args"), _EXTERNAL, 0)
                if ident and ts != NULL and dur >= 0:
                    self.annotations.append((ts, ts + dur, ident))
        return True


def _ns(value: Any) -> int:
    """Of a time that may be text behind a `#`."""
    return to_ns(value[1:] if type(value) is str and value.startswith("#") else value)


def _correlation(e: Event) -> int:
    return first_id(e.get("args"), CORRELATION_KEYS, 0)


def _flow_key(e: Event) -> int:
    """A flow's category and id as one number: the same in both passes of one process."""
    return hash((spell(e.get("cat")), spell(e.get("id"))))


class _Part:
    """Decides about one event at a time, in the order of the file.

    Kept is what begins in one of the intervals, what is open when one begins on a host's thread
    (enclosing annotations, the operator in which the part starts), device work whose launch is kept,
    and of a launch that was taken for its work's sake (`points`, by lane) everything around it.
    """

    def __init__(self, intervals: list[tuple[int, int]], lanes: dialects.Lanes) -> None:
        self.lanes = lanes
        self.intervals = intervals
        self.starts = [a for a, _ in intervals]
        self.launched: set[int] = set()  # correlations of kept launches
        self.called: npt.NDArray[np.int64] | None = None  # sorted correlations of all launches
        self.points: dict[tuple[str, str], list[int]] = {}
        self.flows: set[int] = set()
        self.annotations: set[int] = set()  # External ids
        self.span: tuple[int, int] | None = None  # of the kept device work
        self._open: dict[tuple[str, str], list[bool]] = {}

    def begins(self, ts: int) -> bool:
        i = bisect_left(self.starts, ts + 1) - 1
        return i >= 0 and ts < self.intervals[i][1]

    def covers(self, ts: int, end: int) -> bool:
        """Whether an interval begins inside."""
        i = bisect_left(self.starts, ts)
        return i < len(self.starts) and self.starts[i] < end

    def _holds_point(self, e: Event, ts: int, end: int) -> bool:
        points = self.points.get((spell(e.get("pid")), spell(e.get("tid")))) if self.points else None
        if not points:
            return False
        i = bisect_left(points, ts)
        return i < len(points) and points[i] <= end

    def linked(self, correlation: int) -> bool:
        if correlation == 0 or self.called is None:
            return False
        i = int(self.called.searchsorted(correlation))
        return i < self.called.size and int(self.called[i]) == correlation

    def work(self, correlation: int, ts: int) -> bool:
        """Whether a piece of device work is kept. The rule of `select.take`."""
        if correlation in self.launched:
            return True
        return self.begins(ts) and not self.linked(correlation)

    def __call__(self, e: Any) -> bool:
        if type(e) is not dict:
            return False
        phase = e.get("ph")
        if phase == "M":
            return True
        if phase in ("s", "t", "f"):
            return _flow_key(e) in self.flows
        ts = _ns(e.get("ts"))
        if ts == NULL:
            return False
        if phase == "B" or phase == "E":
            # An end goes with its beginning, wherever it lies.
            stack = self._open.setdefault((spell(e.get("pid")), spell(e.get("tid"))), [])
            if phase == "E":
                return stack.pop() if stack else False
            stack.append(self.begins(ts))
            return stack[-1]
        if phase != "X":
            return self.begins(ts)
        return self._complete(e, ts)

    def _code(self, e: Event) -> int:
        """`Cat`, or one of the codes of `dialects`."""
        cat, name, pid = e.get("cat"), spell(e.get("name")), e.get("pid")
        code = dialects.code_of(cat if cat is None else spell(cat), pid, name)
        return self.lanes.code(spell(pid), spell(e.get("tid")), name) if code == dialects.UNDECIDED else code

    def _complete(self, e: Event, ts: int) -> bool:
        code = self._code(e)
        if Cat.KERNEL <= code <= Cat.MEMSET:
            return self.work(_correlation(e), ts)
        end = ts + max(0, _ns(e.get("dur")))
        cat = e.get("cat")
        if cat == "gpu_user_annotation":
            ident = first_id(e.get("args"), _EXTERNAL, 0)
            if ident:
                return ident in self.annotations
            return self.span is not None and ts < self.span[1] and end > self.span[0]
        if cat == "Trace":  # spans the whole recording
            return False
        if code == dialects.DROPPED and (correlation := _correlation(e)) and self.linked(correlation):
            return correlation in self.launched
        return self.begins(ts) or self.covers(ts, end) or self._holds_point(e, ts, end)


def choose(trace: Trace, marks: Marks, wanted: Selection) -> tuple[Callable[[Any], bool], tuple[int, int]]:
    """The part as a question to ask of each event, in the order of the file; and its window, in ns of the file.

    Raises TraceError where the trace has no such part.
    """
    import numpy as np

    base = trace.base_ns - trace.header.base_time_ns
    found = selecting.part(trace, wanted)
    intervals = list(zip((found.start + base).tolist(), (found.end + base).tolist(), strict=True))
    threads = trace.threads.select("pid", "tid").rows()
    part = _Part(intervals, _lanes(trace))
    part.called, part.launched = found.called, set(found.launched.tolist())
    part.points = {threads[thread]: (points + base).tolist() for thread, points in found.points.items()}
    work = select.take(trace, found).device
    if work.height:
        ends = work["ts"] + work["dur"]
        part.span = base + int(work["ts"].min()), base + int(ends.max())  # type: ignore[arg-type]
    part.annotations = {i for ts, stop, i in marks.annotations if part.begins(ts) or part.covers(ts, stop)}
    # Arrows whose start lies elsewhere are none of a part, wherever they end; of a stretch of time they are.
    arrows = found.begins(np.frombuffer(marks.flow_ts, np.int64) - base)
    if wanted.time_us is None:
        arrows &= np.frombuffer(marks.flow_start, np.bool_)
    part.flows = set(np.frombuffer(marks.flow_key, np.int64)[arrows].tolist())
    return part, (found.window[0] + base, found.window[1] + base)


def _lanes(trace: Trace) -> dialects.Lanes:
    lanes = trace.threads.select("pid", "tid", "process_name", "thread_name").rows()
    return dialects.Lanes(
        {pid: name for pid, _, name, _ in lanes if name is not None},
        {(pid, tid): name for pid, tid, _, name in lanes if name is not None},
    )
