"""A part of a trace: one step, with the device work that it launched."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import polars as pl

from analyzer.errors import TraceError
from analyzer.events.schema import HOST_CALLS, Cat, Trace

_MOST_SHOWN = 8
_STEP = r"^ProfilerStep#?\s*(\d+)"


def step_names(trace: Trace) -> list[str]:
    """Names of the profiler's steps, in time order."""
    return steps(trace)["name"].to_list()


def step(trace: Trace, wanted: str) -> Trace:
    """The trace of one step: by its name, its number in the name, or its position (`0`, `-1`).

    Host events that start in the step are kept, Python frames that overlap it are cut to it; device
    work is kept where it was launched in the step, or, unlinked, where it starts in it; instants of the
    allocator where they lie in it.
    Raises TraceError where there is no such step.
    """
    found = steps(trace)
    row = find(trace, found, wanted)
    start, end = found["ts"][row], found["ts"][row] + found["dur"][row]
    frame = pl.col("cat") == int(Cat.PYTHON)
    stop = pl.col("ts") + pl.col("dur")
    begins = (pl.col("ts") >= start) & (pl.col("ts") < end)
    host = trace.host.filter(begins | (frame & (pl.col("ts") < end) & (stop > start))).with_columns(
        ts=pl.when(frame).then(pl.col("ts").clip(lower_bound=start)).otherwise("ts"),
        dur=pl.when(frame)
        .then(pl.min_horizontal(stop, pl.lit(end)) - pl.col("ts").clip(lower_bound=start))
        .otherwise("dur"),
    )
    calls = (pl.col("correlation") != 0) & pl.col("cat").is_in([int(c) for c in HOST_CALLS])
    launched = host.filter(calls)["correlation"].unique()
    elsewhere = trace.host.filter(calls)["correlation"].unique()
    mine = pl.col("correlation").is_in(launched.implode())
    unlinked = ~pl.col("correlation").is_in(elsewhere.implode())
    return replace(
        trace, host=host, device=trace.device.filter(mine | (unlinked & begins)), memory=trace.memory.filter(begins)
    )


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
    more = ", …" if len(names) > _MOST_SHOWN else ""
    raise TraceError(f"no step {wanted!r}", trace.path, f"the steps are: {', '.join(names[:_MOST_SHOWN])}{more}")
