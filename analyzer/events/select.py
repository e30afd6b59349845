"""A part of a trace: some steps, the calls of an annotation, a stretch of time; any intervals of the host's time.

A part holds the host events that begin in its intervals or are open when one begins, the device work that was
launched in them, and the window that was asked for. `analyze` and `share` take the same part.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.errors import TraceError
from analyzer.events.schema import HOST_CALLS, Cat, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_MOST_SHOWN = 8
_STEP = r"^ProfilerStep#?\s*(\d+)"


@dataclass(frozen=True, slots=True)
class Selection:
    """The part to keep; all of it, where nothing is said. At most one of these.

    steps       first and last profiler step, both included: by name, number or position.
    time_us     from and to, in µs as the report counts them; None: open.
    annotation  name, and which of its calls (0 is the first, -1 the last); None: all of them.
    phase       name, as the report has it.

    engines     file with more rows for the table of engines, by which phases are found and named: of the whole, too.
    """

    steps: tuple[str, str] | None = None
    time_us: tuple[float | None, float | None] | None = None
    annotation: tuple[str, int | None] | None = None
    phase: str | None = None
    engines: str | None = None

    @property
    def whole(self) -> bool:
        return self.steps is None and self.time_us is None and self.annotation is None and self.phase is None


@dataclass(frozen=True)
class Part:
    """What a part consists of. Times in ns, as the trace counts them.

    start, end  intervals, sorted and apart from each other.
    launched    correlations whose device work is kept; called: all that were called. Both sorted.
    points      thread -> when launches were called that are kept for their work's sake, sorted.
    window      what the part's figures speak of.
    """

    start: Ints
    end: Ints
    launched: Ints
    called: Ints
    points: dict[int, Ints]
    window: tuple[int, int]

    def begins(self, ts: Ints) -> Mask:
        """Whether each instant lies in an interval."""
        return _inside(ts, self.start, self.end)

    def covers(self, start: Ints, end: Ints) -> Mask:
        """Whether an interval of the part begins in each [start, end)."""
        at = np.searchsorted(self.start, start)
        return np.asarray(np.append(self.start, np.iinfo(np.int64).max)[at] < end)


def choose(trace: Trace, start: Ints, end: Ints, *, time: bool = False) -> Part:
    """The part of some intervals, which may overlap (ns).

    time  of a stretch of time is asked what ran in it: the launches of its work are kept wherever they are, and the
          window is the stretch. Else the window ends with the last work that the part launched.
    """
    start, end = _merged(start, end)
    calls = trace.host.filter((pl.col("correlation") != 0) & pl.col("cat").is_in([int(c) for c in HOST_CALLS]))
    called, at = calls["correlation"].to_numpy(), calls["ts"].to_numpy()
    inside = _inside(at, start, end)
    launched, points = np.unique(called[inside]), {}
    correlation, ran = trace.device["correlation"].to_numpy(), trace.device["ts"].to_numpy()
    done = ran + trace.device["dur"].to_numpy()
    if time:
        runs = np.unique(correlation[(ran < end[-1]) & (done > start[0]) & (correlation != 0)])
        early = np.isin(called, runs) & ~inside
        thread = calls["thread"].to_numpy()[early]
        points = {int(one): np.sort(at[early][thread == one]) for one in np.unique(thread)}
        launched = np.union1d(launched, runs)
        window = int(start[0]), int(end[-1])
    else:
        last = done[np.isin(correlation, launched)].max(initial=int(end[-1]))
        window = int(start[0]), int(last)
    return Part(start, end, launched, np.unique(called), points, window)


def take(trace: Trace, part: Part) -> Trace:
    """The events of a part, and its window."""
    ts, dur, thread = (trace.host[column].to_numpy() for column in ("ts", "dur", "thread"))
    kept = part.begins(ts) | part.covers(ts, ts + dur)
    for one, points in part.points.items():
        mine = np.nonzero(thread == one)[0]
        first = np.append(points, np.iinfo(np.int64).max)[np.searchsorted(points, ts[mine])]
        kept[mine] |= first <= ts[mine] + dur[mine]
    host = trace.host.filter(pl.Series(kept))
    correlation, ran = trace.device["correlation"].to_numpy(), trace.device["ts"].to_numpy()
    work = np.isin(correlation, part.launched) | (part.begins(ran) & ~np.isin(correlation, part.called))
    device = trace.device.filter(pl.Series(work))
    # What only other parts name is not known of this one.
    used = np.zeros(trace.names.len(), bool)
    for ids in (host["name"], host["shapes"], device["name"]):
        used[ids.filter(ids >= 0).to_numpy()] = True
    return replace(
        trace,
        names=trace.names.set(pl.Series(~used), ""),
        host=host,
        device=device,
        memory=trace.memory.filter(pl.Series(part.begins(trace.memory["ts"].to_numpy()))),
        window=part.window,
    )


def intervals(trace: Trace, wanted: Selection) -> tuple[Ints, Ints]:
    """Start and end (ns) of what was asked for, but for phases.

    Raises TraceError where the trace has no such part.
    """
    if wanted.steps is not None:
        found = steps(trace)
        first, last = sorted(find(trace, found, name) for name in wanted.steps)
        chosen = found[first : last + 1]
        return chosen["ts"].to_numpy()[:1], (chosen["ts"] + chosen["dur"]).to_numpy().max(keepdims=True)
    if wanted.annotation is not None:
        return _calls(trace, *wanted.annotation)
    low, high = wanted.time_us or (None, None)
    last_begin = max((int(f["ts"].max()) for f in (trace.host, trace.device, trace.memory) if len(f)), default=0)  # type: ignore[arg-type]
    start = 0 if low is None else round(low * 1000)
    stop = last_begin + 1 if high is None else round(high * 1000)
    if stop <= start or start > last_begin or stop <= 0:
        hint = f"the trace lasts from 0 to {last_begin / 1000:.3f} µs"
        raise TraceError("nothing happens in that stretch of time", trace.path, hint)
    return np.array([start], np.int64), np.array([stop], np.int64)


# -- steps and annotations -------------------------------------------------------------------------------------


def step_names(trace: Trace) -> list[str]:
    """Names of the profiler's steps, in time order."""
    return steps(trace)["name"].to_list()


