"""Judges a report by a budget."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from analyzer.budget.load import Budget, FindingLimit, Limit, number
from analyzer.budget.outcome import CHECK, Checked, CheckedLimit, Outcome, shown
from analyzer.errors import TraceError
from analyzer.report.columns import keys_of
from analyzer.report.document import Report
from analyzer.report.findings import Severity
from analyzer.report.names import Figure, UnknownName, parse, resolve
from analyzer.report.results import Results
from analyzer.units import clean, path_text, shell_path


def check(budget: Budget, report: Report, baseline: Report | None = None) -> Report:
    """Judge every limit. Raises TraceError where a name means nothing, or a baseline is needed and not given."""
    lines: list[CheckedLimit] = []
    unknown: list[UnknownName] = []
    for limit in budget.limits:
        try:
            lines.append(_limit(limit, report, baseline, budget.path))
        except UnknownName as e:
            unknown.append(e)
    if unknown:
        first, more = unknown[0], len(unknown) - 1
        what = "; ".join(e.what + (f" ({e.hint})" if e.hint else "") for e in unknown[1:4])
        raise TraceError(first.what, budget.path, "\n  ".join(filter(None, [first.hint, what if more else None])))
    lines += [_finding(limit, report) for limit in budget.findings]
    holds = all(line.holds for line in lines)
    checked = Checked(trace=report.headline.path, budget=path_text(budget.path), holds=holds, limits=tuple(lines))
    return Report(CHECK, Results([checked]))


def _limit(limit: Limit, report: Report, baseline: Report | None, where: str) -> CheckedLimit:
    if limit.relative and baseline is None:
        raise TraceError(
            f"{limit.name}: {limit.text} is relative, and there is no baseline",
            where,
            'name one: baseline = "baseline.json" in the budget, or --baseline FILE',
        )
    try:
        figures = resolve(report, limit.parts)
    except UnknownName as e:
        if not (limit.allow_missing and e.element):
            raise
        return _line(limit, limit.name, None, Outcome.SKIPPED, "not in this run")
    if (ran := _steps(report)) < limit.steps:
        reason = f"not enough steps: {ran}, and the limit needs {limit.steps}"
        return _line(limit, limit.name, None, _missing(limit), reason)
    if not figures:
        return _with_next(_line(limit, limit.name, None, _missing(limit), "n/a: the list is empty"), limit, report)
    lines = [_judge(limit, figure, report, baseline) for figure in figures]
    order = (Outcome.BROKEN, Outcome.MISSING, Outcome.SKIPPED, Outcome.OK)
    gravest = min((line.verdict for line in lines), key=order.index)
    worst = _worst(limit, [line for line in lines if line.verdict is gravest])
    if len(lines) > 1:
        failed = sum(not line.holds for line in lines)
        note = f"{failed} of {len(lines)} break it" if failed else f"all {len(lines)} hold"
        worst = structs.replace(worst, reason="; ".join(filter(None, [worst.reason, note])))
    return _with_next(worst, limit, report)


def _line(
    limit: Limit, name: str, value: Any, verdict: Outcome, reason: str = "", baseline: Any = None
) -> CheckedLimit:
    return CheckedLimit(
        name=name,
        limit=limit.text,
        value=value,
        baseline=baseline,
        verdict=verdict,
        reason=reason or None,
        why=limit.why,
    )


def _steps(report: Report) -> int:
    """The profiler's steps of a run, else those that were found in it."""
    names = ("steps.count", "steps_found.steps")
    counts = [figure.value for name in names for figure in _try(report, parse(name))]
    return max((int(n) for n in counts if isinstance(n, int | float)), default=0)


def _missing(limit: Limit) -> Outcome:
    return Outcome.SKIPPED if limit.allow_missing else Outcome.MISSING


def _worst(limit: Limit, lines: Sequence[CheckedLimit]) -> CheckedLimit:
    if limit.bound == "equals" or not all(isinstance(line.value, int | float) for line in lines):
        return lines[0]
    pick = max if limit.bound == "max" else min
    return pick(lines, key=lambda line: float(line.value or 0))


