"""Pauses: idle time in which the host did something else than launching, by place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec

from analyzer.index.build import Chains
from analyzer.report.blocks import Block, table
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, column
from analyzer.report.results import Result

ORDER = 23

#: Places that are listed, the longest total first; starts of one place that are, in time order.
LISTED, STARTS = 1_000, 1_000


class Pause(Row, frozen=True, kw_only=True):
    """All pauses of one place and kind."""

    IDENTITY: ClassVar[str] = "place"

    place: Annotated[
        Name | None, column("place", "frame, operator or annotation that most of each passed in; null: not recorded")
    ]
    kind: Annotated[
        Literal["named", "unrecorded", "interference"],
        column("kind", "named work, nothing recorded, or waits for the interpreter's lock"),
    ]
    count: Annotated[Count, column("pauses", "stretches without a launch")]
    total_ns: Annotated[Ns, column("idle", "idle time of the device in them", bar=True)]
    median_ns: Annotated[MeanNs, column("median", "of one")]
    max_ns: Annotated[Ns, column("longest", "of one")]
    within: Annotated[Name | None, column("in", "the function that called it; null: not recorded")] = msgspec.field(
        name="in"
    )
    stack: Annotated[tuple[str, ...], column("", "of the longest, outermost first")]
    starts_ns: Annotated[tuple[Ns, ...], column("", "of each, in time order; at most 1,000")]


class Pauses(Result, frozen=True, kw_only=True):
    """The longest total first; at most 1,000 places."""

    SECTION = "pauses"
    TITLE = "Pauses of the host"

    pauses: tuple[Pause, ...]

    def blocks(self) -> Iterator[Block]:
        if self.pauses:
            yield table(
                "Pauses", Pause, self.pauses, "place", "within", "kind", "count", "total_ns", "median_ns", "max_ns"
            )


def analyze(chains: Chains) -> Pauses:
    return Pauses(
        pauses=tuple(
            Pause(
                place=p.place,
                kind=p.kind,
                count=p.count,
                total_ns=p.total_ns,
                median_ns=p.median_ns,
                max_ns=p.max_ns,
                within=p.within,
                stack=p.stack,
                starts_ns=p.starts[:STARTS],
            )
            for p in chains.idle.pauses.rows[:LISTED]
        )
    )
