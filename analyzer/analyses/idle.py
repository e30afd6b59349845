"""What the device waited for: idle time in the window by cause, by whom, and where in the code.

`gaps` tells the device's side, gap by gap; this is the host's: lead-in, gaps and tail-out together, launch latency
cut to what a launch can explain, as the verdict judges it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl

from analyzer.index import exposure
from analyzer.index.activity import Cause, CauseKey
from analyzer.index.build import Chains
from analyzer.report.columns import Count, Name, Ns, Row, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

ORDER = 22

#: Operators, annotations and frames that are listed of one cause.
OWNERS = 100
#: What the host does between launches, all of it the run's own code.
STEADY = (Cause.DISPATCH, Cause.COMPILED_OVERHEAD, Cause.PYTHON)


class IdleOwner(Row, frozen=True, kw_only=True):
    """An operator, annotation or frame that the device waited for."""

    name: Annotated[Name, column("waited for", "operator, region, annotation or Python frame")]
    ns: Annotated[Ns, column("idle", "idle time of the device meanwhile", bar=True)]


class Place(Row, frozen=True, kw_only=True):
    """A Python frame that was open for most of the longest gaps."""

    IDENTITY: ClassVar[str] = "frame"

    frame: Annotated[Name, column("frame", "file(line): function")]
    count: Annotated[Count, column("gaps", "of the longest gaps, those for most of which it was open")]


class Ended(Row, frozen=True, kw_only=True):
    """The device work that ended most of the gaps."""

    name: Annotated[Name, column("ended by", "kernel, copy or fill")]
    count: Annotated[Count, column("gaps", "that it ended")]


class IdleCause(Row, frozen=True, kw_only=True):
    """Idle time of one cause, all devices together."""

    IDENTITY: ClassVar[str] = "cause"

    cause: Annotated[CauseKey, column("cause", "as in `gaps.by_cause`")]
    ns: Annotated[Ns, column("idle", "in the window, of launch latency at most 1 ms a launch", bar=True)]
    gaps_ns: Annotated[Ns, column("in gaps", "of it between the first and the last device work")]
    owners: Annotated[tuple[IdleOwner, ...], column("", "who the device waited for, the most first; at most 100")]
    mostly: Annotated[Durations | None, column("", "gaps of which it is over half; null: none")]
    ended_by: Annotated[Ended | None, column("", "what ended most of these; null: none")]
    place: Annotated[Place | None, column("", "where in the code; null: no Python stacks, or no one frame")]


class LongestPause(Row, frozen=True, kw_only=True):
    """The longest stretch in which one operator, region, annotation or frame kept the device idle."""

    name: Annotated[Name, column("in", "who: operator, region, annotation or frame")]
    ns: Annotated[Ns, column("idle", "within one gap, or before the first device work")]


class HostIdle(Row, frozen=True, kw_only=True):
    by_cause: tuple[IdleCause, ...]
    longest_pause: Annotated[LongestPause | None, column("", "of dispatch, compiled code and Python; null: none")]


class Idle(Result, frozen=True, kw_only=True):
    """Idle time of the window: the host's side of it."""

    idle: HostIdle


def analyze(chains: Chains) -> Idle:
    owned = exposure.idle(chains)
    total = owned.group_by("cause").agg(pl.col("ns").sum()).sort(["ns", "cause"], descending=[True, False])
    gaps = chains.gap_causes.sort("ns", "gap", descending=[True, False])
    rows = tuple(
        _cause(chains, Cause(cause), ns, *(some.filter(pl.col("cause") == cause) for some in (owned, gaps)))
        for cause, ns in total.iter_rows()
    )
    return Idle(idle=HostIdle(by_cause=rows, longest_pause=_longest(chains)))


def _cause(chains: Chains, cause: Cause, ns: int, owned: pl.DataFrame, gaps: pl.DataFrame) -> IdleCause:
    mostly = gaps.filter(pl.col("ns") * 2 > pl.col("end") - pl.col("start"))
    place = exposure.place(chains, gaps) or exposure.place(chains, _edges(chains, cause))
    return IdleCause(
        cause=cause.key,
        ns=ns,
        gaps_ns=int(gaps["ns"].sum()),
        owners=_owners(chains, owned),
        mostly=Durations.of(mostly["end"] - mostly["start"]),
        ended_by=_ended(chains, mostly),
        place=Place(frame=place.frame, count=place.count) if place else None,
    )


def _edges(chains: Chains, cause: Cause) -> pl.DataFrame:
    """Lead-ins with time of a cause."""
    mine = chains.edge_pieces.filter(pl.col("cause") == int(cause)).select("gap").unique()
    return (
        chains.edges.with_row_index("gap").with_columns(pl.col("gap").cast(pl.Int64)).join(mine, on="gap", how="semi")
    )


def _owners(chains: Chains, owned: pl.DataFrame) -> tuple[IdleOwner, ...]:
    mine = owned.filter(pl.col("owner") >= 0)
    total = (
        pl.DataFrame({"owner": chains.places.gather(mine["owner"]), "ns": mine["ns"]})
        # Generated code carries a hash in its name; all of it is one place, as steps are.
        .group_by(pl.col("owner").str.replace(r"(CompiledFxGraph) \S+", "$1"))
        .agg(pl.col("ns").sum())
        .sort(["ns", "owner"], descending=[True, False])
        .head(OWNERS)
    )
    return tuple(IdleOwner(name=name, ns=ns) for name, ns in total.iter_rows())


def _ended(chains: Chains, gaps: pl.DataFrame) -> Ended | None:
    if not gaps.height:
        return None
    names = chains.text(chains.device["name"].gather(gaps["after"])).alias("name")
    counted = names.to_frame().group_by("name").len("count").sort("count", "name", descending=[True, False])
    return Ended(name=counted["name"][0], count=counted["count"][0])


def _longest(chains: Chains) -> LongestPause | None:
    pieces = pl.concat([chains.gap_pieces, chains.edge_pieces.with_columns(gap=-1 - pl.col("gap"))])
    mine = pieces.filter(pl.col("cause").is_in([int(c) for c in STEADY]) & (pl.col("owner") >= 0))
    # Only where all of a gap's pieces together outlast the longest piece can there be a longer pause.
    rivals = mine.group_by("gap").agg(pl.col("ns").sum()).filter(pl.col("ns") >= (mine["ns"].max() or 0))
    close = mine.join(rivals, on="gap", how="semi")
    total = close.group_by("gap", "owner").agg(pl.col("ns").sum()).sort("ns", "gap", descending=True)
    if not total.height:
        return None
    return LongestPause(name=str(chains.trace.names[total["owner"][0]]), ns=int(total["ns"][0]))
