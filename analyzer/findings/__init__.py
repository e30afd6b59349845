"""Judgements: one file each, found by themselves; the module's docstring is what `tracecli explain` prints.

A finding is a function of results: `find(results)` yields what it has to say, and measures nothing, so that a saved
report is judged as a fresh one is. Here is only what all of them share: how grave a share of the run is, and how a
figure is worded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from analyzer import units
from analyzer.analyses.attention import AttentionCalls
from analyzer.analyses.copies import CopyKind
from analyzer.analyses.copy_causes import CopyCauses, SmallCopies
from analyzer.analyses.devices import Devices
from analyzer.analyses.idle import Idle, IdleCause
from analyzer.analyses.optimizers import Optimizers, OptimizerWork
from analyzer.analyses.phases import PhasesResult
from analyzer.analyses.repeated_modules import RepeatedModule, RepeatedModules
from analyzer.analyses.steps import Steps
from analyzer.analyses.traits import Traits
from analyzer.analyses.verdict import Verdict
from analyzer.report.durations import Durations
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

#: A quarter of the run holds it back: whoever owns the run would stop and fix it first.
HOLDS = 0.25
#: Below a twentieth a gain drowns in the usual spread from run to run; from there on it is worth a day.
WORTH = 0.05
#: Below a hundredth nobody could measure the difference: only what must be known is said.
SEEN = 0.01
#: From this share on one phase is where it is; below, two are named.
MOSTLY = 0.8

#: Verdicts of runs that wait for their host.
HOST_BOUND = ("overhead-bound", "pause-bound", "input-bound", "sync-bound", "allocator-bound", "startup-bound")
#: What the host itself does from launch to launch. First use, compilation and the allocator have findings of their own.
HOST_WORK = ("dispatch", "compiled_overhead", "python")
#: The steady cost of launching.
LAUNCH_PATH = (*HOST_WORK, "launch_latency")

#: Launches of one operator a call, from which on an optimizer loops; and of all: below it costs next to nothing.
LOOP, LOOP_LAUNCHES = 8, 32
#: Small copies a step, and in all, from which on they are many: fewer are the usual scalars.
COPIES_PER_STEP, MANY_COPIES = 10, 50


@dataclass(frozen=True, slots=True)
class Words:
    """A platform's own words.

    graph: launches that are recorded once and replayed. how: the way to do it. processes, clocks: what shows them.
    """

    graph: str
    how: str
    processes: str
    clocks: str


_WORDS = {
    "cuda": Words(
        "CUDA graph",
        " (torch.cuda.graph, then g.replay())",
        "nvidia-smi pmon",
        "nvidia-smi -q -d CLOCK,PERFORMANCE",
    ),
    # torch.cuda is HIP there.
    "hip": Words(
        "HIP graph",
        " (torch.cuda.graph, then g.replay())",
        "rocm-smi --showpids",
        "rocm-smi --showclocks --showpower",
    ),
    "musa": Words("MUSA graph", "", "mthreads-gmi", "mthreads-gmi -q"),
    "xpu": Words("device graph", "", "xpu-smi ps", "xpu-smi stats -d 0"),
}
_ANYWHERE = Words("device graph", "", "the vendor's monitor", "the vendor's monitor")


def words(results: Results) -> Words:
    """Advice in the words of the platform that was recorded."""
    return _WORDS.get(results[Traits].traits.platform or "", _ANYWHERE)


def share_of(results: Results, ns: float) -> float:
    """Part of the window's device time, which is its length times the devices that worked in it."""
    whole = (results[Verdict].window.duration_ns or 0) * max(1, len(results[Devices].devices))
    return ns / whole if whole else 0.0


def part_of(results: Results, key: str) -> tuple[int, float]:
    """A part of the window: device time (ns, all devices), and its share."""
    for part in results[Verdict].verdict.parts:
        if part.part == key:
            return part.ns * max(1, len(results[Devices].devices)), part.share
    return 0, 0.0


def grade(share: float, most: Severity = Severity.ERROR) -> Severity:
    """How grave a share of the run is; never graver than `most`."""
    found = Severity.ERROR if share >= HOLDS else Severity.WARNING if share >= WORTH else Severity.NOTE
    order = list(Severity)
    return order[max(order.index(found), order.index(most))]


def bound(results: Results) -> str:
    """What the verdict says bounds the run."""
    return results[Verdict].verdict.bound


def host_bound(results: Results) -> bool:
    """Whether the host sets the pace: then a shorter kernel only makes the device wait longer."""
    return bound(results) in HOST_BOUND


