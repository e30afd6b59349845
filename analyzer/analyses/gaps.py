"""Idle gaps: their causes, which add up to the idle time, and the longest ones with what ran just then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import polars as pl

from analyzer import units
from analyzer.index.activity import Cause, CauseKey
from analyzer.index.build import Chains
from analyzer.index.sums import sums
from analyzer.report.blocks import Block, Table, cells, table
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, Share, Text, Unit, column
from analyzer.report.results import Result

ORDER = 20

#: The longest gaps are described one by one, up to this many.
LONGEST = 20
#: So many of them are shown: those that follow are rarely of another kind.
SHOWN = 5
#: Gaps by length: below 10 µs the device goes on by itself, above 1 ms a person can see it.
LENGTHS = ((1_000_000, None, "over 1 ms"), (10_000, 1_000_000, "10 µs – 1 ms"), (0, 10_000, "under 10 µs"))
#: Starts and durations are rounded apart: a gap of a nanosecond is none, and counts as none.
ROUNDING_NS = 1
#: A stack shows the outermost and innermost entries of a deep one.
STACK_DEPTH = 24


class Owner(Row, frozen=True, kw_only=True):
    """What the host was in: an operator, region, annotation or frame."""

    name: Annotated[Name, column("host was in", "the innermost one that says who")]
    total_ns: Annotated[Ns, column("idle", "idle time of this cause while the host was in it")]


class CauseTotal(Row, frozen=True, kw_only=True):
    """One cause on one device. `total_us` adds up to its idle time; less `outside_us`, with `edge_us`, to that of the
    window."""

    IDENTITY: ClassVar[str] = "cause"

    device: Annotated[int, column("device", "id of the device")]
    cause: Annotated[CauseKey, column("cause", "what the device waited for")]
    total_ns: Annotated[Ns, column("idle", "idle time of this cause", bar=True)]
    edge_ns: Annotated[Ns, column("at the edges", "idle before the first and after the last device work of the window")]
    outside_ns: Annotated[Ns, column("outside", "what of `total_us` lies outside the window")]
    count: Annotated[Count, column("gaps", "gaps that have a part of this cause; a nanosecond is the clock's rounding")]
    max_ns: Annotated[Ns, column("longest", "the largest part of one gap")]
    share: Annotated[Share | None, column("of idle", "`total_us` of the device's idle time; null: none")]
    owners: Annotated[tuple[Owner, ...], column("", "who, largest first, ten at most")]


class CausePart(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "cause"

    cause: Annotated[CauseKey, column("cause", "what the device waited for")]
    ns: Annotated[Ns, column("idle", "its part of the gap")]


class Gap(Row, frozen=True, kw_only=True):
    """One idle interval of a device."""

    device: Annotated[int, column("device", "id of the device")]
    start_ns: Annotated[Ns, column("at", "its start")]
    duration_ns: Annotated[Ns, column("idle", "its length")]
    causes: Annotated[tuple[CausePart, ...], column("", "they add up to its length; largest first")]
    before: Annotated[Name | None, column("", "device work that ended where it starts; null: not told")]
    after: Annotated[Name | None, column("ended by", "device work that starts where it ends; null: the window's end")]
    launch: Annotated[Name | None, column("", "the call that launched that work; null: unlinked")]
    thread: Annotated[Name | None, column("", "the thread of that call; null: unlinked")]
    stack: Annotated[tuple[str, ...], column("", "what that thread was inside of meanwhile, outermost first")]


class GapLength(Row, frozen=True, kw_only=True):
    """Gaps of one order of length, on all devices."""

    IDENTITY: ClassVar[str] = "length"

    length: Annotated[Text, column("length", "from one bound up to the other; lengths that no gap has are left out")]
    count: Annotated[Count, column("gaps", "of this length")]
    total_ns: Annotated[Ns, column("idle", "sum of them")]
    share: Annotated[Share, column("of idle", "`total_us` of the idle time in all gaps")]
    median_ns: Annotated[MeanNs, column("median", "length")]
    max_ns: Annotated[Ns, column("longest", "length")]


class IdleTime(Row, frozen=True, kw_only=True):
    """Idle time inside the devices' spans."""

    by_cause: Annotated[tuple[CauseTotal, ...], column("", "causes of each device, largest first")]
    longest: Annotated[tuple[Gap, ...], column("", "the longest gaps of all devices, twenty at most")]
    edges: Annotated[tuple[Gap, ...], column("", "lead-ins and tail-outs of the window, longest first, twenty at most")]
    by_length: Annotated[tuple[GapLength, ...], column("", "all gaps by their length, longest first")]


