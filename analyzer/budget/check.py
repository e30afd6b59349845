"""Judges a report by a budget."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from analyzer.budget.load import Budget, FindingLimit, Limit, number
from analyzer.budget.names import Contract, Figure, UnknownName, resolve, spell
from analyzer.errors import TraceError
from analyzer.model import Severity
from analyzer.units import clean, shell_path

#: Top-level key of the report -> section that shows it, where the two differ.
_SECTIONS = {"links": "launches", "host_calls": "launches", "level_shifts": "spikes"}
_SHOWN = (
    "verdict", "devices", "gaps", "launches", "operators", "kernels", "chains", "annotations", "steps", "compile",
    "attention", "spikes", "memory", "capture", "copies", "waits",
)  # fmt: skip


class Verdict(Enum):
    OK = "ok"
    BROKEN = "broken"
    MISSING = "n/a"  # the figure cannot be told in this run: counts as broken
    SKIPPED = "skipped"  # the same, and the budget allows it

    @property
    def holds(self) -> bool:
        return self in (Verdict.OK, Verdict.SKIPPED)


@dataclass(frozen=True, slots=True)
class Line:
    """A limit, what became of it, and why.

    value, baseline  as the reports have them; None: n/a.
    next             the command that shows more, where the limit does not hold.
    """

    name: str
    limit: str
    value: int | float | str | bool | None
    verdict: Verdict
    reason: str = ""
    baseline: int | float | str | bool | None = None
    why: str | None = None
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """All limits of a budget, in its order. trace: as the report names it."""

    trace: str
    budget: str
    lines: tuple[Line, ...]

    @property
    def holds(self) -> bool:
        return all(line.verdict.holds for line in self.lines)

    @property
    def broken(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if not line.verdict.holds)


def check(budget: Budget, contract: Contract, baseline: Contract | None = None) -> Outcome:
    """Judge every limit. Raises TraceError where a name means nothing, or a baseline is needed and not given."""
    trace = contract.get("trace")
    path = str(trace.get("path", "")) if isinstance(trace, Mapping) else ""
    lines: list[Line] = []
    unknown: list[UnknownName] = []
    for limit in budget.limits:
        try:
            lines.append(_limit(limit, contract, baseline, path, budget.path))
        except UnknownName as e:
            unknown.append(e)
    if unknown:
        first, more = unknown[0], len(unknown) - 1
        what = "; ".join(e.what + (f" ({e.hint})" if e.hint else "") for e in unknown[1:4])
        raise TraceError(first.what, budget.path, "\n  ".join(filter(None, [first.hint, what if more else None])))
    lines += [_finding(limit, contract, path) for limit in budget.findings]
    return Outcome(path, budget.path, tuple(lines))


def _limit(limit: Limit, contract: Contract, baseline: Contract | None, path: str, where: str) -> Line:
    if limit.relative and baseline is None:
        raise TraceError(
            f"{limit.name}: {limit.text} is relative, and there is no baseline",
            where,
            'name one: baseline = "baseline.json" in the budget, or --baseline FILE',
        )
    try:
        figures = resolve(contract, limit.parts)
    except UnknownName as e:
        if not (limit.allow_missing and e.element):
            raise
        return Line(limit.name, limit.text, None, Verdict.SKIPPED, "not in this run", why=limit.why)
    if not figures:
        verdict = Verdict.SKIPPED if limit.allow_missing else Verdict.MISSING
        return _with_next(
            Line(limit.name, limit.text, None, verdict, "n/a: the list is empty", why=limit.why), limit, path
        )
    lines = [_judge(limit, figure, contract, baseline) for figure in figures]
    order = (Verdict.BROKEN, Verdict.MISSING, Verdict.SKIPPED, Verdict.OK)
    gravest = min((line.verdict for line in lines), key=order.index)
    worst = _worst(limit, [line for line in lines if line.verdict is gravest])
    if len(lines) > 1:
        failed = sum(not line.verdict.holds for line in lines)
        note = f"{failed} of {len(lines)} break it" if failed else f"all {len(lines)} hold"
        worst = _with_reason(worst, "; ".join(filter(None, [worst.reason, note])))
    return _with_next(worst, limit, path)


def _worst(limit: Limit, lines: Sequence[Line]) -> Line:
    if limit.bound == "equals" or not all(isinstance(line.value, int | float) for line in lines):
        return lines[0]
    pick = max if limit.bound == "max" else min
    return pick(lines, key=lambda line: float(line.value or 0))


def _judge(limit: Limit, figure: Figure, contract: Contract, baseline: Contract | None) -> Line:
    name, value = figure.name, figure.value

    def line(verdict: Verdict, reason: str = "", base: Any = None) -> Line:
        return Line(name, limit.text, value, verdict, reason, base, limit.why)

    missing = Verdict.SKIPPED if limit.allow_missing else Verdict.MISSING
    if value is None:
        return line(missing, "n/a: this run does not tell it")
    if limit.bound == "equals":
        good = _equal(value, limit.value)
        return line(Verdict.OK if good else Verdict.BROKEN, "" if good else f"it is {_shown(value)}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TraceError(f"{name} is no number: it is {_shown(value)}", None, f"{name}.equals = …")
    assert isinstance(limit.value, int | float)
    if not limit.relative:
        return line(*_against(value, float(limit.value), limit.bound))
    assert baseline is not None
    before = _before(figure, baseline)
    if before is None or before == 0:
        return line(missing, f"the baseline has {_shown(before)} here: nothing to be relative to", before)
    allowed = before + abs(before) * float(limit.value) / 100
    verdict, reason = _against(value, allowed, limit.bound)
    change = f"{100 * (value - before) / abs(before):+.1f}% from {number(before)}"
    spread = None if limit.ignore_spread else _spread(figure, contract, baseline)
    if verdict is Verdict.BROKEN and spread is not None and abs(value - before) <= spread:
        return line(Verdict.OK, f"{change}, within the spread of the calls ({number(spread)})", before)
    return line(verdict, f"{change}; {reason}" if reason else change, before)


def _against(value: int | float, allowed: float, bound: str) -> tuple[Verdict, str]:
    if math.isnan(value):
        return Verdict.MISSING, "n/a: not a number"
    over = value - allowed if bound == "max" else allowed - value
    # A limit that was written with fewer digits than the figure has is meant to include it.
    if over <= 1e-9 * max(abs(value), abs(allowed)):
        return Verdict.OK, ""
    share = f" ({100 * over / abs(allowed):.1f}%)" if allowed else ""
    return Verdict.BROKEN, f"{'over' if bound == 'max' else 'under'} by {number(over)}{share}"


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, int | float) and isinstance(wanted, int | float):
        return math.isclose(value, wanted, rel_tol=1e-9)
    return bool(value == wanted)


def _before(figure: Figure, baseline: Contract) -> int | float | None:
    try:
        found = resolve(baseline, figure.parts)
    except UnknownName:  # new since then
        return None
    value = found[0].value if found else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _spread(figure: Figure, contract: Contract, baseline: Contract) -> float | None:
    """The larger of both runs' spreads of the calls that a median stands for; None where not reported."""
    last = figure.parts[-1]
    names = dict.fromkeys([last.replace("_median", "_spread"), last.replace("median_", "spread_"), f"{last}_spread"])
    found = [
        float(other.value)
        for report in (contract, baseline)
        for name in names
        if name != last and "median" in last
        for other in _try(report, (*figure.parts[:-1], name))
        if isinstance(other.value, int | float)
    ]
    return max(found, default=None)


