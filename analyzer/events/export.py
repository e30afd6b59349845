"""The typed frames of a trace for other tools: names readable, columns documented, written in a stream.

One table below says what every column is: the frames are built from it, `tracecli schema events` prints
it, and a test holds both together.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer import output
from analyzer.errors import TraceError
from analyzer.events.schema import CONFIGS, Cat, Trace
from analyzer.output import Output

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an exported frame.

    dtype    of Polars; Parquet, Arrow and CSV have their own words for it.
    frames   which frames have it.
    """

    name: str
    dtype: str
    meaning: str
    frames: tuple[str, ...] = ("events",)


_BOTH = ("events", "host", "device")
_HOST = ("events", "host")
_WORK = ("events", "device")
_MEMORY = ("memory",)
_COLLECTIVES = ("collectives",)

#: In the order of the columns.
COLUMNS = (
    Column("side", "String", "host or device"),
    Column(
        "category",
        "String",
        "op, annotation, python, runtime, driver, overhead on the host; kernel, memcpy, memset on a device",
        _BOTH,
    ),
    Column("name", "String", "of the operator, annotation, frame, call, kernel or copy, as recorded", _BOTH),
    Column("ts_ns", "Int64", "start, ns from the first event (trace.base_ns of the report)", (*_BOTH, *_MEMORY)),
    Column("dur_ns", "Int64", "duration, ns", _BOTH),
    Column("pid", "String", "process, as the file spells it; of device work: the lane it was recorded on", _BOTH),
    Column("tid", "String", "thread, as the file spells it; of device work: the stream's lane", _BOTH),
    Column("process_name", "String", "from the trace's metadata; null: none", _BOTH),
    Column("thread_name", "String", "from the trace's metadata; null: none", _BOTH),
    Column("correlation", "Int64", "joins a call of the runtime or driver to the work it launched; null: none", _BOTH),
    Column("collective", "Int64", "row of the frame collectives, from 0; null: none", _BOTH),
    Column("shapes", "String", "input dims and types of an operator, as JSON; null: not recorded", _HOST),
    Column("strides", "String", "of the inputs, as JSON; null: not recorded", _HOST),
    Column("concrete", "String", "inputs that are no tensors, as JSON; null: not recorded", _HOST),
    Column("seq", "Int64", "sequence number: joins a backward operator to its forward one; null: not recorded", _HOST),
    Column("fwd_thread", "Int64", "of a backward operator: id of the forward one's thread; null: not recorded", _HOST),
    Column("device", "Int32", "device of the work; null on the host", _WORK),
    Column("stream", "Int64", "stream of the work; null: unknown, or on the host", _WORK),
    Column("bytes", "Int64", "of a copy or memset; null: not recorded", _WORK),
    Column("grid_x", "Int64", "launch configuration: blocks; null: not recorded", _WORK),
    Column("grid_y", "Int64", "blocks", _WORK),
    Column("grid_z", "Int64", "blocks", _WORK),
    Column("block_x", "Int64", "launch configuration: threads of a block; null: not recorded", _WORK),
    Column("block_y", "Int64", "threads of a block", _WORK),
    Column("block_z", "Int64", "threads of a block", _WORK),
    Column("registers", "Int64", "registers a thread", _WORK),
    Column("shared_memory", "Int64", "bytes of shared memory a block, static and dynamic", _WORK),
    Column("blocks_per_sm", "Float64", "grid blocks over SMs, as reported", _WORK),
    Column("warps_per_sm", "Float64", "as reported", _WORK),
    Column("occupancy", "Float64", "est. achieved occupancy, 0 to 100, as reported: 0 often means not measured", _WORK),
    Column("device_type", "Int32", "c10::DeviceType: 0 CPU, 1 CUDA, 6 HIP, ...", _MEMORY),
    Column("device_id", "Int32", "-1 for the CPU", _MEMORY),
    Column("bytes", "Int64", "allocated; negative: freed", _MEMORY),
    Column("allocated", "Int64", "bytes allocated after the event; null: not recorded", _MEMORY),
    Column("reserved", "Int64", "bytes reserved after the event; null: not recorded", _MEMORY),
    Column("collective", "Int64", "row, from 0; the column collective of events", _COLLECTIVES),
    Column("name", "String", "as recorded: allreduce, _allgather_base", _COLLECTIVES),
    Column("group", "String", "process group's name", _COLLECTIVES),
    Column("description", "String", "process group's description", _COLLECTIVES),
    Column("group_size", "Int64", "ranks of the group", _COLLECTIVES),
    Column("ranks", "String", "of the group, as recorded; shortened where many", _COLLECTIVES),
    Column("rank_start", "Int64", "first global rank of an evenly spaced group", _COLLECTIVES),
    Column("rank_stride", "Int64", "from one global rank to the next", _COLLECTIVES),
    Column("rank", "Int64", "of this process in the group", _COLLECTIVES),
    Column("source", "Int64", "rank that a receive names", _COLLECTIVES),
    Column("destination", "Int64", "rank that a send names", _COLLECTIVES),
    Column("seq", "Int64", "the group's count of collectives", _COLLECTIVES),
    Column("comms_id", "String", "the same on all ranks of one collective", _COLLECTIVES),
    Column("asynchronous", "Boolean", "whether it was issued as such", _COLLECTIVES),
    Column("dtype", "String", "of the elements", _COLLECTIVES),
    Column("in_elements", "Int64", "elements that this rank puts in", _COLLECTIVES),
    Column("out_elements", "Int64", "elements that this rank gets", _COLLECTIVES),
    Column("in_split", "String", "split of the input, as recorded", _COLLECTIVES),
    Column("out_split", "String", "split of the output, as recorded", _COLLECTIVES),
)  # fmt: skip