class Gaps(Result, frozen=True, kw_only=True):
    SECTION = "gaps"
    TITLE = "Where the device sat idle"

    gaps: IdleTime

    def blocks(self) -> Iterator[Block]:
        causes = self.gaps.by_cause
        if not causes:
            return
        several = len({c.device for c in causes}) > 1
        idle = sum(map(_inside, causes))
        yield table(
            "Idle time by cause",
            CauseTotal,
            sorted((c for c in causes if _inside(c)), key=_inside, reverse=True),
            cells("cause", Unit.TEXT, lambda c: _words(c.cause) + (f" (GPU {c.device})" if several else "")),
            cells("idle", Unit.NS, _inside, bar=True),
            cells("of idle", Unit.SHARE, lambda c: _inside(c) / idle if idle else None),
            "count",
            "max_ns",
            cells("mostly in", Unit.NAME, lambda c: c.owners[0].name if c.owners else ""),
        )
        yield table(
            "Gaps by length",
            GapLength,
            self.gaps.by_length,
            "length",
            "count",
            "total_ns",
            "share",
            "median_ns",
            "max_ns",
        )
        yield self._longest()

    def _longest(self) -> Table:
        return table(
            "Longest gaps",
            Gap,
            sorted([*self.gaps.longest, *self.gaps.edges], key=lambda g: -g.duration_ns)[:SHOWN],
            "start_ns",
            "duration_ns",
            cells("cause", Unit.TEXT, _main_cause),
            cells("host was in", Unit.NAME, lambda g: g.stack[-1] if g.stack else ""),
            "after",
        )

    def first(self) -> Table | None:
        return self._longest() if self.gaps.by_cause else None


def _inside(total: CauseTotal) -> int:
    """Idle time of a cause in the window (ns)."""
    return total.total_ns - total.outside_ns + total.edge_ns


def _words(key: str) -> str:
    return key.replace("_", " ")


def _main_cause(gap: Gap) -> str:
    if not gap.causes or not gap.duration_ns:  # a saved report that was edited
        return ""
    main = gap.causes[0]
    share = main.ns / gap.duration_ns
    return _words(main.cause) if share > 0.995 else f"{_words(main.cause)} {units.share(share)}"


def analyze(chains: Chains) -> Gaps:
    gaps = chains.idle.gaps.with_row_index("gap").with_columns(
        pl.col("gap").cast(pl.Int64), length=pl.col("end") - pl.col("start")
    )
    pieces = _with(chains.idle.gap_pieces, gaps, "device")
    spans = chains.idle.spans.with_row_index("gap").with_columns(
        pl.col("gap").cast(pl.Int64), length=pl.col("end") - pl.col("start")
    )
    inside = _with(chains.idle.pieces, spans, "device", "edge")
    edges = spans.filter("edge")
    return Gaps(
        gaps=IdleTime(
            by_cause=_by_cause(chains, gaps, pieces, spans, inside),
            longest=_longest(chains, gaps, pieces),
            edges=_longest(chains, edges, inside),
            by_length=_by_length(gaps.filter(pl.col("length") > ROUNDING_NS)),
        )
    )


