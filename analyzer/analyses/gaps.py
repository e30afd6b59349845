"""Idle gaps: their causes, which add up to the idle time, and the longest ones with what ran just then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from analyzer import units
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.model import Column, Section, Table, Unit

ORDER = 20

#: The longest gaps are described one by one, up to this many.
LONGEST = 20
#: Gaps by length: below 10 µs the device goes on by itself, above 1 ms a person can see it.
SIZES = ((1_000_000, None, "over 1 ms"), (10_000, 1_000_000, "10 µs – 1 ms"), (0, 10_000, "under 10 µs"))
#: A stack shows the outermost and innermost entries of a deep one.
STACK_DEPTH = 24


@dataclass(frozen=True, slots=True)
class CauseTotal:
    """One cause on one device: total and longest in ns, count of gaps, and who: (name, ns), largest first."""

    device: int
    cause: Cause
    total_ns: int
    count: int
    max_ns: int
    owners: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """One idle interval (ns). stack: what the launching thread was inside of, outermost first."""

    device: int
    start_ns: int
    duration_ns: int
    causes: tuple[tuple[Cause, int], ...]
    before: str | None
    after: str
    launch: str | None
    thread: str | None
    stack: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    title: str
    count: int
    total_ns: int
    share: float
    median_ns: float
    max_ns: int


@dataclass(frozen=True, slots=True)
class Gaps:
    totals: tuple[CauseTotal, ...]
    longest: tuple[Gap, ...]
    sizes: tuple[Sizes, ...]
    idle_ns: int

    def contract(self) -> dict[str, Any]:
        idle = {d: sum(t.total_ns for t in self.totals if t.device == d) for d in {t.device for t in self.totals}}
        return {
            "gaps": {
                "by_cause": [
                    {
                        "device": t.device,
                        "cause": t.cause.key,
                        "total_us": units.us(t.total_ns),
                        "count": t.count,
                        "max_us": units.us(t.max_ns),
                        "share": t.total_ns / idle[t.device],
                        "owners": [{"name": name, "total_us": units.us(ns)} for name, ns in t.owners],
                    }
                    for t in self.totals
                ],
                "longest": [
                    {
                        "device": g.device,
                        "start_us": units.us(g.start_ns),
                        "duration_us": units.us(g.duration_ns),
                        "causes": [{"cause": cause.key, "us": units.us(ns)} for cause, ns in g.causes],
                        "before": g.before,
                        "after": g.after,
                        "launch": g.launch,
                        "thread": g.thread,
                        "stack": list(g.stack),
                    }
                    for g in self.longest
                ],
            }
        }

    def section(self, top: int) -> Section | None:
        if not self.totals:
            return None
        by_cause = Table(
            "Idle time by cause",
            (
                Column("cause", Unit.TEXT),
                Column("idle", Unit.NS, bar=True),
                Column("of idle", Unit.SHARE),
                Column("gaps", Unit.COUNT),
                Column("longest", Unit.NS),
                Column("mostly in", Unit.NAME),
            ),
            tuple(
                (
                    _label(t, len({x.device for x in self.totals}) > 1),
                    t.total_ns,
                    t.total_ns / self.idle_ns if self.idle_ns else None,
                    t.count,
                    t.max_ns,
                    t.owners[0][0] if t.owners else "",
                )
                for t in self.totals[:top]
            ),
            hidden=max(0, len(self.totals) - top),
        )
        sizes = Table(
            "Gaps by length",
            (
                Column("length", Unit.TEXT),
                Column("gaps", Unit.COUNT),
                Column("idle", Unit.NS),
                Column("of idle", Unit.SHARE),
                Column("median", Unit.NS),
                Column("longest", Unit.NS),
            ),
            tuple((s.title, s.count, s.total_ns, s.share, s.median_ns, s.max_ns) for s in self.sizes),
        )
        longest = Table(
            "Longest gaps",
            (
                Column("at", Unit.NS),
                Column("idle", Unit.NS),
                Column("cause", Unit.TEXT),
                Column("host was in", Unit.NAME),
                Column("ended by", Unit.NAME),
            ),
            tuple(
                (g.start_ns, g.duration_ns, _main_cause(g), g.stack[-1] if g.stack else "", g.after)
                for g in self.longest[: min(top, 5)]
            ),
        )
        return Section("gaps", "Where the device sat idle", tables=(by_cause, sizes, longest))


def _label(total: CauseTotal, several: bool) -> str:
    text = total.cause.key.replace("_", " ")
    return f"{text} (GPU {total.device})" if several else text


def _main_cause(gap: Gap) -> str:
    cause, ns = gap.causes[0]
    share = ns / gap.duration_ns
    name = cause.key.replace("_", " ")
    return name if share > 0.995 else f"{name} {units.share(share)}"


def analyze(chains: Chains) -> Gaps:
    gaps = chains.gaps.with_row_index("gap").with_columns(
        pl.col("gap").cast(pl.Int64), length=pl.col("end") - pl.col("start")
    )
    pieces = chains.gap_pieces.join(gaps.select("gap", "device"), on="gap", how="left")
    return Gaps(
        totals=_totals(chains, pieces),
        longest=_longest(chains, gaps, pieces),
        sizes=_sizes(gaps),
        idle_ns=int(gaps["length"].sum()),
    )


def _totals(chains: Chains, pieces: pl.DataFrame) -> tuple[CauseTotal, ...]:
    # One key of one integer: there are as many groups as gaps.
    key = pl.col("gap") * len(Cause) + pl.col("cause")
    per_gap = pieces.group_by(key=key).agg(pl.col("device", "cause").first(), ns=pl.col("ns").sum())
    totals = (
        per_gap.group_by("device", "cause")
        .agg(total=pl.col("ns").sum(), count=pl.len(), longest=pl.col("ns").max())
        .sort(["total", "cause"], descending=[True, False])
    )
    owned = pieces.filter(pl.col("owner") >= 0).group_by("device", "cause", "owner").agg(ns=pl.col("ns").sum())
    owners = (
        owned.with_columns(owner=chains.places.gather(owned["owner"]))
        .group_by("device", "cause", "owner")
        .agg(ns=pl.col("ns").sum())
        .sort(["ns", "owner"], descending=[True, False])
        .group_by("device", "cause", maintain_order=True)
        .agg(pl.col("owner").head(10), pl.col("ns").head(10))
    )
    named = {
        (row["device"], row["cause"]): tuple(zip(row["owner"], row["ns"], strict=True))
        for row in owners.iter_rows(named=True)
    }
    return tuple(
        CauseTotal(device, Cause(cause), total, count, longest, named.get((device, cause), ()))
        for device, cause, total, count, longest in totals.iter_rows()
    )


def _sizes(gaps: pl.DataFrame) -> tuple[Sizes, ...]:
    idle = int(gaps["length"].sum())
    out = []
    for low, high, title in SIZES:
        some = gaps.filter((pl.col("length") >= low) & (pl.col("length") < high if high else pl.lit(True)))["length"]
        if len(some):
            total = int(some.sum())
            out.append(Sizes(title, len(some), total, total / idle, some.median(), some.max()))  # type: ignore[arg-type]
    return tuple(out)


def _longest(chains: Chains, gaps: pl.DataFrame, pieces: pl.DataFrame) -> tuple[Gap, ...]:
    top = gaps.sort(["length", "start"], descending=[True, False]).head(LONGEST)
    causes: dict[int, list[tuple[Cause, int]]] = {}
    wanted = pieces.filter(pl.col("gap").is_in(top["gap"].to_list()))
    for gap, cause, ns in (
        wanted.group_by("gap", "cause")
        .agg(pl.col("ns").sum())
        .sort(["ns", "cause"], descending=[True, False])
        .iter_rows()
    ):
        causes.setdefault(gap, []).append((Cause(cause), ns))
    work = chains.device["name"]
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
                after=chains.trace.names[work[row["after"]]],
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
    entries: list[tuple[int, int, str]] = []
    for tree in (chains.frames, chains.host):
        rows = [
            r
            for r in tree.path_at(thread, middle)
            if 2 * (min(int(tree.end[r]), until) - max(int(tree.start[r]), start)) >= until - start
        ]
        names = chains.text(tree.frame["name"].gather(rows)).to_list()
        entries += [(int(tree.start[r]), -int(tree.end[r]), n) for r, n in zip(rows, names, strict=True)]
    path = [name for _, _, name in sorted(entries, key=lambda e: e[:2])]
    return tuple(path if len(path) <= STACK_DEPTH else [*path[:4], "…", *path[5 - STACK_DEPTH :]])
