"""Which run to take, and why, in a few sentences; or why no run can be named."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer import units
from analyzer.compare.runs import Run

#: Paces closer than this are alike: less is within what clocks do between two recordings.
ALIKE = 0.05
#: Profiled host times of two runs differ by more than this from recording to recording.
ALIKE_TAX = 0.1
#: The profiler stretches an eager step two and a half times, and a compiled or replayed one hardly at all: below this
#: ratio profiled host times may name the wrong run.
STRETCH = 2.5
#: Causes of a difference that are named, and the least share of the largest that one needs.
CAUSES, LEAST_CAUSE = 4, 0.05
#: Parts of a window that are no time of the run itself.
NOT_THE_RUNS = ("earlier_work", "profiler", "not_recorded")


def best(runs: Sequence[Run], *, profiled: bool) -> Run | None:
    """The run with the best pace; None where no run has one, all are alike, or the figures do not settle it."""
    paced = _paced(runs)
    if len(paced) < 2 or ranks_of_one_job(runs) or _ratio(paced[-1], paced[0]) <= 1 + ALIKE:
        return None
    return None if _unsettled(paced, profiled) else paced[0]


def lesson(runs: Sequence[Run], unit: str, *, profiled: bool) -> str:
    """What the figures say: the best pace, what bounds it, where a difference comes from, and what of it is hidden.

    profiled  paces rest on host times as profiled.
    """
    paced = _paced(runs)
    if len(paced) < 2:
        return "too little in common to compare times"
    if ranks_of_one_job(runs):
        return _ranks(runs, unit)
    said = []
    first, worst = paced[0], paced[-1]
    if _ratio(worst, first) <= 1 + ALIKE:
        said.append(f"all alike in pace: {units.duration(first.pace_ns)} {unit}")
    elif why := _unsettled(paced, profiled):
        said.append(f"no run to take: {why}")
    else:
        gain = units.ratio(_ratio(worst, first))
        said.append(f"take {first.name}: {units.duration(first.pace_ns)} {unit}, {gain} faster than {worst.name}")
        if alike := [r.name for r in paced[1:] if _ratio(r, first) <= 1 + ALIKE]:
            said[-1] += f" ({', '.join(alike)} alike)"
        said.append(_bound(first))
    if len(runs) == 2 and (causes := difference(runs[0], runs[1])):
        said.append(f"{'' if profiled else 'as profiled '}{causes}")
    said += _tax(paced)
    return "; ".join(said)


def ranks_of_one_job(runs: Sequence[Run]) -> bool:
    """Different ranks of jobs of one size: they work in step, and neither is a choice."""
    ranks = {r.rank for r in runs}
    return None not in ranks and len(ranks) == len(runs) and {r.world_size for r in runs} not in ({None}, {1})


def difference(before: Run, after: Run) -> str:
    """The difference of two windows as the sum of their parts; in brackets what lies within their spread.

    "" where one has no parts, or both are alike.
    """
    parts = [part for part in {**before.parts_ns, **after.parts_ns} if part not in NOT_THE_RUNS]
    one, two = (sum(run.parts_ns.get(part, 0.0) for part in parts) for run in (before, after))
    total = two - one
    noise = max(before.cpu_ns_spread, after.cpu_ns_spread, ALIKE * min(one, two))
    if not one or not two or abs(total) <= noise:
        return ""
    moved = {part: after.parts_ns.get(part, 0.0) - before.parts_ns.get(part, 0.0) for part in parts}
    ranked = sorted(moved.items(), key=lambda one: (-abs(one[1]), one[0]))
    named = [(p, ns) for p, ns in ranked[:CAUSES] if abs(ns) >= LEAST_CAUSE * abs(ranked[0][1])]
    texts = [
        text if abs(ns) > noise else f"({text})"
        for part, ns in named
        for text in [f"{part.replace('_', ' ')} {_signed(ns)}"]
    ]
    rest = total - sum(ns for _, ns in named)
    if abs(rest) >= LEAST_CAUSE * abs(ranked[0][1]):
        texts.append(f"rest {_signed(rest)}")
    return f"{_signed(total)} in {after.name}: {', '.join(texts)}"


def _paced(runs: Sequence[Run]) -> list[Run]:
    """Runs with a pace, the best first."""
    return sorted((r for r in runs if r.pace_ns), key=lambda r: (r.pace_ns or 0.0, r.tax_ns or 0.0))


def _ratio(slow: Run, fast: Run) -> float:
    return (slow.pace_ns or 0.0) / (fast.pace_ns or 1.0)


def _unsettled(paced: Sequence[Run], profiled: bool) -> str:
    """Why the best pace is no reason to take that run; "": it is one. paced: the best first."""
    first, worst = paced[0], paced[-1]
    if not profiled or not (first.host_bound or worst.host_bound):
        return ""
    if len({r.python_stacks for r in paced}) > 1:
        stacked = ", ".join(r.name for r in paced if r.python_stacks)
        return (
            f"Python stacks were on in {stacked} only, and stretch host times; record all alike, or time steps without "
            "the profiler"
        )
    leanest = min((r for r in paced if r.device_pace_ns), key=lambda r: r.device_pace_ns or 0.0, default=first)
    device = (first.device_pace_ns or 0.0) / (leanest.device_pace_ns or 1.0)
    pace = _ratio(leanest, first)
    if device <= 1 + ALIKE or pace > STRETCH:
        return ""
    return (
        f"as profiled {first.name} is {units.ratio(pace)} faster by its host, {leanest.name} {units.ratio(device)} by "
        "its device, and the profiler stretches host times unevenly; time steps of both without the profiler"
    )


def _ranks(runs: Sequence[Run], unit: str) -> str:
    ordered = sorted(runs, key=lambda r: r.rank or 0)
    size = f" of {ordered[0].world_size}" if len({r.world_size for r in runs}) == 1 else ""
    numbers = " and ".join(str(r.rank) for r in ordered)
    said = f"ranks {numbers}{size} of one job: they work in step, and none is to be taken"
    most = max(runs, key=lambda r: r.communication_ns)
    least = min(runs, key=lambda r: r.communication_ns)
    if most.communication_ns <= (1 + ALIKE) * least.communication_ns:
        return f"{said}; their collectives take alike, {units.duration(most.communication_ns)} {unit}"
    return (
        f"{said}; rank {most.rank} spends {units.duration(most.communication_ns)} {unit} in collectives, rank "
        f"{least.rank} {units.duration(least.communication_ns)}: rank {least.rank} is the one that is waited for, and "
        f"its own report says why ({least.verdict})"
    )


def _bound(run: Run) -> str:
    if run.device_pace_ns is None:
        return "the host alone is recorded"
    host, device = units.duration(run.host_ns), units.duration(run.device_pace_ns)
    if run.host_bound:
        return f"the host sets its pace ({host}, the device needs {device})"
    return f"the device sets its pace ({device}, the host needs {host})"


def _tax(runs: Sequence[Run]) -> list[str]:
    """How the CPU tax differs, and whether it matters."""
    taxed = [r for r in runs if r.tax_ns]
    if len(taxed) < 2:
        return []
    low, high = min(taxed, key=lambda r: r.tax_ns or 0), max(taxed, key=lambda r: r.tax_ns or 0)
    ratio = (high.tax_ns or 0) / (low.tax_ns or 1)
    if ratio <= 1 + ALIKE_TAX:
        return []
    text = (
        f"CPU tax, as profiled, differs {units.ratio(ratio)}: {units.duration(low.tax_ns)} ({low.name}) "
        f"to {units.duration(high.tax_ns)} ({high.name})"
    )
    if all(r.device_ns is not None and not r.host_bound for r in taxed):
        text += ", but is hidden behind the device in all of them"
    return [text]


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '-'}{units.duration(abs(ns))}"