def steps(trace: Trace) -> pl.DataFrame:
    """The steps in time order: name, number, ts, dur."""
    marks = trace.host.filter(pl.col("cat") == int(Cat.ANNOTATION)).select("name", "ts", "dur")
    named = marks.with_columns(name=trace.names.gather(marks["name"]))
    return (
        named.with_columns(number=pl.col("name").str.extract(_STEP).cast(pl.Int64, strict=False))
        .filter(pl.col("name").str.starts_with("ProfilerStep"))
        .sort("ts", maintain_order=True)
    )


def find(trace: Trace, steps: pl.DataFrame, wanted: str) -> int:
    """Row of a step in `steps`: by its name, its number in the name, or its position.

    Raises TraceError where there is no such step.
    """
    names = steps["name"].to_list()
    if not names:
        raise TraceError("the trace has no profiler steps", trace.path, "leave --step out, to take the whole of it")
    if wanted in names:
        return names.index(wanted)
    numbers = steps["number"].to_list()
    with suppress(ValueError):
        number = int(wanted)
        if number in numbers:
            return numbers.index(number)
        if -len(names) <= number < len(names):
            return number % len(names)
    raise TraceError(f"no step {wanted!r}", trace.path, f"the steps are: {listed(names)}")


def listed(names: list[str]) -> str:
    """The first of some names."""
    return ", ".join(names[:_MOST_SHOWN]) + (", …" if len(names) > _MOST_SHOWN else "")


def _calls(trace: Trace, name: str, number: int | None) -> tuple[Ints, Ints]:
    """The calls of an annotation, or one of them."""
    marks = trace.host.filter(cat=int(Cat.ANNOTATION))
    named = marks.filter(trace.names.gather(marks["name"]) == name).sort("ts", "dur")
    if not named.height:
        raise TraceError(f"no annotation is called {name!r}", trace.path, "`tracecli analyze` lists them")
    if number is not None:
        if not -named.height <= number < named.height:
            raise TraceError(f"{name!r} has no call {number}", trace.path, f"it has {named.height}, from 0 on")
        named = named[number % named.height]
    start = named["ts"].to_numpy()
    return start, start + named["dur"].to_numpy()


def _merged(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The union of intervals: sorted, and apart from each other."""
    order = np.lexsort((end, start))
    start, end = start[order], np.maximum.accumulate(end[order])
    new = np.append(True, start[1:] > end[:-1])
    return start[new], end[np.append(new[1:], True)]


def _inside(ts: Ints, start: Ints, end: Ints) -> Mask:
    at = np.searchsorted(start, ts, "right") - 1
    return np.asarray((at >= 0) & (ts < end[at]))
