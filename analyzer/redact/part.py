"""Which events make up a part of a trace: some steps, a stretch of time, the calls of an annotation.

The rules are those of `select.step`, for a file instead of frames: what is found in a first reading
(`Seen`) decides, event by event, in a second one (`choose`).
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analyzer.errors import TraceError
from analyzer.events.builder import NULL
from analyzer.events.schema import Cat
from analyzer.sources.kineto import dialects
from analyzer.sources.kineto.numbers import spell, to_id, to_ns
from analyzer.sources.limits import MAX_DISTANCE_NS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Event = dict[str, Any]

_STEP = re.compile(r"ProfilerStep#?\s*(\d+)")
_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Selection:
    """The part to keep; all of it, where nothing is said. At most one of the three.

    steps       first and last profiler step, both included: by name, number or position.
    time_us     from and to, in µs as the report counts them; None: open.
    annotation  name, and which of its calls (0 is the first, -1 the last); None: all of them.
    """

    steps: tuple[str, str] | None = None
    time_us: tuple[float | None, float | None] | None = None
    annotation: tuple[str, int | None] | None = None

    @property
    def whole(self) -> bool:
        return self.steps is None and self.time_us is None and self.annotation is None


@dataclass(slots=True)
class Seen:
    """Where the events lie that a part is found by. Times are absolute ns; nothing is kept of other events."""

    steps: list[tuple[int, int, str]] = field(default_factory=list)
    annotations: list[tuple[int, int]] = field(default_factory=list)  # calls of the one that is wanted
    outside: list[tuple[int, int, int]] = field(default_factory=list)  # annotations: start, end, External id
    lanes: dict[tuple[str, str], int] = field(default_factory=dict)
    call_correlation: array[int] = field(default_factory=lambda: array("q"))
    call_ts: array[int] = field(default_factory=lambda: array("q"))
    call_lane: array[int] = field(default_factory=lambda: array("i"))
    work_correlation: array[int] = field(default_factory=lambda: array("q"))
    work_ts: array[int] = field(default_factory=lambda: array("q"))
    work_end: array[int] = field(default_factory=lambda: array("q"))
    flow_id: array[int] = field(default_factory=lambda: array("q"))
    flow_ts: array[int] = field(default_factory=lambda: array("q"))
    flow_start: bytearray = field(default_factory=bytearray)
    times: array[int] = field(default_factory=lambda: array("q"))  # of all that a report's clock rests on


def _ns(value: Any) -> int:
    return to_ns(value[1:] if type(value) is str and value.startswith("#") else value)


def _code(e: Event) -> int:
    """`Cat`, or one of the codes of `dialects`."""
    cat, name = e.get("cat"), e.get("name")
    text = name if type(name) is str else ""
    if cat is None or cat == "":
        return dialects.code_without_category(e.get("pid"), text)
    code = dialects.CODES.get(cat, dialects.UNKNOWN) if type(cat) is str else dialects.UNKNOWN
    if code == dialects.BY_NAME:
        return dialects.code_by_name(text)
    return dialects.code_by_pid(e.get("pid"), text) if code == dialects.BY_PID else code


def _integer(args: Any, *keys: str) -> int:
    """The first of the keys as a whole number; 0: none."""
    if type(args) is dict:
        for key in keys:
            if key in args:
                value = to_id(args[key])
                return 0 if value == NULL else value
    return 0


def _correlation(e: Event) -> int:
    return _integer(e.get("args"), "correlation", "correlation_id", "connection_id")


def _flow_key(e: Event) -> int:
    """A flow's category and id as one number: the same in both passes of one process."""
    return hash((spell(e.get("cat")), spell(e.get("id"))))


def _is_device(code: int) -> bool:
    return Cat.KERNEL <= code <= Cat.MEMSET


