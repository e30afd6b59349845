"""Figures of a report by dotted name: `launches.per_step`, `devices.0.utilization`.

A name walks the JSON contract. In a list an element goes by what identifies it: a device by its id, a
cause by itself, an operator, kernel, annotation or step by its name; where no element has that name, a
whole number is a position (`-1` is the last), and `*` means every one of them. A part that holds dots
stands in quotes: `kernels."gemm<1.5>".median_us`. `count` behind a list is its length.

A name may mean several figures (a cause on two devices, `devices.*.utilization`): a limit holds where it
holds for all of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analyzer.errors import TraceError
from analyzer.units import clean

Contract = Mapping[str, Any]
Parts = tuple[str, ...]

#: List -> the key that identifies its elements; all others go by `name`.
IDENTITY: dict[Parts, str] = {
    ("devices",): "device",
    ("memory",): "device",
    ("trace", "devices"): "id",
    ("gaps", "by_cause"): "cause",
    ("copies",): "kind",
    ("attention",): "backend",
    ("warnings",): "code",
    ("waits", "by_operator"): "operator",
}
EVERY = "*"
LENGTH = "count"
_BY_CAUSE = ("gaps", "by_cause")
_CAUSE_FIGURES = ("total_us", "count", "max_us", "share")
_MOST_NAMES = 8


class UnknownName(TraceError):
    """A name that means nothing in this report.

    suggestions  whole names that would.
    element      it is an element of a list that is not there, which another run may have.
    """

    def __init__(self, what: str, suggestions: Sequence[str], known: Sequence[str], element: bool = False) -> None:
        hint = None
        if suggestions:
            hint = f"did you mean {' or '.join(suggestions)}?"
        elif known:
            more = ", …" if len(known) > _MOST_NAMES else ""
            hint = f"there is: {', '.join(known[:_MOST_NAMES])}{more}"
        super().__init__(what, None, hint)
        self.suggestions = tuple(suggestions)
        self.element = element


@dataclass(frozen=True, slots=True)
class Figure:
    """A value of the report, with the name by which it was found. None: n/a in this run."""

    parts: Parts
    value: int | float | str | bool | None

    @property
    def name(self) -> str:
        return spell(self.parts)


def spell(parts: Sequence[str]) -> str:
    """A dotted name; what would be taken apart, or end a line, in quotes."""
    return ".".join(part if _is_plain(part) else _quoted(part) for part in parts)


def _is_plain(part: str) -> bool:
    return bool(part) and part == part.strip() and not any(c in part for c in ".\"'\\") and part == clean(part)


def _quoted(part: str) -> str:
    return '"' + clean(part.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def parse(name: str) -> Parts:
    """The parts of a dotted name. Raises TraceError where a quote is not closed or a part is empty."""
    parts: list[str] = []
    at, end = 0, len(name)
    while True:
        if name[at : at + 1] == '"':
            part, at = _unquote(name, at)
        else:
            stop = name.find(".", at)
            stop = end if stop < 0 else stop
            part, at = name[at:stop].strip(), stop
        if not part:
            raise TraceError(f"the name {clean(name)!r} has an empty part", None, "write a.b.c")
        parts.append(part)
        if at >= end:
            return tuple(parts)
        if name[at] != ".":
            raise TraceError(f"the name {clean(name)!r} goes on behind a quote", None, "put a dot between parts")
        at += 1


def _unquote(name: str, at: int) -> tuple[str, int]:
    out: list[str] = []
    at += 1
    while at < len(name):
        c = name[at]
        if c == '"':
            return "".join(out), at + 1
        if c == "\\" and at + 1 < len(name):
            at += 1
            c = name[at]
        out.append(c)
        at += 1
    raise TraceError(f"the name {clean(name)!r} has a quote that is not closed")


def resolve(contract: Contract, parts: Parts) -> list[Figure]:
    """The figures that a name means. Raises UnknownName."""
    return _walk(contract, contract, parts, 0, ())


def _walk(contract: Contract, node: Any, parts: Parts, at: int, concrete: Parts) -> list[Figure]:
    if at == len(parts):
        if isinstance(node, Mapping | list):
            known = list(node) if isinstance(node, Mapping) else _element_names(node, concrete)
            members = [spell((*parts, k)) for k in known] + (
                [spell((*parts, LENGTH))] if isinstance(node, list) else []
            )
            raise UnknownName(f"{spell(parts)} is a group, not one figure", [], members)
        return [Figure(concrete, node)]
    part = parts[at]
    if isinstance(node, Mapping):
        if part not in node:
            raise _unknown(parts, at, [str(k) for k in node])
        return _walk(contract, node[part], parts, at + 1, (*concrete, part))
    if isinstance(node, list):
        return _elements(contract, node, parts, at, concrete)
    if node is None:
        # A whole group that this run has not recorded: its figures are n/a, whatever their names.
        return [Figure((*concrete, *parts[at:]), None)]
    raise UnknownName(f"{spell(parts[:at])} is a figure: it has no {clean(part)!r}", [spell(parts[:at])], [])


def _elements(contract: Contract, rows: list[Any], parts: Parts, at: int, concrete: Parts) -> list[Figure]:
    part = parts[at]
    key = _identity(concrete)
    if part == EVERY:
        return [
            figure
            for i, row in enumerate(rows)
            for figure in _walk(contract, row, parts, at + 1, (*concrete, _name_of(row, key, i)))
        ]
    found = [row for row in rows if isinstance(row, Mapping) and str(row.get(key)) == part]
    if found:
        return [figure for row in found for figure in _walk(contract, row, parts, at + 1, (*concrete, part))]
    # A device goes by its id alone: a position would mean another one on a machine with some hidden.
    if key not in ("device", "id") and (position := _position(part, len(rows))) is not None:
        name = _name_of(rows[position], key, position)
        return _walk(contract, rows[position], parts, at + 1, (*concrete, name))
    if part == LENGTH and at + 1 == len(parts):
        return [Figure((*concrete, LENGTH), len(rows))]
    if concrete == _BY_CAUSE and (figure := _absent_cause(contract, parts, at, concrete)) is not None:
        return [figure]
    raise _unknown(parts, at, [*dict.fromkeys(_element_names(rows, concrete)), *_known_causes(concrete)], element=True)


def _absent_cause(contract: Contract, parts: Parts, at: int, concrete: Parts) -> Figure | None:
    """A cause that this run does not know cost nothing, unless there was no device that could wait."""
    if at + 2 != len(parts) or parts[at + 1] not in _CAUSE_FIGURES or parts[at] not in _known_causes(concrete):
        return None
    return Figure((*concrete, *parts[at:]), 0 if contract.get("devices") else None)


def _known_causes(concrete: Parts) -> list[str]:
    if concrete != _BY_CAUSE:
        return []
    from analyzer.index.activity import Cause

    return [cause.key for cause in Cause]


def _identity(path: Parts) -> str:
    return IDENTITY.get(path, "name")


def _name_of(row: Any, key: str, position: int) -> str:
    return str(row[key]) if isinstance(row, Mapping) and key in row else str(position)


def _element_names(rows: list[Any], path: Parts) -> list[str]:
    key = _identity(path)
    return [_name_of(row, key, i) for i, row in enumerate(rows)]


def _position(part: str, length: int) -> int | None:
    digits = part.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    position = int(part)
    return position % length if -length <= position < length else None


def _unknown(parts: Parts, at: int, known: list[str], element: bool = False) -> UnknownName:
    close = difflib.get_close_matches(parts[at], known, n=2, cutoff=0.55)
    if not close:
        close = [k for k in known if len(parts[at]) > 3 and parts[at].lower() in k.lower()][:2]
    inside = f" under {spell(parts[:at])}" if at else ""
    return UnknownName(
        f"no figure {spell(parts)}: the report has no {clean(parts[at])!r}{inside}",
        [spell((*parts[:at], k, *parts[at + 1 :])) for k in close],
        [spell((*parts[:at], k)) for k in known],
        element,
    )
