"""Copies that nobody wrote: clones inside other operators, bias copies of addmm, and many small ones.

`copies` tells copies by kind; this is why they were made. Device time is given twice: as durations, and as the time
in which any of the copies ran, each moment once, which is what the run could win.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.report.columns import Count, MeanCount, Name, Ns, Row, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Mask, Rows

ORDER = 57

#: Places of small copies that are listed, the most copies first.
PLACES = 100
_LAYOUT = r"^aten::(?:reshape|contiguous)$"
_ADDMM = r"^aten::b?addb?mm(?:_|\.out)?$|^aten::_addmm_activation$"
#: Small copies that have another reason: bias copies, clones, reads of scalars.
_EXPLAINED = r"^aten::(?:addmm|baddbmm|_local_scalar_dense|nonzero|clone)$"

#: What the host takes from one copy to the next; gathered, they need it once.
_DISPATCH = (Cause.DISPATCH, Cause.COMPILED_OVERHEAD, Cause.PYTHON, Cause.NO_HOST_EVENT, Cause.LAUNCH_LATENCY)
_LATE = (*_DISPATCH, Cause.BLOCKING_SYNC, Cause.PAGEABLE_COPY)


class Clone(Row, frozen=True, kw_only=True):
    """An operator that clones its input."""

    IDENTITY: ClassVar[str] = "operator"

    operator: Annotated[Name, column("operator", "that made the clone")]
    why: Annotated[
        Literal["in_place_form", "layout"],
        column("why", "in_place_form: to work in place on the copy; layout: for reshape or contiguous"),
    ]
    clones: Annotated[Durations, column("", "device time of each clone")]
    device_ns: Annotated[Ns, column("device", "time in which a clone ran, each moment once")]
    path: Annotated[tuple[str, ...], column("", "of the first, outermost first")]


class Bias(Row, frozen=True, kw_only=True):
    """A copy that seeds the output of a matrix product with the bias."""

    IDENTITY: ClassVar[str] = "calls"

    calls: Annotated[Count, column("calls", "of addmm and its kin that launched device work")]
    seeded: Annotated[Count, column("seeded", "of these, that copied the bias before the product")]
    copies: Annotated[Durations, column("", "device time of the copies")]
    products: Annotated[Durations, column("", "device time of the matrix products of all calls")]
    launches: Annotated[Durations, column("", "host time of the calls that launched the copies")]
    device_ns: Annotated[Ns, column("device", "time in which a copy ran, each moment once")]
    waited_ns: Annotated[Ns, column("waited", "what the device waited for their launch, at most the usual call each")]
    path: Annotated[tuple[str, ...], column("", "of the first, outermost first")]


class SmallPlace(Row, frozen=True, kw_only=True):
    """Small copies by who asked for them."""

    IDENTITY: ClassVar[str] = "path"

    path: Annotated[tuple[str, ...], column("", "operators and annotations, outermost first")]
    copies: Annotated[Durations, column("", "device time of each copy")]
    bytes_median: Annotated[MeanCount, column("bytes", "of the usual copy")]


class SmallCopies(Row, frozen=True, kw_only=True):
    """Copies of less than `below_bytes` that nothing else explains."""

    IDENTITY: ClassVar[str] = "count"

    below_bytes: Annotated[int, column("", "size below which a copy is small")]
    count: Annotated[Count, column("copies", "of all places")]
    device_ns: Annotated[Ns, column("device", "time in which one ran, each moment once")]
    waited_ns: Annotated[
        Ns,
        column("waited", "waited for them: from one to the next all that the host took, else their calls"),
    ]
    dispatch_ns: Annotated[Ns, column("", "of that, between two of them in dispatch, Python and launch latency")]
    places: Annotated[tuple[SmallPlace, ...], column("", "the most copies first; at most 100")]


class CopyReasons(Row, frozen=True, kw_only=True):
    clones: Annotated[tuple[Clone, ...], column("", "the costliest first")]
    bias: Annotated[Bias | None, column("", "null: no addmm copies its bias")]
    small: SmallCopies


class CopyCauses(Result, frozen=True, kw_only=True):
    copy_causes: CopyReasons


def analyze(chains: Chains) -> CopyCauses:
    work = chains.device.frame.with_columns(kind=chains.device.kind).filter(pl.col("launch").is_not_null())
    return CopyCauses(
        copy_causes=CopyReasons(clones=_clones(chains, work), bias=_bias(chains, work), small=_small(chains))
    )


def _clones(chains: Chains, work: pl.DataFrame) -> tuple[Clone, ...]:
    host = chains.host
    clone = exposure.operators(chains, r"^aten::clone$") & (host.parent >= 0)
    clone &= host.below(chains.device.launched_ns) > 0
    clone &= host.enclosing(clone) < 0
    if not clone.any():
        return ()
    row = host.nearest(clone)[work["launch"].to_numpy()]
    parent = host.parent[row]
    in_place = _has_in_place_child(chains, np.unique(host.name[host.parent[clone]]))
    layout = exposure.operators(chains, _LAYOUT)
    out: list[Clone] = []
    for why, wanted in (("in_place_form", in_place), ("layout", layout)):
        mine = (row >= 0) & wanted[parent]
        some = work.filter(pl.Series(mine))
        out += _by_operator(chains, why, some.with_columns(once=exposure.once(some)), row[mine])  # type: ignore[arg-type]
    return tuple(out)


def _by_operator(
    chains: Chains, why: Literal["in_place_form", "layout"], work: pl.DataFrame, clone: Rows
) -> list[Clone]:
    """Clones of one reason. work: what they launched, with `once`; clone: host row of each."""
    parent = chains.host.parent[clone]
    each = (
        work.select("dur", "once")
        .with_columns(clone=pl.Series(clone), parent=pl.Series(parent), name=pl.Series(chains.host.name[parent]))
        .group_by("clone")
        .agg(pl.col("dur", "once").sum(), pl.col("parent", "name").first())
        .sort("parent")
    )
    return sorted(
        (
            Clone(
                operator=str(chains.trace.names[name]),
                why=why,
                clones=durations,
                device_ns=int(one["once"].sum()),
                path=chains.places.path(int(one["parent"][0])),
            )
            for (name,), one in each.group_by("name", maintain_order=True)
            if (durations := Durations.of(one["dur"]))
        ),
        key=lambda c: (-c.clones.total_ns, c.operator),
    )


def _has_in_place_child(chains: Chains, names: Rows) -> Mask:
    """Rows with a direct child that is their own in-place form. names: of the rows in question."""
    host, text = chains.host, chains.trace.names
    found = np.zeros(host.height, bool)
    for name in names.tolist():
        twin = (text == f"{text[name]}_").to_numpy()
        children = np.nonzero(twin[host.name] & (host.parent >= 0))[0]
        found[host.parent[children]] |= host.name[host.parent[children]] == name
    return found


def _bias(chains: Chains, work: pl.DataFrame) -> Bias | None:
    addmm = exposure.operators(chains, _ADDMM)
    if not addmm.any():
        return None
    holder = chains.host.holder[work["launch"].to_numpy()]
    work = work.with_columns(holder=pl.Series(holder)).filter(pl.Series((holder >= 0) & addmm[holder]))
    products = work.filter(pl.col("kind") == "gemm")
    copies = work.filter((pl.col("cat") == int(Cat.MEMCPY)) & (pl.col("kind") == "copy")).join(
        products.select("holder").unique(), on="holder", how="semi", maintain_order="left"
    )
    rows = copies["launch"].to_numpy()
    call = (chains.host.end - chains.host.start)[rows]
    spans = tuple(Durations.of(ns) for ns in (copies["dur"], products["dur"], pl.Series(call)))
    if spans[0] is None or spans[1] is None or spans[2] is None:
        return None
    return Bias(
        calls=work["holder"].n_unique(),
        seeded=copies["holder"].n_unique(),
        copies=spans[0],
        products=spans[1],
        launches=spans[2],
        device_ns=int(exposure.once(copies).sum()),
        # At most what a call usually takes: the first one also holds what `first_use` counts.
        waited_ns=exposure.waited(chains, rows, spans[2].median_ns),
        path=chains.places.path(int(copies["holder"][0])),
    )


def _small(chains: Chains) -> SmallCopies:
    small = chains.device.frame.with_row_index("row").filter(
        (pl.col("cat") == int(Cat.MEMCPY)) & (pl.col("bytes") < exposure.SMALL_BYTES) & pl.col("launch").is_not_null()
    )
    launch = small["launch"].to_numpy()
    holder = chains.host.holder[launch]
    mine = holder >= 0
    if mine.any():
        mine &= chains.host.nearest(exposure.operators(chains, _EXPLAINED))[launch] < 0
    small = small.filter(pl.Series(mine))
    between = _between(chains, small["row"])
    alone = ~_touch(chains, launch[mine], between)
    return SmallCopies(
        below_bytes=exposure.SMALL_BYTES,
        count=small.height,
        device_ns=int(exposure.once(small).sum()),
        waited_ns=int(between["ns"].sum()) + exposure.waited(chains, launch[mine][alone]),
        dispatch_ns=int(between["dispatch"].sum()),
        places=_places(chains, small, holder[mine]),
    )


def _between(chains: Chains, rows: pl.Series) -> pl.DataFrame:
    """Gaps from one of some device rows to the next, by start: ns that the host took, dispatch (ns of it)."""
    mine = pl.col("after").is_in(rows.implode()) & pl.col("before").is_in(rows.implode())
    gaps = chains.idle.spans.with_row_index("gap").filter(mine).select(pl.col("gap").cast(pl.Int64), "start", "end")
    cause = pl.col("cause")
    between = pl.Series(np.isin(np.arange(chains.idle.spans.height), gaps["gap"])).gather(chains.idle.pieces["gap"])
    late = chains.idle.pieces.filter(between & ~pl.col("pause") & cause.is_in([int(c) for c in _LATE]))
    host = late.group_by(pl.col("gap").cast(pl.Int64)).agg(
        pl.col("ns").sum(), dispatch=pl.col("ns").filter(cause.is_in([int(c) for c in _DISPATCH])).sum()
    )
    return gaps.join(host, on="gap", maintain_order="left").sort("start")


def _touch(chains: Chains, calls: Rows, gaps: pl.DataFrame) -> Mask:
    """Which host rows ran during one of some gaps, which are sorted by start: what they cost is told there."""
    if not gaps.height:
        return np.zeros(len(calls), bool)
    # The latest end of all gaps that began before the call ended.
    ended = np.maximum.accumulate(gaps["end"].to_numpy())
    slot = np.searchsorted(gaps["start"].to_numpy(), chains.host.end[calls], "left") - 1
    touched: Mask = (slot >= 0) & (ended[np.maximum(slot, 0)] > chains.host.start[calls])
    return touched


def _places(chains: Chains, small: pl.DataFrame, holder: Rows) -> tuple[SmallPlace, ...]:
    if not small.height:
        return ()
    groups = (
        small.with_columns(holder=pl.Series(holder), path=pl.Series(chains.places.path_id[holder]))
        .group_by("path")
        .agg(pl.len(), pl.col("holder").first(), pl.col("dur"), pl.col("bytes").median())
        .sort("len", "path", descending=[True, False])
        .head(PLACES)
    )
    return tuple(
        SmallPlace(path=chains.places.path(r["holder"]), copies=durations, bytes_median=r["bytes"])
        for r in groups.iter_rows(named=True)
        if (durations := Durations.of(pl.Series(r["dur"])))
    )
