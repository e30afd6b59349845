"""How far the figures of a recording can be trusted: what is missing, and by how much it matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from analyzer import units
from analyzer.index.parts import Part
from analyzer.index.vocabulary import Call

if TYPE_CHECKING:
    from analyzer.index.earlier_work import EarlierWork
    from analyzer.index.host import Host
    from analyzer.index.launching import Launching
    from analyzer.index.tree import Mask

#: Below a hundredth of the window nobody could tell the difference.
SEEN = 0.01


@dataclass(frozen=True, slots=True)
class Recording:
    """earlier_work_ns: of both kinds, in the window. lost_launches: without a device record, captured ones apart.

    began_midflight     the device was at work when the recording began.
    replays             graph launches; incomplete: without all of their work.
    effect_on_verdict   a sentence: what is missing, and what the verdict then speaks of.
    """

    began_midflight: bool
    earlier_work_ns: int
    captures: int
    captured_launches: int
    lost_launches: int
    replays: int
    replays_incomplete: int
    effect_on_verdict: str


def find(
    host: Host, launching: Launching, earlier: EarlierWork, device: pl.DataFrame, parts: Mapping[Part, int]
) -> Recording:
    """device: rows as in `Device.frame`. parts: of the window (ns)."""
    lost, captures = launching.lost, launching.captures
    # A driver's call inside the runtime's is one launch.
    graph = host.call == Call.GRAPH
    replays = graph & (host.enclosing(graph) < 0) & ~captures.captured
    return Recording(
        began_midflight=earlier.unlinked or earlier.unrecorded.height > 0,
        earlier_work_ns=parts.get(Part.EARLIER_WORK, 0),
        captures=len(captures.start),
        captured_launches=int(captures.captured.sum()),
        lost_launches=int(lost.sum()),
        replays=int(replays.sum()),
        replays_incomplete=int((lost & replays).sum()) + _cut_replays(graph, device),
        effect_on_verdict=_effect(parts),
    )


def _cut_replays(graph: Mask, device: pl.DataFrame) -> int:
    """Graph launches whose recorded work is only the beginning of another launch's: the rest was lost."""
    linked = device.drop_nulls("launch")
    mine = linked.filter(pl.Series(graph[linked["launch"].to_numpy()]))
    work = (
        mine.sort("launch", "ts", maintain_order=True)
        .group_by("launch", maintain_order=True)
        .agg(first=pl.col("name").first(), events=pl.len(), names=pl.col("name"))
    )
    whole = work.sort("events", descending=True, maintain_order=True).group_by("first").first()
    short = work.join(whole.select("first", most="events", all="names"), on="first").filter(
        pl.col("events") < pl.col("most")
    )
    return sum(some == every[: len(some)] for some, every in short.select("names", "all").iter_rows())


def _effect(parts: Mapping[Part, int]) -> str:
    whole = sum(parts.values())
    missing = {
        "earlier work, launched before the window began": parts.get(Part.EARLIER_WORK, 0),
        "launches without a device record": parts.get(Part.NOT_RECORDED, 0),
    }
    said = [
        f"{units.duration(ns)} of {units.duration(whole)} ({units.share(ns / whole)}) are {what}"
        for what, ns in missing.items()
        if whole and ns >= SEEN * whole
    ]
    return "; ".join(said) + ": the verdict speaks of the rest" if said else "none"
