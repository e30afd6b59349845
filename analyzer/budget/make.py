"""A budget from a run, with room: what a person would start from, and then tighten."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from analyzer.budget.load import finding_names, number
from analyzer.report.document import Report
from analyzer.report.names import Figure, parse, resolve
from analyzer.units import clean

#: Room by what a figure is: counts hardly move, times on the device little, times on the host a lot.
COUNTS, DEVICE, HOST = 0.05, 0.10, 0.30
_MOST_ANNOTATIONS = 20

#: Figures that are worth a limit: name, bound, room, what it is. A name may mean a figure for each of many rows.
_WORTH: tuple[tuple[str, str, float, str], ...] = (
    ("launches.bare_latency_us_median", "max", HOST, ""),
    ("waits.per_step", "max", 0, "blocking waits"),
    ("compile.recompilations", "max", 0, ""),
    ("compile.graph_breaks", "max", 0, ""),
    ("devices.*.utilization", "min", HOST, "share of its span that the device was busy"),
    ("annotations.*.cpu_us_median", "max", HOST, ""),
    ("annotations.*.device_us_median", "max", DEVICE, ""),
    ("annotations.*.launches_median", "max", COUNTS, ""),
    ("memory.*.peak_allocated_bytes", "max", COUNTS, ""),
)


def make(report: Report) -> str:
    """TOML that holds for the run that it was made from, commented."""
    lines = [
        "# Limits for `tracecli check`. Each figure stands with what it was in the run that this was made from;",
        f"# room: {COUNTS:.0%} on counts, {DEVICE:.0%} on device times, {HOST:.0%} on host times.",
        f"# Made from {clean(report.headline.path)}",
        "#",
        "# A relative limit needs a baseline, written by `tracecli analyze RUN.json -o baseline.json`:",
        '# baseline = "baseline.json"',
        '# annotations.NAME.cpu_us_median.max = "+5%"      # beyond the spread of the calls',
        '# verdict.bound.equals = "baseline"               # a verdict that changed breaks it; so trust.idle_reliable',
        "",
        *_steps(report),
        "[limits]",
    ]
    last = ""
    for figure, bound, room, note in _chosen(report):
        if figure.parts[0] != last and last:
            lines.append("")
        last = figure.parts[0]
        name = ".".join(_key(p) for p in (*figure.parts, bound))
        limit = _limit(figure.value, bound, room)
        lines.append(f"{name} = {limit}  # was {_shown(figure.value)}{'; ' + note if note else ''}")
    lines += ["", *_finding_limits(report)]
    return "\n".join(lines) + "\n"


def _steps(report: Report) -> list[str]:
    """A run of one step says nothing of the next: limits that were made from several ask for half of them."""
    (count,) = resolve(report, parse("steps.count"))
    assert isinstance(count.value, int)
    if count.value < 2:
        return []
    return [f"steps = {count.value // 2 + count.value % 2}  # fewer settle no limit; was {count.value}", ""]


def _chosen(report: Report) -> Iterator[tuple[Figure, str, float, str]]:
    """(figure, bound, room, note) of what is worth a limit, the figures of one row together."""
    (bound,) = resolve(report, parse("verdict.bound"))
    if bound.value == "compute-bound":
        yield bound, "equals", 0, "what the run should stay"
    (per_step,) = resolve(report, parse("launches.per_step"))
    yield from _numbers(report, "launches.count" if per_step.value is None else "launches.per_step", "max", COUNTS, "")
    found = [one for worth in _WORTH for one in _numbers(report, *worth)]
    groups: dict[tuple[str, ...], list[Any]] = {}
    for one in found:
        groups.setdefault(one[0].parts[:-1], []).append(one)
    annotations = [name for name in groups if name[0] == "annotations"]
    for name, group in groups.items():
        if name not in annotations[_MOST_ANNOTATIONS:]:
            yield from group


def _numbers(report: Report, name: str, bound: str, room: float, note: str) -> Iterator[tuple[Figure, str, float, str]]:
    """The figures of a name that this run can tell, and whose names can be written into TOML as they are."""
    for figure in resolve(report, parse(name)):
        if _number(figure.value) and all(part.isprintable() for part in figure.parts):
            yield figure, bound, room, note


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _limit(value: Any, bound: str, room: float) -> str:
    if bound == "equals":
        return json.dumps(value, ensure_ascii=False)
    with_room = value + abs(value) * room if bound == "max" else value - abs(value) * room
    if isinstance(value, int):
        return str(math.ceil(with_room) if bound == "max" else math.floor(with_room))
    if not room:
        return repr(value)
    # Three digits are what a person would write; away from the figure, so that the run itself holds.
    scale = 10.0 ** (2 - math.floor(math.log10(abs(with_room)))) if with_room else 1.0
    rounded = (math.ceil if bound == "max" else math.floor)(with_room * scale) / scale
    return number(rounded)


def _shown(value: Any) -> str:
    return number(value) if _number(value) else clean(str(value))


def _key(part: str) -> str:
    """A key of TOML: bare where it may be, else a basic string."""
    if part and part.isascii() and all(c.isalnum() or c in "_-" for c in part):
        return part
    return json.dumps(part, ensure_ascii=False)


def _finding_limits(report: Report) -> list[str]:
    count = Counter(finding.name for finding in report.findings)
    lines = ["[findings]", "# What this run does not have shall stay away; `tracecli explain NAME` says what each is."]
    lines.append("forbid = [")
    lines += [f'    "{name}",' for name in finding_names() if name not in count]
    lines.append("]")
    if count:
        lines += ["", "# What it has now. To be rid of one, move it into the list above.", "[findings.at_most]"]
        lines += [f"{_key(name)} = {n}" for name, n in count.items() if name in finding_names()]
    return lines