def _judge(limit: Limit, figure: Figure, report: Report, baseline: Report | None) -> CheckedLimit:
    name, value = figure.name, figure.value
    if value is None:
        return _line(limit, name, value, _missing(limit), "n/a: this run does not tell it")
    if limit.bound == "equals":
        return _equals(limit, figure, baseline)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TraceError(f"{name} is no number: it is {shown(value)}", None, f"{name}.equals = …")
    assert isinstance(limit.value, int | float)
    if not limit.relative:
        return _line(limit, name, value, *_against(value, float(limit.value), limit.bound))
    assert baseline is not None
    before = _before(figure, baseline)
    if before is None or before == 0:
        reason = f"the baseline has {shown(before)} here: nothing to be relative to"
        return _line(limit, name, value, _missing(limit), reason, before)
    allowed = before + abs(before) * float(limit.value) / 100
    verdict, reason = _against(value, allowed, limit.bound)
    change = f"{100 * (value - before) / abs(before):+.1f}% from {number(before)}"
    spread = None if limit.ignore_spread else _spread(figure, report, baseline)
    if verdict is Outcome.BROKEN and spread is not None and abs(value - before) <= spread:
        verdict, reason = Outcome.OK, f"within the spread of the calls ({number(spread)})"
    return _line(limit, name, value, verdict, f"{change}; {reason}" if reason else change, before)


def _equals(limit: Limit, figure: Figure, baseline: Report | None) -> CheckedLimit:
    name, value = figure.name, figure.value
    if not limit.relative:
        good = _equal(value, limit.value)
        return _line(
            limit, name, value, Outcome.OK if good else Outcome.BROKEN, "" if good else f"it is {shown(value)}"
        )
    assert baseline is not None
    found = _try(baseline, figure.parts)
    was = found[0].value if found else None
    if was is None:
        return _line(limit, name, value, _missing(limit), "the baseline has n/a here: nothing to be equal to")
    if _equal(value, was):
        return _line(limit, name, value, Outcome.OK, baseline=was)
    return _line(limit, name, value, Outcome.BROKEN, f"it is {shown(value)}, and was {shown(was)}", was)


def _against(value: int | float, allowed: float, bound: str) -> tuple[Outcome, str]:
    if math.isnan(value):
        return Outcome.MISSING, "n/a: not a number"
    over = value - allowed if bound == "max" else allowed - value
    # A limit that was written with fewer digits than the figure has is meant to include it.
    if over <= 1e-9 * max(abs(value), abs(allowed)):
        return Outcome.OK, ""
    share = f" ({100 * over / abs(allowed):.1f}%)" if allowed else ""
    return Outcome.BROKEN, f"{'over' if bound == 'max' else 'under'} by {number(over)}{share}"


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, int | float) and isinstance(wanted, int | float):
        return math.isclose(value, wanted, rel_tol=1e-9)
    return bool(value == wanted)


def _before(figure: Figure, baseline: Report) -> int | float | None:
    found = _try(baseline, figure.parts)  # empty: new since then
    value = found[0].value if found else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _spread(figure: Figure, report: Report, baseline: Report) -> float | None:
    """The larger of both runs' spreads of the calls that a median stands for; None where not reported."""
    last = figure.parts[-1]
    names = dict.fromkeys([last.replace("_median", "_spread"), last.replace("median_", "spread_"), f"{last}_spread"])
    found = [
        float(other.value)
        for one in (report, baseline)
        for name in names
        if name != last and "median" in last
        for other in _try(one, (*figure.parts[:-1], name))
        if isinstance(other.value, int | float)
    ]
    return max(found, default=None)


def _try(report: Report, parts: tuple[str, ...]) -> list[Figure]:
    try:
        return resolve(report, parts)
    except UnknownName:
        return []


def _finding(limit: FindingLimit, report: Report) -> CheckedLimit:
    by_severity = limit.name in [s.value for s in Severity]
    found = [f for f in report.findings if limit.name == (f.severity.value if by_severity else f.name)]
    line = CheckedLimit(
        name=f"findings.{limit.name}", limit=f"max {limit.at_most}", value=len(found), verdict=Outcome.OK
    )
    if len(found) <= limit.at_most:
        return line
    first = found[0]
    return structs.replace(
        line,
        verdict=Outcome.BROKEN,
        reason=clean(f"{first.name}: {first.title}" if by_severity else first.title),
        next=f"tracecli explain {shlex.quote(clean(first.name))}",
    )


def _with_next(line: CheckedLimit, limit: Limit, report: Report) -> CheckedLimit:
    if line.holds:
        return line
    path = shell_path(report.headline.path)
    return structs.replace(line, next=f"tracecli analyze {path} --only {_section(limit, report)}")


def _section(limit: Limit, report: Report) -> str:
    """The section that shows a figure, where this report has it."""
    for result in report.results:
        if limit.parts[0] in keys_of(type(result)) and (section := result.section()) is not None:
            return section.key
    return "all"
