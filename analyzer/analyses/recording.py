"""How far the figures can be trusted: what the recording lacks, and by how much it matters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from analyzer.index.build import Chains
from analyzer.report.blocks import Block, metric
from analyzer.report.columns import Count, Ns, Row, Text, column
from analyzer.report.results import Result
from analyzer.units import plural

ORDER = 3


class Completeness(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "began_midflight"

    began_midflight: Annotated[bool, column("began midflight", "the device was at work when the recording began")]
    earlier_work_ns: Annotated[
        Ns, column("earlier work", "of the window, device time of what was launched before it, recorded or not")
    ]
    captures: Annotated[Count, column("graph captures", "in the recording")]
    captured_launches: Annotated[Count, column("captured launches", "in them: they run nothing, and are not lost")]
    lost_launches: Annotated[Count, column("lost launches", "without a device record, captured ones apart")]
    replays: Annotated[Count, column("graph replays", "graph launches")]
    replays_incomplete: Annotated[Count, column("incomplete replays", "of them, those without all of their work")]
    effect_on_verdict: Annotated[Text, column("effect on the verdict", "what is missing of the window; none: nothing")]


class Recording(Result, frozen=True, kw_only=True):
    SECTION = "recording"
    TITLE = "What was recorded"
    DETAIL = True

    recording: Completeness

    def trusted(self) -> tuple[str, ...]:
        """Sentences: what graphs did, and what the window lacks."""
        r = self.recording
        said = []
        if r.replays:
            all_ = f"{r.replays_incomplete:,} without all of their work" if r.replays_incomplete else "all complete"
            said.append(f"{plural(r.replays, 'graph replay', 'graph replays')}, {all_}")
        if r.captured_launches:
            said.append(f"{plural(r.captured_launches, 'launch', 'launches')} captured into graphs ran nothing")
        if r.effect_on_verdict != "none":
            said.append(r.effect_on_verdict)
        return tuple(said)

    def blocks(self) -> Iterator[Block]:
        found = self.recording
        if found.earlier_work_ns:
            yield metric(found, "earlier_work_ns", "launched before the window began")
        if found.captures:
            yield metric(found, "captures")
            yield metric(found, "captured_launches", "they run nothing")
        if found.lost_launches:
            yield metric(found, "lost_launches", "the device may have worked in what looks like idle time")
        if found.replays:
            yield metric(found, "replays")
        if found.replays_incomplete:
            yield metric(found, "replays_incomplete")


def analyze(chains: Chains) -> Recording:
    found = chains.recording
    return Recording(
        recording=Completeness(
            began_midflight=found.began_midflight,
            earlier_work_ns=found.earlier_work_ns,
            captures=found.captures,
            captured_launches=found.captured_launches,
            lost_launches=found.lost_launches,
            replays=found.replays,
            replays_incomplete=found.replays_incomplete,
            effect_on_verdict=found.effect_on_verdict,
        )
    )