def _try(contract: Contract, parts: tuple[str, ...]) -> list[Figure]:
    try:
        return resolve(contract, parts)
    except UnknownName:
        return []


def _finding(limit: FindingLimit, contract: Contract, path: str) -> Line:
    key = "severity" if limit.name in [s.value for s in Severity] else "name"
    found = contract.get("findings")
    rows = [f for f in found if isinstance(f, Mapping)] if isinstance(found, list) else []
    count = Counter(str(f.get(key)) for f in rows)[limit.name]
    name, text = f"findings.{limit.name}", f"max {limit.at_most}"
    if count <= limit.at_most:
        return Line(name, text, count, Verdict.OK)
    first = next(f for f in rows if f.get(key) == limit.name)
    return Line(
        name,
        text,
        count,
        Verdict.BROKEN,
        clean(f"{first.get('name')}: {first.get('title')}" if key == "severity" else str(first.get("title"))),
        next=f"tracecli explain {shlex.quote(clean(str(first.get('name'))))}",
    )


def _with_next(line: Line, limit: Limit, path: str) -> Line:
    if line.verdict.holds:
        return line
    section = _SECTIONS.get(limit.parts[0], limit.parts[0])
    only = section if section in _SHOWN else "all"
    command = f"tracecli analyze {shell_path(path)} --only {only}"
    return Line(line.name, line.limit, line.value, line.verdict, line.reason, line.baseline, line.why, command)


def _with_reason(line: Line, reason: str) -> Line:
    return Line(line.name, line.limit, line.value, line.verdict, reason, line.baseline, line.why, line.next)


def _shown(value: Any) -> str:
    return "n/a" if value is None else clean(value) if isinstance(value, str) else number(value)


__all__ = ["Line", "Outcome", "Verdict", "check", "spell"]
