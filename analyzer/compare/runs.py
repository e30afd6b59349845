"""A run as comparisons see it: figures per unit of work, from the typed results of its report.

A unit is a call of an annotation that all runs have and that makes up most of each, else a profiler
step, else the whole trace. Totals are divided by the number of units, so that a run of three steps
compares fairly with one of two.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from analyzer.analyses.annotations import Annotation, Annotations
from analyzer.analyses.attention import Attention
from analyzer.analyses.capture import Capture
from analyzer.analyses.copies import Copies
from analyzer.analyses.devices import Devices
from analyzer.analyses.gaps import Gaps
from analyzer.analyses.kernels import Kernels
from analyzer.analyses.launches import Launches
from analyzer.analyses.operators import Operators
from analyzer.analyses.steps import Steps
from analyzer.analyses.trace import TraceFile
from analyzer.analyses.verdict import Verdict
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ratio, Row, Text, column
from analyzer.report.document import Findings
from analyzer.report.results import Results

#: An annotation is the unit where its calls hold at least this share of the steps' host time.
MOST = 0.5

#: Parts of the window in which the device worked for the run itself.
BUSY = ("compute", "communication", "copies")


class UnitOfWork(Row, frozen=True, kw_only=True):
    """What figures are divided by."""

    kind: Annotated[Literal["annotation", "step", "trace"], column("", "trace: the runs have nothing in common")]
    name: Annotated[Name | None, column("", "of the annotation; null: the unit is none")] = None

    @property
    def title(self) -> str:
        if self.kind == "annotation":
            return f"per call of {self.name}"
        return "per step" if self.kind == "step" else "whole trace"

    @property
    def plural(self) -> str:
        """`calls of forward`, `steps`."""
        return f"calls of {self.name}" if self.kind == "annotation" else "steps"


class Run(Row, frozen=True, kw_only=True):
    """One run, per unit of work."""

    name: Annotated[Name, column("run", "what tells its file from the others")]
    path: Annotated[Text, column("", "of the trace, as its report names it")]
    units: Annotated[Count, column("", "calls or steps that it has; 1 for a whole trace")]
    device: Annotated[Text | None, column("", "names of the devices; null: none, or not recorded")]
    verdict: Annotated[Text, column("verdict", "of the annotation, else of the run")]
    pace_ns: Annotated[
        MeanNs | None, column("pace", "the slower of host and device: a unit's time where units follow each other")
    ]
    host_ns: Annotated[
        MeanNs | None, column("", "what the host needs: without the profiler where all runs say, else `cpu_us`")
    ]
    cpu_ns: Annotated[MeanNs, column("CPU", "host time, as profiled: the median")]
    cpu_ns_spread: Annotated[MeanNs, column("", "robust standard deviation of the host time over the units")]
    tax_ns: Annotated[MeanNs, column("CPU tax", "host time less blocking waits and the profiler's time")]
    device_ns: Annotated[MeanNs | None, column("device", "device time: the median; null: no device")]
    device_pace_ns: Annotated[
        MeanNs | None,
        column("", "`device_us`, or what of the window a unit's work fills, where units overlap and that is less"),
    ]
    device_ns_spread: Annotated[MeanNs, column("", "robust standard deviation of the device time over the units")]
    idle_ns: Annotated[MeanNs | None, column("idle", "idle time of all devices; null: no device")]
    kernels_and_copies: Annotated[MeanCount | None, column("kernels+copies", "null: no device")]
    copies: Annotated[MeanCount, column("copies", "memory copies")]
    memsets: Annotated[MeanCount, column("memsets", "memory fills")]
    launches: Annotated[MeanCount, column("launches", "launch calls")]
    attention: Annotated[tuple[str, ...], column("attention", "backends that computed it")]
    findings: Annotated[tuple[str, ...], column("", "names, the gravest first")]
    inflation: Annotated[Ratio | None, column("", "profiled by unprofiled step time, as the recorder stamped it")]
    unprofiled_step_ns: Annotated[
        MeanNs | None, column("step, unprofiled", "timed without the profiler; null: not stamped, or not per unit")
    ]
    idle_by_cause_ns: Annotated[dict[str, MeanNs], column("", "idle time by cause")]
    window_ns: Annotated[MeanNs | None, column("", "the window by its units; null: no window")]
    parts_ns: Annotated[dict[str, MeanNs], column("", "where the window went; they add up to `window_us`")]
    communication_ns: Annotated[MeanNs, column("", "union of the kernels of collectives, mean of the devices")]
    python_stacks: Annotated[bool, column("", "Python frames were recorded, which stretches host times")]
    rank: Annotated[int | None, column("", "of a distributed job; null: not recorded")]
    world_size: Annotated[int | None, column("", "ranks of the job; null: not recorded")]

    @property
    def host_bound(self) -> bool:
        return (self.host_ns or 0) > (self.device_pace_ns or 0)


@dataclass(frozen=True, slots=True)
class Item:
    """An operator or a kernel of one run. Times in ns; per unit but for the medians, which are per call.

    spread_ns  robust standard deviation over the calls.
    """

    name: str
    kind: str
    calls: float
    total_ns: float
    median_ns: float
    spread_ns: float


def unit_of(runs: Sequence[Results]) -> UnitOfWork:
    """The unit of work that all runs share."""
    common = set.intersection(*({a.name for a in run[Annotations].annotations} for run in runs)) if runs else set()
    best: tuple[float, str] | None = None
    for name in sorted(common):
        least = min(_share(run, name) for run in runs)
        if least >= MOST and (best is None or least > best[0]):
            best = (least, name)
    if best is not None:
        return UnitOfWork(kind="annotation", name=best[1])
    return UnitOfWork(kind="step" if all(run[Steps].steps for run in runs) else "trace")


def _share(run: Results, name: str) -> float:
    whole = sum(step.cpu_ns for step in run[Steps].steps) or run[Verdict].window.duration_ns or 0
    return _annotation(run, name).cpu_ns / whole if whole else 0.0


def _annotation(run: Results, name: str | None) -> Annotation:
    return next(a for a in run[Annotations].annotations if a.name == name)


def unprofiled(run: Results, unit: UnitOfWork) -> float | None:
    """Host time of a unit without the profiler (ns): stamped by the recorder, where a unit is a step."""
    time = _stamped(run, "unprofiled_step_us")
    if time is None or unit.kind == "trace":
        return None
    one_a_step = unit.kind == "step" or _annotation(run, unit.name).calls == len(run[Steps].steps)
    return time * 1000 if one_a_step else None


def _stamped(run: Results, key: str) -> float | None:
    """A figure of the recorder's stamp, which is free in form."""
    value = (run[Capture].capture or {}).get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def figures(run: Results, label: str, unit: UnitOfWork, *, profiled: bool = True) -> Run:
    """Figures of one run per unit. profiled: False takes the host's time from unprofiled steps."""
    units, own = _per_unit(run, unit)
    plain = unprofiled(run, unit)
    host = own["cpu_ns"] if profiled else plain
    causes: dict[str, float] = {}
    for row in run[Gaps].gaps.by_cause:
        causes[row.cause] = causes.get(row.cause, 0.0) + row.total_ns / units
    devices, verdict, trace = run[Devices].devices, run[Verdict], run[TraceFile].trace
    parts = {part.part: part.ns / units for part in verdict.verdict.parts}
    # Work of one unit that runs beside the last one's counts in both, and the device is busy once.
    filled = sum(parts.get(part, 0.0) for part in BUSY)
    device = min(own["device_ns"], filled) if own["device_ns"] is not None and filled else own["device_ns"]
    known = [time for time in (host, device) if time is not None]
    return Run(
        name=label,
        path=trace.path,
        units=units,
        device=", ".join(sorted({d.name for d in devices if d.name})) or None,
        pace_ns=max(known) if known else None,
        host_ns=host,
        idle_ns=sum(d.idle_ns for d in devices) / units if devices else None,
        attention=tuple(sorted({a.backend for a in run[Attention].attention})),
        findings=tuple(dict.fromkeys(f.name for f in run[Findings].findings)),
        inflation=_stamped(run, "inflation"),
        unprofiled_step_ns=plain,
        idle_by_cause_ns=causes,
        window_ns=None if verdict.window.duration_ns is None else verdict.window.duration_ns / units,
        parts_ns=parts,
        device_pace_ns=device,
        communication_ns=sum(d.communication_ns for d in devices) / (units * max(1, len(devices))),
        python_stacks=verdict.trust.python_stacks,
        rank=trace.rank,
        world_size=trace.world_size,
        **own,
    )


