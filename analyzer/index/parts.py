"""Where the window went: parts that add up to it. The table is DESIGN's, "verdict"."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index.activity import Cause
from analyzer.index.bound import LATENCY_LIMIT_NS
from analyzer.index.intervals import length
from analyzer.report.columns import Text

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.tree import Ints


class Part(IntEnum):
    """A part of the window. The names are the report's; the order is that of ties."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPIES = 2
    DISPATCH = 3
    PAUSES = 4
    INPUT = 5
    WAITS = 6
    ALLOCATOR = 7
    STARTUP = 8
    DEVICE = 9
    PROFILER = 10
    EARLIER_WORK = 11
    NOT_RECORDED = 12
    UNKNOWN = 13

    @property
    def key(self) -> str:
        return self.name.lower()


#: A part's key: one of a closed set, as the schema says.
PartKey = Annotated[Text, msgspec.Meta(extra_json_schema={"enum": [part.key for part in Part]})]

OF_CAUSE: Mapping[Cause, Part] = {
    Cause.UNLINKED: Part.UNKNOWN,
    Cause.NOT_RECORDED: Part.NOT_RECORDED,
    Cause.DEVICE_TURNAROUND: Part.DEVICE,
    Cause.GRAPH_INTERNAL: Part.DEVICE,
    Cause.DEPENDENCY: Part.DEVICE,
    Cause.LAUNCH_LATENCY: Part.DISPATCH,
    Cause.BLOCKING_SYNC: Part.WAITS,
    Cause.PAGEABLE_COPY: Part.WAITS,
    Cause.ALLOCATOR: Part.ALLOCATOR,
    Cause.GRAPH_CAPTURE: Part.STARTUP,
    Cause.FIRST_USE: Part.STARTUP,
    Cause.COMPILE: Part.STARTUP,
    Cause.INPUT_PIPELINE: Part.INPUT,
    Cause.COLLECTIVE: Part.COMMUNICATION,
    Cause.PROFILER: Part.PROFILER,
    Cause.DISPATCH: Part.DISPATCH,
    Cause.COMPILED_OVERHEAD: Part.DISPATCH,
    Cause.PYTHON: Part.DISPATCH,
    Cause.NO_HOST_EVENT: Part.DISPATCH,
    Cause.EARLIER_WORK: Part.EARLIER_WORK,
}
#: A launch path takes microseconds, and so does a stream that waits for another. Beyond LATENCY_LIMIT_NS work that
#: was launched and did not start waited for something that the trace does not show.
_LIMITED = np.isin(np.arange(len(Cause)), (Cause.LAUNCH_LATENCY, Cause.DEPENDENCY))
_PART_OF = np.array([OF_CAUSE[cause] for cause in Cause], np.int8)

#: Busy time is told in this order where work of several kinds overlaps. What earlier work hides cost nothing.
BUSY = (Part.COMPUTE, Part.EARLIER_WORK, Part.COMMUNICATION, Part.COPIES, Part.STARTUP)


def kind_of_work(work: pl.DataFrame) -> pl.Expr:
    """Part of each row of device work, by the columns cat, communication, earlier and autotuning."""
    return (
        pl.when("earlier")
        .then(int(Part.EARLIER_WORK))
        .when("autotuning")
        .then(int(Part.STARTUP))
        .when("communication")
        .then(int(Part.COMMUNICATION))
        .when(pl.col("cat") == int(Cat.KERNEL))
        .then(int(Part.COMPUTE))
        .otherwise(int(Part.COPIES))
        .cast(pl.Int8)
    )


def clipped(spans: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """Rows cut to [start, end): columns `begin`, `ns` (pieces) or `ts`, `end` (work); what lies outside is left out."""
    if "begin" in spans.columns:
        reach = spans.select(first=pl.col("begin").min(), last=(pl.col("begin") + pl.col("ns")).max())
        if not spans.height or (reach["first"][0] >= start and reach["last"][0] <= end):
            return spans
        stop = pl.min_horizontal(pl.col("begin") + pl.col("ns"), end)
        cut = spans.with_columns(begin=pl.max_horizontal("begin", start), stop=stop)
        return cut.with_columns(ns=pl.col("stop") - pl.col("begin")).drop("stop").filter(pl.col("ns") > 0)
    cut = spans.with_columns(ts=pl.max_horizontal("ts", start), end=pl.min_horizontal("end", end))
    return cut.filter(pl.col("end") > pl.col("ts"))


def busy(work: pl.DataFrame) -> dict[Part, int]:
    """Device time of work by part, each instant of a device once (ns, all devices). Rows of `Device.frame`."""
    rows = work.select("device", "ts", "end", part=kind_of_work(work))
    present = rows["part"].unique().to_list()
    out: dict[Part, int] = {}
    told = 0
    for position, part in enumerate(BUSY):
        if part in present:
            sofar = [int(p) for p in BUSY[: position + 1]]
            total = length(rows if set(present) <= set(sofar) else rows.filter(pl.col("part").is_in(sofar)))
            out[part] = total - told
            told = total
    return out


def usual(pieces: pl.DataFrame) -> pl.DataFrame:
    """Pieces of launch latency and dependency cut to what these can explain; what is left of them is unknown."""
    cause, ns = pieces["cause"].to_numpy(), pieces["ns"].to_numpy()
    return pieces.with_columns(ns=pl.Series(_usual(cause, ns)))


def _usual(cause: npt.NDArray[np.int8], ns: Ints) -> Ints:
    cut: Ints = np.where(_LIMITED[cause], np.minimum(ns, LATENCY_LIMIT_NS), ns)
    return cut


def of_pieces(pieces: pl.DataFrame) -> npt.NDArray[np.int8]:
    """Part of each piece of idle time: columns cause, ns, pause (bool). Too long a piece is unknown as a whole."""
    cause, ns, pause = (pieces[column].to_numpy() for column in ("cause", "ns", "pause"))
    part: npt.NDArray[np.int8] = _PART_OF[cause]
    part[_LIMITED[cause] & (ns > LATENCY_LIMIT_NS)] = Part.UNKNOWN
    part[pause] = Part.PAUSES
    return part


def idle(pieces: pl.DataFrame) -> dict[Part, int]:
    """Idle time by part (ns). pieces: columns cause, ns, pause (bool)."""
    cause, ns, pause = (pieces[column].to_numpy() for column in ("cause", "ns", "pause"))
    usual = _usual(cause, ns)
    part = _PART_OF[cause]
    part[pause] = Part.PAUSES
    # Sums in doubles are exact here: no trace lasts the 104 days that 2^53 ns are.
    told = np.bincount(part, usual, len(Part)).astype(np.int64)
    told[Part.UNKNOWN] += int((ns - usual).sum())
    return {part: int(told[part]) for part in Part if told[part]}


def total(*some: Mapping[Part, int], devices: int = 1) -> dict[Part, int]:
    """Sum of parts, averaged over devices; every part has an entry. What rounding leaves goes to the largest part."""
    sums = {part: sum(one.get(part, 0) for one in some) for part in Part}
    out = {part: ns // devices for part, ns in sums.items()}
    largest = max(Part, key=lambda part: out[part])
    out[largest] += sum(sums.values()) // devices - sum(out.values())
    return out
