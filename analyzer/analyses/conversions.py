"""Work that only changes how numbers lie in memory: layouts around convolutions, and number formats there and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.index.kernel_names import decode
from analyzer.index.vocabulary import matches
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, Text, column
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Mask, Rows

ORDER = 59

#: Rows that are listed, the most device time first.
LISTED = 20
_CONVOLUTION = r"(?i)^aten::(?:\w*conv(?:olution)?\w*|miopen_\w+)$"
#: Operators that convert a tensor because somebody asked: what is outside of them is the user's own code.
_ASKED = r"^aten::(?:to|_to_copy|copy_|type|type_as|float|half|bfloat16|double|_autocast_to_\w+)$"
_WIDTH = {"fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2}
#: Point-wise kernels between the two conversions: one or two could as well run in the narrow format; a longer chain,
#: or a reduction, is a computation that was meant to be precise.
BETWEEN = 2


class LayoutChange(Row, frozen=True, kw_only=True):
    """Kernels of one name that a convolution runs before or after its own."""

    name: Annotated[Name, column("kernel", "as the profiler wrote it")]
    calls: Annotated[Count, column("calls", "in the window")]
    total_ns: Annotated[Ns, column("total", "sum of the durations", bar=True)]
    median_ns: Annotated[MeanNs, column("median", "median duration")]


class RoundTrip(Row, frozen=True, kw_only=True):
    """Conversions to a wider format and back, with at most two point-wise kernels between them."""

    IDENTITY: ClassVar[str] = "narrow"

    narrow: Annotated[Text, column("format", "that the numbers come from and go back to")]
    wide: Annotated[Text, column("through", "format between the two conversions")]
    path: Annotated[tuple[str, ...], column("", "of the first conversion back, outermost first")]
    count: Annotated[Count, column("round trips", "in the window")]
    device_ns: Annotated[Ns, column("device", "device time of both conversions", bar=True)]


class Converted(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "layout_ns"

    layout_calls: Annotated[Count, column("layout kernels", "launched by convolutions")]
    layout_ns: Annotated[Ns, column("layout", "device-busy time in which only they ran")]
    convolutions: Annotated[Count, column("convolutions", "outermost calls that launched device work")]
    layouts: Annotated[tuple[LayoutChange, ...], column("", "the most device time first")]
    round_trips_ns: Annotated[Ns, column("round trips", "device-busy time in which only their conversions ran")]
    round_trips: Annotated[tuple[RoundTrip, ...], column("", "the most device time first")]


class Conversions(Result, frozen=True, kw_only=True):
    conversions: Converted


def analyze(chains: Chains) -> Conversions:
    work = chains.account.work
    layout, convolutions = _layouts(chains, work)
    trips = _round_trips(chains, work)
    some = work.filter(pl.Series(layout))
    calls = (
        some.group_by("name")
        .agg(calls=pl.len(), total_ns=pl.col("dur").sum(), median_ns=pl.col("dur").median())
        .sort("total_ns", "name", descending=[True, False])
        .head(LISTED)
    )
    return Conversions(
        conversions=Converted(
            layout_calls=some.height,
            layout_ns=exposure.alone(work, layout),
            convolutions=convolutions,
            layouts=tuple(
                LayoutChange(name=name, **{k: v for k, v in row.items() if k != "name"})
                for name, row in zip(chains.trace.text(calls["name"]), calls.iter_rows(named=True), strict=True)
            ),
            round_trips_ns=exposure.alone(work, np.isin(np.arange(work.height), trips[["wide", "narrow"]].to_numpy())),
            round_trips=_by_place(chains, work, trips),
        )
    )


def _layouts(chains: Chains, work: pl.DataFrame) -> tuple[Mask, int]:
    """(rows of work that change a layout for a convolution, convolutions that launched)."""
    launch = work["launch"].fill_null(-1).to_numpy()
    convolution = exposure.operators(chains, _CONVOLUTION)
    if not convolution.any():
        return np.zeros(work.height, bool), 0
    outermost = np.where(launch >= 0, _top(chains, convolution)[launch], -1)
    mine = (outermost >= 0) & (work["kind"] == "layout").to_numpy()
    return mine, len(np.unique(outermost[outermost >= 0]))


def _top(chains: Chains, wanted: Mask) -> Rows:
    """Row of the outermost wanted ancestor-or-self, -1 if none. Shape (host rows,)."""
    return chains.host.nearest(wanted & (chains.host.enclosing(wanted) < 0))


def _round_trips(chains: Chains, work: pl.DataFrame) -> pl.DataFrame:
    """Pairs of rows of work: wide (the conversion there), narrow (the one back), there, back (formats)."""
    empty = pl.DataFrame(schema={"wide": pl.Int64, "narrow": pl.Int64, "there": pl.String, "back": pl.String})
    candidates = chains.trace.names.str.contains(r"_copy_kernel").to_numpy()
    if not work.height or not candidates[work["name"].to_numpy()].any():
        return empty
    host, launch = chains.host, work["launch"].fill_null(-1).to_numpy()
    asked = (host.cat == Cat.OP) & matches(chains.trace.names, _ASKED)[host.name]
    # Asked for by the program itself: no other operator (autocast's casts lie in one), and not in a backward pass.
    other = host.nearest((host.cat == Cat.OP) & ~asked) < 0
    own = (launch >= 0) & asked[host.holder[launch]] & other[launch] & ~host.engine[host.thread[launch]]
    own &= candidates[work["name"].to_numpy()]
    rows = (
        work.select("device", "stream", "kind", "name")
        .with_row_index("row")
        .with_columns(own=pl.Series(own), size=pl.Series(_elements(chains, launch, own)))
        .filter(pl.col("stream") >= 0)
    )
    names = rows.filter("own")["name"].unique().to_list()
    known = {name: decode(str(chains.trace.names[name])).stores for name in names}
    stored = pl.col("name").replace_strict(known, default=None, return_dtype=pl.String)
    # The last conversion before this one on the stream, with nothing but point-wise kernels between them.
    lane = ["device", "stream"]
    simple = pl.col("kind").is_in(["elementwise", "copy"])
    rows = rows.with_columns(
        stored=pl.when("own").then(stored), run=(~simple).cum_sum().over(lane), at=pl.int_range(pl.len()).over(lane)
    )
    width = pl.col("stored").replace_strict(_WIDTH, default=None, return_dtype=pl.Int64)
    conversion = rows.filter(pl.col("stored").is_not_null()).with_columns(width=width)
    paired = conversion.with_columns(
        wide=pl.col("row").shift(1).over(lane),
        there=pl.col("stored").shift(1).over(lane),
        was=pl.col("width").shift(1).over(lane),
        same=(pl.col("run") == pl.col("run").shift(1).over(lane))
        & (pl.col("at") - pl.col("at").shift(1).over(lane) <= BETWEEN + 1)
        & (pl.col("size") == pl.col("size").shift(1).over(lane)),
    ).filter(pl.col("same") & (pl.col("was") > pl.col("width")))
    return paired.select(
        pl.col("wide").cast(pl.Int64), narrow=pl.col("row").cast(pl.Int64), there="there", back="stored"
    )


def _elements(chains: Chains, launch: Rows, own: Mask) -> list[str]:
    """Dims of the tensor that each conversion writes, as text; "" where they were not recorded."""
    out = [""] * len(launch)
    dims = chains.trace.inputs["dims"] if chains.trace.inputs.height else None
    if dims is None:
        return out
    inputs = chains.host.frame["inputs"].to_numpy()
    for i in np.nonzero(own)[0].tolist():
        given = int(inputs[chains.host.holder[launch[i]]])
        if given >= 0 and dims[given]:
            first = json.loads(dims[given])
            out[i] = str(first[0]) if first else ""
    return out


def _by_place(chains: Chains, work: pl.DataFrame, trips: pl.DataFrame) -> tuple[RoundTrip, ...]:
    if not trips.height:
        return ()
    duration = work["dur"].to_numpy()
    launch = work["launch"].gather(trips["narrow"]).to_numpy()
    holder = chains.host.holder[launch]
    grouped = (
        trips.with_columns(
            ns=pl.Series(duration[trips["wide"].to_numpy()] + duration[trips["narrow"].to_numpy()]),
            holder=pl.Series(holder),
            place=pl.Series(chains.places.path_id[holder]),
        )
        .group_by("there", "back", "place")
        .agg(pl.col("holder").first(), pl.col("ns").sum(), count=pl.len())
        .sort(["ns", "place"], descending=[True, False])
        .head(LISTED)
    )
    return tuple(
        RoundTrip(
            narrow=row["back"],
            wide=row["there"],
            path=chains.places.path(row["holder"]),
            count=row["count"],
            device_ns=row["ns"],
        )
        for row in grouped.iter_rows(named=True)
    )