def _per_unit(run: Results, unit: UnitOfWork) -> tuple[int, dict[str, Any]]:
    """Number of units, and the figures that depend on what a unit is."""
    devices = run[Devices].devices
    if unit.kind == "annotation":
        a = _annotation(run, unit.name)
        return a.calls, {
            "verdict": a.verdict or run[Verdict].verdict.bound,
            "cpu_ns": a.cpu_ns_median,
            "cpu_ns_spread": a.cpu_ns_spread,
            "tax_ns": a.tax_ns_median,
            "device_ns": a.device_ns_median if devices else None,
            "device_ns_spread": a.device_ns_spread,
            "kernels_and_copies": a.kernels_median + a.copies_median if devices else None,
            "copies": a.copies_median,
            "memsets": a.memsets_median,
            "launches": a.launches_median,
        }
    steps = run[Steps].steps if unit.kind == "step" else ()
    units = len(steps) or 1
    cpu = [float(s.cpu_ns) for s in steps] or [float(run[Verdict].window.duration_ns or 0)]
    device = [float(s.device_busy_ns) for s in steps] or [float(sum(d.busy_ns for d in devices))]
    kernels = sum(k.calls for k in run[Kernels].kernels if k.kind not in ("copy", "memset"))
    copies, memsets = (
        sum(c.count for c in run[Copies].copies if c.kind.startswith(prefix)) for prefix in ("Memcpy", "Memset")
    )
    return units, {
        "verdict": run[Verdict].verdict.bound,
        "cpu_ns": statistics.median(cpu),
        "cpu_ns_spread": _spread(cpu),
        "tax_ns": sum(o.self_tax_ns for o in run[Operators].operators) / units,
        "device_ns": statistics.median(device) if devices else None,
        "device_ns_spread": _spread(device),
        "kernels_and_copies": (kernels + copies) / units if devices else None,
        "copies": copies / units,
        "memsets": memsets / units,
        "launches": run[Launches].launches.count / units,
    }


def operators(run: Results, units: int) -> Mapping[str, Item]:
    """Self tax of all operators by name."""
    return {
        o.name: Item(
            o.name, "operator", o.calls / units, o.self_tax_ns / units, o.self_tax_median_ns, o.self_tax_spread_ns
        )
        for o in run[Operators].operators
    }


def kernels(run: Results, units: int) -> Mapping[str, Item]:
    """Device time of all kernels, copies and fills by name."""
    return {
        k.name: Item(k.name, k.kind, k.calls / units, k.total_ns / units, k.median_ns, k.spread_ns)
        for k in run[Kernels].kernels
    }


def _spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return 1.4826 * statistics.median([abs(v - middle) for v in values])
