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
    ns: Annotated[Ns, column("idle", "in the window; of launch latency and dependencies at most 1 ms each", bar=True)]
    pause_ns: Annotated[Ns, column("in pauses", "of it in pauses")]
    gaps_ns: Annotated[Ns, column("in gaps", "of it between the first and the last device work")]
    owners: Annotated[tuple[IdleOwner, ...], column("", "who the device waited for, the most first; at most 100")]
    mostly: Annotated[Durations | None, column("", "gaps of which it is over half; null: none")]
    ended_by: Annotated[Ended | None, column("", "what ended most of these; null: none")]
    place: Annotated[Place | None, column("", "where in the code; null: no Python stacks, or no one frame")]


class HostIdle(Row, frozen=True, kw_only=True):
    by_cause: tuple[IdleCause, ...]


class Idle(Result, frozen=True, kw_only=True):
    """Idle time of the window: the host's side of it."""

    idle: HostIdle


def analyze(chains: Chains) -> Idle:
    owned = exposure.idle(chains)
    total = owned.group_by("cause").agg(pl.col("ns").sum()).sort(["ns", "cause"], descending=[True, False])
    gaps = chains.idle.by_cause.sort("ns", "gap", descending=[True, False])
    rows = tuple(
        _cause(chains, Cause(cause), ns, *(some.filter(pl.col("cause") == cause) for some in (owned, gaps)))
        for cause, ns in total.iter_rows()
    )
    return Idle(idle=HostIdle(by_cause=rows))


def _cause(chains: Chains, cause: Cause, ns: int, owned: pl.DataFrame, gaps: pl.DataFrame) -> IdleCause:
    mostly = gaps.filter(~pl.col("edge") & (pl.col("ns") * 2 > pl.col("end") - pl.col("start")))
    place = exposure.place(chains, gaps)
    return IdleCause(
        cause=cause.key,
        ns=ns,
        pause_ns=int(owned.filter("pause")["ns"].sum()),
        gaps_ns=int(gaps.filter(~pl.col("edge"))["ns"].sum()),
        owners=_owners(chains, owned),
        mostly=Durations.of(mostly["end"] - mostly["start"]),
        ended_by=_ended(chains, mostly),
        place=Place(frame=place.frame, count=place.count) if place else None,
    )


def _owners(chains: Chains, owned: pl.DataFrame) -> tuple[IdleOwner, ...]:
    mine = owned.filter(pl.col("owner") >= 0)
    total = (
        pl.DataFrame({"owner": chains.places.names.gather(mine["owner"]), "ns": mine["ns"]})
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
    names = chains.trace.text(chains.device.frame["name"].gather(gaps["after"].drop_nulls())).alias("name")
    if not names.len():
        return None
    counted = names.to_frame().group_by("name").len("count").sort("count", "name", descending=[True, False])
    return Ended(name=counted["name"][0], count=counted["count"][0])
