"""Which run to take, and why, in two sentences."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer import units
from analyzer.compare.changes import LEAST
from analyzer.compare.runs import Run

#: Paces closer than this are alike: less is within what clocks do between two recordings.
ALIKE = 0.05


def best(runs: Sequence[Run]) -> Run | None:
    """The run with the best pace; None where no run has one, or all are alike."""
    paced = sorted((r for r in runs if r.pace_ns), key=lambda r: (r.pace_ns or 0.0, r.tax_ns or 0.0))
    if len(paced) < 2 or (paced[-1].pace_ns or 0) <= (1 + ALIKE) * (paced[0].pace_ns or 0):
        return None
    return paced[0]


def lesson(runs: Sequence[Run], unit: str) -> str:
    """What the figures say: the best pace, what bounds it, and whether a difference in tax is hidden."""
    paced = [r for r in runs if r.pace_ns]
    if len(paced) < 2:
        return "too little in common to compare times"
    said = []
    first = best(runs)
    if first is None:
        said.append(f"all alike in pace: {units.duration(paced[0].pace_ns)} {unit}")
    else:
        worst = max(paced, key=lambda r: r.pace_ns or 0.0)
        gain = (worst.pace_ns or 0) / (first.pace_ns or 1)
        said.append(
            f"take {first.name}: {units.duration(first.pace_ns)} {unit}, {units.ratio(gain)} faster than {worst.name}"
        )
        alike = [r.name for r in paced if r is not first and (r.pace_ns or 0) <= (1 + ALIKE) * (first.pace_ns or 0)]
        if alike:
            said[-1] += f" ({', '.join(alike)} alike)"
        said.append(_bound(first))
    said += _tax(paced)
    return "; ".join(said)


def _bound(run: Run) -> str:
    if run.device_ns is None:
        return "the host alone is recorded"
    host, device = units.duration(run.host_ns), units.duration(run.device_ns)
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
    if ratio <= 1 + max(ALIKE, LEAST):
        return []
    text = (
        f"CPU tax, as profiled, differs {units.ratio(ratio)}: {units.duration(low.tax_ns)} ({low.name}) "
        f"to {units.duration(high.tax_ns)} ({high.name})"
    )
    if all(r.device_ns is not None and not r.host_bound for r in taxed):
        text += ", but is hidden behind the device in all of them"
    return [text]