def _with(pieces: pl.DataFrame, gaps: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Pieces with columns of the gap that they are of."""
    return pieces.with_columns(gaps[column].gather(pieces["gap"]) for column in columns)


def _by_cause(
    chains: Chains, gaps: pl.DataFrame, pieces: pl.DataFrame, spans: pl.DataFrame, inside: pl.DataFrame
) -> tuple[CauseTotal, ...]:
    """gaps, pieces: whole ones; spans, inside: all idle time in the window, and its pieces with `edge`."""
    by, causes = ["device", "cause"], len(Cause)
    edged = inside.filter("edge")
    whole = _with(sums(pieces, {"gap": gaps.height, "cause": causes}), gaps, "device").with_columns(edge=pl.lit(False))
    edges = _with(sums(edged, {"gap": spans.height, "cause": causes}), spans, "device").with_columns(edge=pl.lit(True))
    counted = pl.col("ns") > ROUNDING_NS
    each = (
        pl.concat([whole, edges])
        .group_by(by)
        .agg(
            total_ns=pl.col("ns").filter(~pl.col("edge")).sum(),
            edge_ns=pl.col("ns").filter(pl.col("edge")).sum(),
            count=counted.sum(),
            max_ns=pl.col("ns").max(),
        )
    )
    devices = 1 + max((int(frame["device"].max()) for frame in (gaps, spans) if frame.height), default=0)  # type: ignore[arg-type]
    window = sums(inside.filter(~pl.col("edge")), {"device": devices, "cause": causes}).rename({"ns": "gaps_ns"})
    total = pl.col("total_ns").sum().over("device")
    totals = (
        each.join(window, on=by, how="left")
        .with_columns(pl.col("gaps_ns").fill_null(0))
        .with_columns(
            outside_ns=pl.col("total_ns") - pl.col("gaps_ns"),
            share=pl.when(total > 0).then(pl.col("total_ns") / total),
        )
        .drop("gaps_ns")
        .sort(["total_ns", "edge_ns", "cause", "device"], descending=[True, True, False, False])
    )
    pieces = pl.concat([some.select(*by, "owner", "ns") for some in (pieces, edged)])
    owned = sums(pieces, {"device": devices, "cause": causes, "owner": len(chains.trace.names)})
    owned = owned.filter(pl.col("owner") >= 0)
    owners = (
        owned.with_columns(owner=chains.places.names.gather(owned["owner"]))
        .group_by("device", "cause", "owner")
        .agg(ns=pl.col("ns").sum())
        .sort(["ns", "owner"], descending=[True, False])
        .group_by("device", "cause", maintain_order=True)
        .agg(pl.col("owner").head(10), pl.col("ns").head(10))
    )
    named = {
        (row["device"], row["cause"]): tuple(
            Owner(name=name, total_ns=ns) for name, ns in zip(row["owner"], row["ns"], strict=True)
        )
        for row in owners.iter_rows(named=True)
    }
    return tuple(
        CauseTotal(cause=Cause(cause := row.pop("cause")).key, owners=named.get((row["device"], cause), ()), **row)
        for row in totals.iter_rows(named=True)
    )


def _by_length(gaps: pl.DataFrame) -> tuple[GapLength, ...]:
    idle = int(gaps["length"].sum())
    out = []
    for low, high, length in LENGTHS:
        some = gaps.filter((pl.col("length") >= low) & (pl.col("length") < high if high else pl.lit(True)))["length"]
        if len(some):
            total = int(some.sum())
            out.append(
                GapLength(
                    length=length,
                    count=len(some),
                    total_ns=total,
                    share=total / idle,
                    median_ns=some.median(),  # type: ignore[arg-type]
                    max_ns=some.max(),  # type: ignore[arg-type]
                )
            )
    return tuple(out)


def _longest(chains: Chains, gaps: pl.DataFrame, pieces: pl.DataFrame) -> tuple[Gap, ...]:
    top = gaps.sort(["length", "start", "device"], descending=[True, False, False]).head(LONGEST)
    causes: dict[int, list[CausePart]] = {}
    wanted = pieces.filter(pl.col("gap").is_in(top["gap"].to_list()))
    for gap, cause, ns in (
        wanted.group_by("gap", "cause")
        .agg(pl.col("ns").sum())
        .sort(["ns", "cause"], descending=[True, False])
        .iter_rows()
    ):
        causes.setdefault(gap, []).append(CausePart(cause=Cause(cause).key, ns=ns))
    work = chains.device.frame["name"]
    host = chains.host.frame
    out = []
    for row in top.iter_rows(named=True):
        launch = row["launch"]
        thread = None if launch is None else int(host["thread"][launch])
        out.append(
            Gap(
                device=row["device"],
                start_ns=row["start"],
                duration_ns=row["length"],
                causes=tuple(causes.get(row["gap"], ())),
                before=None if row["before"] is None else chains.trace.names[work[row["before"]]],
                after=None if row["after"] is None else chains.trace.names[work[row["after"]]],
                launch=None if launch is None else chains.trace.names[host["name"][launch]],
                thread=None if thread is None else thread_name(chains, thread),
                stack=() if launch is None else stack_during(chains, launch, row["start"], row["end"]),
            )
        )
    return tuple(out)


def thread_name(chains: Chains, thread: int) -> str:
    row = chains.trace.threads.row(thread, named=True)
    return row["thread_name"] or f"thread {row['tid']}"


def stack_during(chains: Chains, launch: int, start: int, end: int) -> tuple[str, ...]:
    """What the launching thread was inside of while the device was idle, outermost first.

    The deepest frame, annotation or operator that covers at least half of the time until the launch
    returned: deeper ones came and went, and would name an accident.
    """
    thread = int(chains.host.frame["thread"][launch])
    until = min(end, int(chains.host.end[launch]))
    if until <= start:
        return ()
    # Whatever covers half of an interval covers its middle: only the path that is open then can qualify.
    middle = (start + until) // 2
    thread = chains.threads.speaker(thread, middle)
    entries: list[tuple[int, int, str]] = []
    for tree in (chains.frames, chains.host):
        rows = [
            r
            for r in tree.path_at(thread, middle)
            if 2 * (min(int(tree.end[r]), until) - max(int(tree.start[r]), start)) >= until - start
        ]
        names = chains.trace.text(tree.frame["name"].gather(rows)).to_list()
        entries += [(int(tree.start[r]), -int(tree.end[r]), n) for r, n in zip(rows, names, strict=True)]
    path = [name for _, _, name in sorted(entries, key=lambda e: e[:2])]
    return tuple(path if len(path) <= STACK_DEPTH else [*path[:4], "…", *path[5 - STACK_DEPTH :]])
