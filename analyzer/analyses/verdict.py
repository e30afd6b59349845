"""The window, the verdict, and how far the figures can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analyzer import units
from analyzer.index.bound import Verdict
from analyzer.index.build import Chains, Window
from analyzer.model import Column, Section, Table, Unit

ORDER = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """window None: no events. stacks: Python frames were recorded, which inflates CPU times."""

    window: Window | None
    verdict: Verdict
    linked: int
    unlinked: int
    skewed: int
    profiler_ns: int
    stacks: bool
    missing_launches: int

    def contract(self) -> dict[str, Any]:
        w = self.window
        return {
            "window": {
                "start_us": units.us(w.start) if w else None,
                "end_us": units.us(w.end) if w else None,
                "duration_us": units.us(w.duration) if w else None,
            },
            "verdict": self.verdict.contract(),
            "trust": {
                "linked_share": self.linked / (self.linked + self.unlinked) if self.linked + self.unlinked else None,
                "profiler_us": units.us(self.profiler_ns),
                "python_stacks": self.stacks,
                "idle_reliable": None if not self.linked + self.unlinked else self.missing_launches == 0,
            },
        }

    def trust(self) -> tuple[str, ...]:
        """Sentences: what is linked, what is skewed, what the profiler itself took."""
        total = self.linked + self.unlinked
        said = [f"{self.linked:,} of {total:,} device events linked to a launch" if total else "no device events"]
        if self.unlinked:
            said.append(f"{self.unlinked:,} launched before recording, or without a launch record")
        if self.skewed:
            said.append(f"{self.skewed:,} start before their launch (clock skew)")
        if self.profiler_ns:
            said.append(f"the profiler's own work took {units.duration(self.profiler_ns)}")
        if self.stacks:
            said.append("Python stacks on: CPU times are inflated by the profiler itself")
        return tuple(said)

    def section(self, top: int) -> Section | None:
        """How the verdict came about: each part of the device's time in the window."""
        parts = sorted(((p, ns) for p, ns in self.verdict.parts.items() if ns), key=lambda x: -x[1])
        total = sum(ns for _, ns in parts)
        if not total:
            return None
        table = Table(
            "Device time in the window",
            (Column("part", Unit.TEXT), Column("time", Unit.NS, bar=True), Column("of window", Unit.SHARE)),
            tuple((part, ns, ns / total) for part, ns in parts),
        )
        return Section("verdict", "What bounds it", tables=(table,), detail=True)


def analyze(chains: Chains) -> Overview:
    linked = int(chains.device["launch"].is_not_null().sum())
    return Overview(
        window=chains.window,
        verdict=chains.verdict,
        linked=linked,
        unlinked=chains.device.height - linked,
        skewed=chains.skewed,
        profiler_ns=int((chains.profiler_busy["end"] - chains.profiler_busy["ts"]).sum()),
        stacks=chains.frames.height > 0,
        missing_launches=int(chains.unrecorded.sum()),
    )
