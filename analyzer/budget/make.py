"""A budget from a run, with room: what a person would start from, and then tighten."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from analyzer.budget.load import finding_names, number
from analyzer.budget.names import Contract, Parts
from analyzer.units import clean

#: Room by what a figure is: counts hardly move, times on the device little, times on the host a lot.
COUNTS, DEVICE, HOST = 0.05, 0.10, 0.30
_MOST_ANNOTATIONS = 20


def make(contract: Contract) -> str:
    """TOML that holds for the run that it was made from, commented."""
    trace = contract.get("trace") or {}
    lines = [
        "# Limits for `tracecli check`. Each figure stands with what it was in the run that this was made from;",
        f"# room: {COUNTS:.0%} on counts, {DEVICE:.0%} on device times, {HOST:.0%} on host times.",
        f"# Made from {clean(str(trace.get('path')))}",
        "#",
        "# A relative limit needs a baseline, written by `tracecli analyze RUN.json -o baseline.json`:",
        '# baseline = "baseline.json"',
        '# annotations.NAME.cpu_us_median.max = "+5%"      # beyond the spread of the calls',
        "",
        "[limits]",
    ]
    last = ""
    for parts, bound, room, value, note in _chosen(contract):
        if parts[0] != last and last:
            lines.append("")
        last = parts[0]
        name = ".".join(_key(p) for p in (*parts, bound))
        lines.append(f"{name} = {_limit(value, bound, room)}  # was {_shown(value)}{'; ' + note if note else ''}")
    lines += ["", *_finding_limits(contract)]
    return "\n".join(lines) + "\n"


def _chosen(contract: Contract) -> Iterator[tuple[Parts, str, float, Any, str]]:
    """(name, bound, room, value, note) of the figures that are worth a limit."""
    bound = _get(contract, "verdict", "bound")
    if isinstance(bound, str) and bound == "compute-bound":
        yield ("verdict", "bound"), "equals", 0, bound, "what the run should stay"
    launches = _get(contract, "launches", "per_step")
    key = "per_step" if _number(launches) else "count"
    yield from _one(contract, ("launches", key), "max", COUNTS)
    yield from _one(contract, ("launches", "bare_latency_us_median"), "max", HOST)
    yield from _one(contract, ("waits", "per_step"), "max", 0, "blocking waits")
    yield from _one(contract, ("compile", "recompilations"), "max", 0)
    yield from _one(contract, ("compile", "graph_breaks"), "max", 0)
    for row in _rows(contract, "devices"):
        name = ("devices", str(row.get("device")), "utilization")
        if _number(value := row.get("utilization")):
            yield name, "min", HOST, value, "share of its span that the device was busy"
    for row in _named(contract, "annotations")[:_MOST_ANNOTATIONS]:
        place = ("annotations", str(row["name"]))
        for figure, room in (("cpu_us_median", HOST), ("device_us_median", DEVICE), ("launches_median", COUNTS)):
            if _number(value := row.get(figure)):
                yield (*place, figure), "max", room, value, ""
    for row in _rows(contract, "memory"):
        if _number(value := row.get("peak_allocated_bytes")):
            yield ("memory", str(row.get("device")), "peak_allocated_bytes"), "max", COUNTS, value, ""


def _one(contract: Contract, parts: Parts, bound: str, room: float, note: str = "") -> Iterator[Any]:
    value = _get(contract, *parts)
    if _number(value):
        yield parts, bound, room, value, note


def _get(contract: Contract, *parts: str) -> Any:
    node: Any = contract
    for part in parts:
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _rows(contract: Contract, key: str) -> list[Mapping[str, Any]]:
    rows = contract.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _named(contract: Contract, key: str) -> list[Mapping[str, Any]]:
    """Rows whose names can be written into TOML as they are: a name that holds half a character cannot."""
    return [row for row in _rows(contract, key) if isinstance(row.get("name"), str) and row["name"].isprintable()]


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


def _finding_limits(contract: Contract) -> list[str]:
    count: dict[str, int] = {}
    for row in _rows(contract, "findings"):
        name = str(row.get("name"))
        count[name] = count.get(name, 0) + 1
    lines = ["[findings]", "# What this run does not have shall stay away; `tracecli explain NAME` says what each is."]
    lines.append("forbid = [")
    lines += [f'    "{name}",' for name in finding_names() if name not in count]
    lines.append("]")
    if count:
        lines += ["", "# What it has now. To be rid of one, move it into the list above.", "[findings.at_most]"]
        lines += [f"{_key(name)} = {n}" for name, n in count.items() if name in finding_names()]
    return lines