def causes_of(results: Results, keys: Collection[str]) -> list[IdleCause]:
    """Idle time of some causes, by cause; those that there is none of are left out."""
    return [cause for cause in results[Idle].idle.by_cause if cause.cause in keys]


def in_phase(results: Results, keys: Collection[str]) -> str:
    """Where a run has several phases, which of them idle time of some causes belongs to: ", 96% of it in decode"."""
    phases = results[PhasesResult].phases
    found = {p.name: sum(c.ns for c in p.idle_by_cause if c.cause in keys) for p in phases}
    total = sum(found.values())
    if len(phases) < 2 or not total:
        return ""
    (first, most), *rest = sorted(found.items(), key=lambda one: -one[1])
    if most >= MOSTLY * total:
        return f", {units.share(most / total)} of it in {first}"
    return f", {units.share(most / total)} of it in {first} and {units.share(rest[0][1] / total)} in {rest[0][0]}"


def owners_of(causes: Iterable[IdleCause], top: int = 3) -> list[tuple[str, int]]:
    """Who the device waited for: (operator, annotation or frame, ns), the most first; not whoever hardly mattered."""
    total: dict[str, int] = {}
    for cause in causes:
        for owner in cause.owners:
            total[owner.name] = total.get(owner.name, 0) + owner.ns
    most = sorted(total.items(), key=lambda one: (-one[1], one[0]))[:top]
    return [(name, ns) for name, ns in most if ns * 100 >= most[0][1]]


def optimizer_loops(results: Results) -> list[OptimizerWork]:
    """Optimizers that take one parameter after the other."""
    return [
        o
        for o in results[Optimizers].optimizers
        if o.single_median >= LOOP_LAUNCHES and max(p.per_call for p in o.operators) >= LOOP
    ]


def repeated_calls(results: Results) -> list[RepeatedModule]:
    """Modules that are called in a row on pieces that the device is through with before the host is."""
    return [r for r in results[RepeatedModules].repeated_modules if r.host_ns_median > r.device_ns_median]


def gatherable_copies(results: Results) -> SmallCopies | None:
    """Small copies, where they are many and cost something."""
    small = results[CopyCauses].copy_causes.small
    many = small.count >= max(MANY_COPIES, COPIES_PER_STEP * len(results[Steps].steps))
    return small if many and share_of(results, small.device_ns + small.waited_ns) >= SEEN else None


def finding(
    results: Results,
    name: str,
    severity: Severity,
    title: str,
    evidence: Iterable[str | None],
    advice: str,
    up_to_ns: int | None = None,
) -> Finding:
    """A finding with its share of the window; lines that are None or empty are left out."""
    lines = tuple(line for line in evidence if line)
    share = None if up_to_ns is None else share_of(results, up_to_ns)
    return Finding(
        name=name, severity=severity, title=title, evidence=lines, advice=advice, up_to_ns=up_to_ns, share=share
    )


def spread(durations: Durations) -> str:
    """What a reader needs of many durations: the median, and how far the worst is from it."""
    if durations.count == 1:
        return units.duration(durations.max_ns)
    return f"median {units.duration(durations.median_ns)}, max {units.duration(durations.max_ns)}"


def copied(c: CopyKind) -> str:
    """One kind of copy: count, times, bytes and rate."""
    rate = None if c.gb_per_s is None else c.gb_per_s * 1e9
    return (
        f"{c.count:,} × {c.kind}: total {units.duration(c.total_ns)}, median {units.duration(c.median_ns)}, max "
        f"{units.duration(c.max_ns)}; {units.size(c.bytes)} at {units.rate(rate)}"
    )


def named(pairs: Iterable[tuple[str, int]], width: int = 48) -> str:
    """`aten::addmm 18 ms, aten::add 4 ms`; no two names look alike."""
    told = list(pairs)
    texts = units.short_names([name for name, _ in told], width)
    return ", ".join(f"{texts[name]} {units.duration(ns)}" for name, ns in told)


def attended(a: AttentionCalls, events: str, top: int = 6) -> str:
    """Calls of attention: count, place, time, and what that consists of by operator. events: word for device events."""
    parts = ", ".join(
        f"{part.operator.removeprefix('aten::')} {units.share(part.device_ns / a.device_ns)}"
        for part in a.parts[:top]
        if part.device_ns
    )
    return (
        f"{units.plural(a.calls, 'call')} in {a.annotation or 'no annotation'}: {units.duration(a.device_ns_median)} "
        f"on the device each, {units.count(a.device_events_per_call)} {events}; {parts}"
    )


def within(path: Sequence[str], last: int = 3) -> str:
    """The innermost entries of a path: `forward > aten::linear > aten::addmm`."""
    return " > ".join(path[-last:])