def see(seen: Seen, events: Iterable[Any], wanted: Selection) -> None:
    """Note events. Their times may be text behind a `#`."""
    clock = wanted.time_us is not None
    name_wanted = wanted.annotation[0] if wanted.annotation else None
    for e in events:
        if type(e) is not dict:
            continue
        phase = e.get("ph")
        if phase == "X":
            ts, dur = _ns(e.get("ts")), _ns(e.get("dur"))
            if ts == NULL or dur < 0:
                continue
            code = _code(e)
            if clock and (code < 32 or code == dialects.UNDECIDED):
                seen.times.append(ts)
            if code == Cat.ANNOTATION:
                name = e.get("name")
                if type(name) is str and name.startswith("ProfilerStep"):
                    seen.steps.append((ts, ts + dur, name))
                if name == name_wanted:
                    seen.annotations.append((ts, ts + dur))
                seen.outside.append((ts, ts + dur, _integer(e.get("args"), "External id")))
            elif code in (Cat.RUNTIME, Cat.DRIVER):
                if (correlation := _correlation(e)) != 0:
                    lane = seen.lanes.setdefault((spell(e.get("pid")), spell(e.get("tid"))), len(seen.lanes))
                    seen.call_correlation.append(correlation)
                    seen.call_ts.append(ts)
                    seen.call_lane.append(lane)
            elif _is_device(code):
                seen.work_correlation.append(_correlation(e))
                seen.work_ts.append(ts)
                seen.work_end.append(ts + dur)
        elif phase in ("s", "t", "f"):
            ts = _ns(e.get("ts"))
            if ts != NULL:
                seen.flow_id.append(_flow_key(e))
                seen.flow_ts.append(ts)
                seen.flow_start.append(phase == "s")
        elif clock and phase in ("i", "I") and e.get("name") == "[memory]" and (ts := _ns(e.get("ts"))) != NULL:
            seen.times.append(ts)


class _Part:
    """Decides about one event at a time, in the order of the file.

    Kept is what begins in one of the intervals, what is open when one begins on a host's thread
    (enclosing annotations, the operator in which the part starts), device work whose launch is kept,
    and of a launch that was taken for its work's sake (`points`, by lane) everything around it.
    """

    def __init__(self, intervals: list[tuple[int, int]]) -> None:
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

    def _covers(self, ts: int, end: int) -> bool:
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
        """Whether a piece of device work is kept. The rule of `select.step`."""
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

    def _complete(self, e: Event, ts: int) -> bool:
        code = _code(e)
        if _is_device(code):
            return self.work(_correlation(e), ts)
        end = ts + max(0, _ns(e.get("dur")))
        cat = e.get("cat")
        if cat == "gpu_user_annotation":
            ident = _integer(e.get("args"), "External id")
            if ident:
                return ident in self.annotations
            return self.span is not None and ts < self.span[1] and end > self.span[0]
        if cat == "Trace":  # spans the whole recording
            return False
        if code == dialects.DROPPED and (correlation := _correlation(e)) and self.linked(correlation):
            return correlation in self.launched
        return self.begins(ts) or self._covers(ts, end) or self._holds_point(e, ts, end)


def choose(seen: Seen, wanted: Selection, path: str) -> Callable[[Any], bool] | None:
    """The part as a question to ask of each event, in the order of the file; None: everything.

    path  for messages. Raises TraceError where the trace has no such part.
    """
    if wanted.whole:
        return None
    import numpy as np

    intervals = _intervals(seen, wanted, path)
    part = _Part(intervals)
    call_correlation = np.frombuffer(seen.call_correlation, np.int64)
    call_ts = np.frombuffer(seen.call_ts, np.int64)
    part.called = np.unique(call_correlation)
    inside = _inside(call_ts, intervals)
    part.launched = set(call_correlation[inside].tolist())
    work = [np.frombuffer(a, np.int64) for a in (seen.work_correlation, seen.work_ts, seen.work_end)]
    if wanted.time_us is not None:
        # A stretch of time is asked for what ran in it: the launches of its work are kept where they are.
        low, high = intervals[0]
        runs = (work[1] < high) & (work[2] > low) & (work[0] != 0)
        correlations = np.unique(work[0][runs])
        part.launched.update(correlations.tolist())
        lanes = list(seen.lanes)
        early = np.flatnonzero(np.isin(call_correlation, correlations) & ~inside)
        for row in early.tolist():
            part.points.setdefault(lanes[seen.call_lane[row]], []).append(seen.call_ts[row])
        for points in part.points.values():
            points.sort()
    kept = np.isin(work[0], np.fromiter(part.launched, np.int64, len(part.launched)))
    kept |= _inside(work[1], intervals) & ~np.isin(work[0], part.called[part.called != 0])
    if kept.any():
        part.span = int(work[1][kept].min()), int(work[2][kept].max())
    part.annotations = {i for ts, end, i in seen.outside if i and (part.begins(ts) or part._covers(ts, end))}
    part.flows = _flows(seen, intervals, both=wanted.time_us is None)
    return part


