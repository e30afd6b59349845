"""Judgements: one file each, found by themselves; the module's docstring is what `tracecli explain` prints.

Here is only what all of them share: how grave a share of the run is, and how a figure is worded.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from analyzer import units
from analyzer.analyses.copies import Copies
from analyzer.analyses.overview import Overview
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity

#: A quarter of the run holds it back: whoever owns the run would stop and fix it first.
HOLDS = 0.25
#: Below a twentieth a gain drowns in the usual spread from run to run; from there on it is worth a day.
WORTH = 0.05
#: Below a hundredth nobody could measure the difference: only what must be known is said.
SEEN = 0.01

T = TypeVar("T", bound=Result)


def take(results: Mapping[str, Result], kind: type[T]) -> T:
    """The result of one analysis, by its type."""
    return next(r for r in results.values() if isinstance(r, kind))


def share_of(chains: Chains, ns: float) -> float:
    """Part of the window's device time, 0 to 1."""
    total = exposure.whole(chains)
    return min(1.0, ns / total) if total else 0.0


def grade(share: float, most: Severity = Severity.ERROR) -> Severity:
    """How grave a share of the run is; never graver than `most`."""
    found = Severity.ERROR if share >= HOLDS else Severity.WARNING if share >= WORTH else Severity.NOTE
    order = list(Severity)
    return order[max(order.index(found), order.index(most))]


def host_bound(results: Mapping[str, Result]) -> bool:
    """Whether the host sets the pace: then a shorter kernel only makes the device wait longer."""
    return take(results, Overview).verdict.bound in ("overhead-bound", "input-bound", "sync-bound")


def finding(
    name: str,
    severity: Severity,
    title: str,
    evidence: Iterable[str | None],
    advice: str,
    up_to_ns: int | None,
    chains: Chains,
) -> Finding:
    """A finding with its share of the window; lines that are None or empty are left out."""
    lines = tuple(line for line in evidence if line)
    share = None if up_to_ns is None else share_of(chains, up_to_ns)
    return Finding(name, severity, title, lines, advice, up_to_ns, share)


def spread(values: Sequence[int] | Sequence[float]) -> str:
    """What a reader needs of many durations: the median, and how far the worst is from it."""
    if len(values) == 1:
        return units.duration(values[0])
    return f"median {units.duration(statistics.median(values))}, max {units.duration(max(values))}"


def copied(c: Copies) -> str:
    """One kind of copy: count, times, bytes and rate."""
    return (
        f"{c.count:,} × {c.kind}: total {units.duration(c.total_ns)}, median {units.duration(c.median_ns)}, max "
        f"{units.duration(c.max_ns)}; {units.size(c.bytes)} at {units.rate(c.bandwidth)}"
    )


def named(pairs: Iterable[tuple[str, int]], width: int = 48) -> str:
    """`aten::addmm 18 ms, aten::add 4 ms`."""
    return ", ".join(f"{units.short_name(name, width)} {units.duration(ns)}" for name, ns in pairs)
