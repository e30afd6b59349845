"""The window, the verdict, and how far the figures can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import polars as pl

from analyzer import units
from analyzer.index import parts
from analyzer.index.bound import Bound
from analyzer.index.build import Chains
from analyzer.index.parts import PartKey
from analyzer.report.blocks import Block, Table, cells, table
from analyzer.report.columns import Count, Name, Ns, Row, Share, Text, Unit, column
from analyzer.report.results import Result

ORDER = 0


class Window(Row, frozen=True, kw_only=True):
    """The profiler's steps with the device work launched in them; without, from the first event to the last, less
    the profiler's own tail and what threads that never launch do at the edges; null: no events."""

    start_ns: Annotated[Ns | None, column("", "from the first event")]
    end_ns: Annotated[Ns | None, column("", "from the first event")]
    duration_ns: Annotated[Ns | None, column("", "end less start")]


class Part(Row, frozen=True, kw_only=True):
    """One part of the window."""

    IDENTITY: ClassVar[str] = "part"

    part: Annotated[PartKey, column("", "what the device did, or waited for")]
    ns: Annotated[Ns, column("time", "of the window, the mean of all devices", bar=True)]
    share: Annotated[Share, column("of window", "of the window")]
    mostly_in: Annotated[
        Name | None,
        column("mostly in", "kernel, operator, annotation or frame with most of it; null: nothing says", blank=True),
    ]


class Judgement(Row, frozen=True, kw_only=True):
    """What bounds the window, and the parts that say so."""

    bound: Annotated[Bound, column("", "the part that holds most of the window, if one does")]
    reason: Annotated[Text, column("", "a sentence with its figures")]
    parts: tuple[Part, ...]  # largest first; they add up to the window; none where there was no device work


class Trust(Row, frozen=True, kw_only=True):
    """What the figures rest on."""

    linked: Annotated[Count, column("", "device events with their launch call")]
    unlinked: Annotated[Count, column("", "device events without: launched before recording, or no launch record")]
    clock_skewed: Annotated[Count, column("", "linked device events that start before their launch call")]
    linked_share: Annotated[Share | None, column("", "linked of all device events; null: there are none")]
    profiler_ns: Annotated[Ns, column("", "the profiler's own work")]
    python_stacks: Annotated[bool, column("", "Python frames were recorded, which inflates CPU times")]
    idle_reliable: Annotated[
        bool | None, column("", "every launch has its device record, so that idle is idle; null: no device events")
    ]


class Verdict(Result, frozen=True, kw_only=True):
    SECTION = "verdict"
    TITLE = "What bounds it"
    DETAIL = True

    window: Window
    verdict: Judgement
    trust: Trust

    def trusted(self) -> tuple[str, ...]:
        """Sentences: what is linked, what is skewed, what the profiler itself took."""
        t = self.trust
        total = t.linked + t.unlinked
        said = [f"{t.linked:,} of {total:,} device events linked to a launch" if total else "no device events"]
        if t.unlinked:
            said.append(f"{t.unlinked:,} launched before recording, or without a launch record")
        if t.clock_skewed:
            said.append(f"{t.clock_skewed:,} start before their launch (clock skew)")
        if t.profiler_ns:
            said.append(f"the profiler's own work took {units.duration(t.profiler_ns)}")
        if t.python_stacks:
            said.append("Python stacks on: CPU times are inflated by the profiler itself")
        return tuple(said)

    def blocks(self) -> Iterator[Block]:
        """How the verdict came about: each part of the window."""
        if spent := [p for p in self.verdict.parts if p.ns]:
            part = cells("part", Unit.TEXT, lambda p: p.part.replace("_", " "))
            yield table("Where the window went", Part, spent, part, "ns", "share", "mostly_in")

    def first(self) -> Table | None:
        return next((block for block in self.blocks() if isinstance(block, Table)), None)


def analyze(chains: Chains) -> Verdict:
    found, window = chains.verdict, chains.window
    linked, events = int(chains.device.frame["launch"].is_not_null().sum()), chains.device.frame.height
    total = sum(found.parts.values())
    mostly = _mostly(chains)
    return Verdict(
        window=Window(
            start_ns=window.start if window else None,
            end_ns=window.end if window else None,
            duration_ns=window.duration if window else None,
        ),
        verdict=Judgement(
            bound=found.bound,
            reason=found.reason,
            parts=tuple(
                Part(part=part, ns=ns, share=ns / total if total else 0.0, mostly_in=mostly.get(part))
                for part, ns in sorted(found.parts.items(), key=lambda x: -x[1])
            ),
        ),
        trust=Trust(
            linked=linked,
            unlinked=events - linked,
            clock_skewed=chains.device.skewed,
            linked_share=linked / events if events else None,
            profiler_ns=int((chains.profiler.busy["end"] - chains.profiler.busy["ts"]).sum()),
            python_stacks=chains.frames.height > 0,
            idle_reliable=not chains.launching.lost.any() if events else None,
        ),
    )


def _mostly(chains: Chains) -> dict[str, str]:
    """By part of the window what has most of it: of busy time a kernel or copy, of idle time whom the device waited
    for."""
    pieces, work = chains.idle.pieces, chains.account.work
    idle = pieces.select(part=pl.Series(parts.of_pieces(pieces)), name="owner", ns="ns")
    busy = work.select(part=parts.kind_of_work(work), name="name", ns=pl.col("end") - pl.col("ts"))
    most = (
        pl.concat([idle, busy], how="vertical_relaxed")
        .filter(pl.col("name") >= 0)
        .group_by("part", "name")
        .agg(pl.col("ns").sum())
        .sort(["ns", "name"], descending=[True, False])
        .group_by("part", maintain_order=True)
        .first()
    )
    names = chains.trace.text(most["name"])
    return {parts.Part(part).key: name for part, name in zip(most["part"], names, strict=True) if name}
