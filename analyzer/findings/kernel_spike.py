"""Kernels ran far longer than their own kind, alone or for a stretch.

What it means
    A lone spike is an interruption: another process or stream on the device, a copy, clocks that ramp up after a
    pause. A stretch in which every call of a kernel is slower by the same amount is a change of clocks or power.
    A mean hides both.

How it is computed
    Against the median of the same kernel, launch shape and input shapes, at least five calls. A spike lies eight
    robust deviations out, three times the median and 50 µs above it, and is rarer than one call in ten; a
    stretch is twenty calls or more whose running median stays 3% above. One finding gathers all spikes of a
    kernel, one each stretch. Collectives are left out: they wait for other ranks. It fires where the excess over the
    median is half a hundredth of the window, as a warning from a hundredth. "Up to" is that excess.

What to try
    See who shares the device: nvidia-smi, nvidia-smi pmon, MPS; rocm-smi --showpids. Clocks: nvidia-smi -q -d
    CLOCK,PERFORMANCE or rocm-smi --showclocks, and for measurements lock them (nvidia-smi -lgc, rocm-smi
    --setperfdeterminism). Prefer medians over means in benchmarks.

When it is wrong
    Kernels whose work depends on data (sparse, gather, sort) vary by themselves. Input shapes are told apart only
    where record_shapes was on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from analyzer import units
from analyzer.analyses.kernels import Kernels
from analyzer.analyses.spikes import Shift, Spike, Spikes
from analyzer.findings import SEEN, finding, share_of, words
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "kernel-spike"
LEAST = 0.005
#: Kernels and stretches that get a finding of their own, the costliest first.
SHOWN = 3
#: Spikes within this many medians of each other are one burst.
BURST = 50


def find(results: Results) -> Iterable[Finding]:
    collectives = {k.name for k in results[Kernels].kernels if k.kind == "communication"}
    groups: dict[str, list[Spike]] = {}
    for spike in results[Spikes].spikes:
        if spike.name not in collectives:
            groups.setdefault(spike.name, []).append(spike)
    lone = [_lone(results, name, group) for name, group in groups.items()]
    slow = [_stretch(results, s) for s in results[Spikes].level_shifts if s.name not in collectives]
    for found in (lone, slow):
        worth = [f for f in found if (f.share or 0) >= LEAST]
        yield from sorted(worth, key=lambda f: -(f.up_to_ns or 0))[:SHOWN]


def _grade(results: Results, ns: int) -> Severity:
    return Severity.WARNING if share_of(results, ns) >= SEEN else Severity.NOTE


def _lone(results: Results, name: str, group: list[Spike]) -> Finding:
    excess = sum(s.excess_ns for s in group)
    reasons = Counter(s.reason for s in group).most_common(3)
    bursts = 1 + sum(b.start_ns - a.start_ns > BURST * a.median_ns for a, b in pairwise(group))
    grouped = f", in {plural(bursts, 'burst')}" if len(group) > 1 and bursts < len(group) else ""
    took = [s.duration_ns for s in group]
    return finding(
        results,
        NAME,
        _grade(results, excess),
        f"{plural(len(group), 'lone call')} of one kernel ran far longer than the rest{grouped}",
        (
            f"{units.short_name(name, 80)}: usually {units.duration(group[0].median_ns)}, then {_spread(took)}",
            *(f"{n:,} ×: {reason}" for reason, n in reasons),
        ),
        f"Look for other processes on the device ({words(results).processes}) and other streams at these times; judge "
        "the kernel by its median.",
        excess,
    )


def _spread(ns: list[int]) -> str:
    if len(ns) == 1:
        return units.duration(ns[0])
    return f"median {units.duration(median(ns))}, max {units.duration(max(ns))}"


def _stretch(results: Results, s: Shift) -> Finding:
    return finding(
        results,
        NAME,
        _grade(results, s.excess_ns),
        f"{s.count:,} calls in a row ran {units.share(s.ratio - 1)} slower",
        (
            f"{units.short_name(s.name, 80)}: calls {s.first_call:,} to {s.last_call:,}, from "
            f"{units.duration(s.start_ns)} to {units.duration(s.end_ns)}; median {units.duration(s.median_ns)} and up "
            f"to {units.duration(s.max_ns)}, else {units.duration(s.baseline_ns)}",
        ),
        f"All calls moved together: clocks or power ({words(results).clocks}). Lock the clocks to measure.",
        s.excess_ns,
    )