#: What each frame holds; rows keep the order of the file, the host's before the devices'.
FRAMES = {
    "events": "host and device events in one frame",
    "host": "operators, annotations, Python frames, runtime and driver calls",
    "device": "kernels, copies and memsets",
    "memory": "instants of the allocator, where memory was recorded",
    "collectives": "what was said of collectives, each combination once",
}
#: Suffix of a file -> what is written.
SUFFIXES = {".parquet": "parquet", ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc", ".csv": "csv"}


def columns(frame: str) -> tuple[Column, ...]:
    """The columns of a frame, in order."""
    return tuple(column for column in COLUMNS if frame in column.frames)


def page(frame: str = "events") -> str:
    """The columns of a frame as text."""
    rows = columns(frame)
    name = max(len(c.name) for c in rows)
    dtype = max(len(c.dtype) for c in rows)
    lines = [f"{frame}: {FRAMES[frame]}", ""]
    lines += [f"{c.name:<{name}}  {c.dtype:<{dtype}}  {c.meaning}" for c in rows]
    return "\n".join(lines) + "\n"


def lazy(trace: Trace, frame: str = "events") -> pl.LazyFrame:
    """A frame of a trace, with `columns(frame)`."""
    import polars as pl

    if frame == "memory":
        return trace.memory.lazy().rename({"ts": "ts_ns"}).select(_cast("memory"))
    if frame == "collectives":
        return trace.collectives.lazy().with_row_index("collective").select(_cast("collectives"))
    parts = {"host": ("host",), "device": ("device",), "events": ("host", "device")}[frame]
    frames = [_side(trace, side).select(_cast(frame, side)) for side in parts]
    return frames[0] if len(frames) == 1 else pl.concat(frames)


def _side(trace: Trace, side: str) -> pl.LazyFrame:
    import polars as pl

    names = pl.LazyFrame({"name": trace.names}).with_columns(key=pl.int_range(pl.len(), dtype=pl.Int32))
    threads = trace.threads.lazy().with_columns(thread=pl.int_range(pl.len(), dtype=pl.Int32))
    categories = pl.LazyFrame(
        {"cat": [int(c) for c in Cat], "category": [c.name.lower() for c in Cat]}, schema_overrides={"cat": pl.UInt8}
    )
    events = (
        (trace.host if side == "host" else trace.device).lazy().rename({"name": "key", "ts": "ts_ns", "dur": "dur_ns"})
    )
    events = _join(_join(_join(events, names, "key"), threads, "thread"), categories, "cat")
    none = pl.col("correlation") == 0
    events = events.with_columns(
        side=pl.lit(side), correlation=pl.when(~none).then("correlation"), collective=_or_null("collective")
    )
    if side == "host":
        texts = names.rename({"name": "text", "key": "shapes"})
        inputs = (
            trace.inputs.lazy()
            .select("strides", "concrete")
            .with_columns(inputs=pl.int_range(pl.len(), dtype=pl.Int32))
        )
        events = _join(_join(events, texts, "shapes"), inputs, "inputs")
        return events.drop("shapes").rename({"text": "shapes"})
    configs = trace.configs.lazy().select(*CONFIGS).with_columns(config=pl.int_range(pl.len(), dtype=pl.Int32))
    return _join(events, configs, "config").with_columns(stream=_or_null("stream"))


def _or_null(column: str) -> pl.Expr:
    """-1 as null."""
    import polars as pl

    return pl.when(pl.col(column) != -1).then(column)


def _join(events: pl.LazyFrame, table: pl.LazyFrame, key: str) -> pl.LazyFrame:
    """Look a table up by its rows; the order of the events stays."""
    return events.join(table, on=key, how="left", maintain_order="left")


def _cast(frame: str, side: str | None = None) -> list[pl.Expr]:
    """All columns of the frame, in order; null where a side has none of it."""
    import polars as pl

    own = {c.name for c in columns(side)} | {"side"} if side else {c.name for c in columns(frame)}
    return [
        (pl.col(c.name) if c.name in own else pl.lit(None)).cast(getattr(pl, c.dtype)).alias(c.name)
        for c in columns(frame)
    ]


def write(trace: Trace, target: Path | Output, frame: str = "events") -> None:
    """Write a frame; the suffix of the file says how. Raises TraceError."""
    import polars as pl

    target = output.of(target)
    form = SUFFIXES.get(target.path.suffix.lower())
    if form is None:
        raise TraceError("no format has this suffix", str(target.path), f"use one of {', '.join(SUFFIXES)}")
    rows = lazy(trace, frame)
    with target.open() as file:
        try:
            if form == "parquet":
                rows.sink_parquet(file)
            elif form == "ipc":
                # Strings as every reader knows them: views are newer than pandas and Spark in use.
                rows.sink_ipc(file, compat_level=pl.CompatLevel.oldest())
            else:
                rows.sink_csv(file)
        except (OSError, pl.exceptions.PolarsError) as e:
            # Polars says it in words: a full disk and a closed pipe are told apart by their number.
            if (said := re.search(r"\(os error (\d+)\)", str(e))) is None:
                raise
            raise OSError(number := int(said[1]), os.strerror(number)) from e
