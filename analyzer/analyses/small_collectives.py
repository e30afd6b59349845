"""Collectives of small messages: their cost is the start of each, not what they move."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.report.columns import Bytes, Count, Name, Ns, Row, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

ORDER = 59

#: NVLink moves this in a few µs: below it a collective's start is the cost.
BELOW_BYTES = 1024 * 1024
_SIZES = {
    "float": 4, "float32": 4, "int": 4, "int32": 4, "half": 2, "float16": 2, "bfloat16": 2, "long": 8, "int64": 8,
    "double": 8, "float64": 8, "byte": 1, "char": 1, "bool": 1, "uint8": 1, "int8": 1, "float8_e4m3fn": 1,
    "float8_e5m2": 1,
}  # fmt: skip
#: What a late launch of one costs the device.
LATE = (Cause.DISPATCH, Cause.COMPILED_OVERHEAD, Cause.PYTHON, Cause.LAUNCH_LATENCY, Cause.COLLECTIVE)


class SmallMessages(Row, frozen=True, kw_only=True):
    """Collectives of one name whose messages are small."""

    name: Annotated[Name, column("collective", "as recorded: allreduce, _allgather_base, ..")]
    runs: Annotated[Durations, column("", "device time of each")]
    bytes_median: Annotated[Bytes, column("bytes", "of the usual message, of this rank")]


class Small(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "below_bytes"

    below_bytes: Annotated[Bytes, column("", "size below which a message is small")]
    count: Annotated[Count, column("collectives", "in the window, with a recorded size")]
    exposed_ns: Annotated[Ns, column("exposed", "device-busy time in which nothing but they ran")]
    idle_ns: Annotated[Ns, column("idle before", "idle time of late launches in the gaps that they ended")]
    names: Annotated[tuple[SmallMessages, ...], column("", "the most device time first")]


class SmallCollectives(Result, frozen=True, kw_only=True):
    small_collectives: Small


def analyze(chains: Chains) -> SmallCollectives:
    work = chains.account.work.filter(~pl.col("earlier"))
    said = chains.trace.collectives
    of_row = said.select(
        message="name",
        bytes=pl.col("in_elements")
        * pl.col("dtype").str.to_lowercase().replace_strict(_SIZES, default=None, return_dtype=pl.Int64),
    ).with_row_index("collective")
    told = work.join(
        of_row.with_columns(pl.col("collective").cast(work.schema["collective"])),
        on="collective",
        how="left",
        maintain_order="left",
    )
    small = (pl.col("cat") == int(Cat.KERNEL)) & pl.col("communication") & (pl.col("bytes_right") < BELOW_BYTES)
    mine = told.select(small.fill_null(False)).to_series().to_numpy()
    rows = told.filter(pl.Series(mine))
    ended = exposure.gaps_of(chains, LATE).filter(~pl.col("edge"))
    launches = rows["launch"].drop_nulls().implode()
    groups = (
        rows.group_by("message")
        .agg(pl.col("dur"), pl.col("bytes_right").median())
        .sort(pl.col("dur").list.sum(), "message", descending=[True, False])
    )
    return SmallCollectives(
        small_collectives=Small(
            below_bytes=BELOW_BYTES,
            count=rows.height,
            exposed_ns=exposure.alone(work, np.asarray(mine, bool)),
            idle_ns=int(ended.filter(pl.col("launch").is_in(launches))["ns"].sum()),
            names=tuple(
                SmallMessages(name=name or "(unnamed)", runs=runs, bytes_median=int(size))
                for name, each, size in groups.iter_rows()
                if (runs := Durations.of(pl.Series(each)))
            ),
        )
    )