def _flows(seen: Seen, intervals: list[tuple[int, int]], both: bool) -> set[int]:
    """Arrows of the part. both: one whose start lies elsewhere is none of it, wherever it ends."""
    import numpy as np

    ids = np.frombuffer(seen.flow_id, np.int64)
    starts = np.frombuffer(seen.flow_start, np.bool_)
    inside = _inside(np.frombuffer(seen.flow_ts, np.int64), intervals)
    return set(ids[inside & starts if both else inside].tolist())


def _inside(ts: npt.NDArray[np.int64], intervals: list[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    import numpy as np

    if not intervals:
        return np.zeros(ts.size, np.bool_)
    starts = np.array([a for a, _ in intervals], np.int64)
    ends = np.array([b for _, b in intervals], np.int64)
    at = np.searchsorted(starts, ts, "right") - 1
    found: npt.NDArray[np.bool_] = (at >= 0) & (ts < ends[at])
    return found


def _intervals(seen: Seen, wanted: Selection, path: str) -> list[tuple[int, int]]:
    """The intervals of the part: sorted, apart from each other."""
    if wanted.steps is not None:
        steps = sorted(seen.steps, key=lambda s: s[0])
        if not steps:
            raise TraceError("the trace has no profiler steps", path, "keep a part of it by --time or --annotation")
        first, last = (_find_step(steps, name, path) for name in wanted.steps)
        chosen = steps[min(first, last) : max(first, last) + 1]
        return [(chosen[0][0], max(end for _, end, _ in chosen))]
    if wanted.annotation is not None:
        return _merged(_calls(seen, wanted.annotation, path))
    assert wanted.time_us is not None
    base, end = _clock(seen.times)
    low, high = wanted.time_us
    start = base if low is None else base + round(low * 1000)
    stop = end + 1 if high is None else base + round(high * 1000)
    if stop <= start or start > end or stop <= base:
        raise TraceError(
            "nothing happens in that stretch of time", path, f"the trace lasts from 0 to {(end - base) / 1000:.3f} µs"
        )
    return [(start, stop)]


def _find_step(steps: list[tuple[int, int, str]], wanted: str, path: str) -> int:
    """By name, by the number in the name, or by position; as `select.step` finds it."""
    names = [name for _, _, name in steps]
    if wanted in names:
        return names.index(wanted)
    numbers = [int(found[1]) if (found := _STEP.match(name)) else None for name in names]
    try:
        number = int(wanted)
    except ValueError:
        number = len(names)
    if number in numbers:
        return numbers.index(number)
    if -len(names) <= number < len(names):
        return number % len(names)
    more = ", …" if len(names) > _MOST_SHOWN else ""
    raise TraceError(f"no step {wanted!r}", path, f"the steps are: {', '.join(names[:_MOST_SHOWN])}{more}")


def _calls(seen: Seen, wanted: tuple[str, int | None], path: str) -> list[tuple[int, int]]:
    name, number = wanted
    calls = sorted(seen.annotations)
    if not calls:
        raise TraceError(f"no annotation is called {name!r}", path, "`tracecli analyze` lists them")
    if number is None:
        return calls
    if not -len(calls) <= number < len(calls):
        raise TraceError(f"{name!r} has no call {number}", path, f"it has {len(calls)}, from 0 on")
    return [calls[number]]


def _merged(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1]:
            out[-1] = out[-1][0], max(out[-1][1], end)
        else:
            out.append((start, end))
    return out


def _clock(times: array[int]) -> tuple[int, int]:
    """First and last begin of what a report counts, without those whose clock is broken; see `assembly`."""
    import numpy as np

    if not times:
        return 0, 0
    ts = np.frombuffer(times, np.int64)
    if int(ts.max()) - int(ts.min()) > MAX_DISTANCE_NS:
        middle = int(np.partition(ts, (ts.size - 1) // 2)[(ts.size - 1) // 2])
        ts = ts[(ts >= middle - MAX_DISTANCE_NS) & (ts <= middle + MAX_DISTANCE_NS)]
    return int(ts.min()), int(ts.max())
