"""Figures of a report by dotted name: `launches.per_step`, `devices.0.utilization`.

A name walks the JSON contract, led by what is declared of it. In a list an element goes by what tells it
from the others (`Row.IDENTITY`: an operator or kernel by its name, a device by its id, a cause by itself);
where no element has that name, a whole number is a position (`-1` is the last), and `*` means every one of
them. A part that holds dots stands in quotes: `kernels."gemm<1.5>".median_us`. `count` behind a list is its
length.

A name may mean several figures (a cause on two devices, `devices.*.utilization`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from analyzer.errors import TraceError
from analyzer.report.columns import Column, Member, Row, Unit, key_of, keys_of
from analyzer.report.document import Report
from analyzer.units import clean

Parts = tuple[str, ...]
Figures = Iterator["Figure"]

EVERY = "*"
LENGTH = "count"
_MOST_NAMES = 8
#: Whole numbers of these are sums: nothing adds nothing.
_SUMS = (Unit.NS, Unit.COUNT, Unit.BYTES)


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


def resolve(report: Report, parts: Parts) -> list[Figure]:
    """The figures that a name means; values as in JSON, so times in µs. Raises UnknownName."""
    return list(_Walk(report, parts).figures(report.contract, report.kind.results, 0, ()))


@cache
def _declared(rows: tuple[type[Row], ...]) -> dict[str, Column | Member]:
    """What is declared under the keys of an object: of one row type, or of all that a report consists of."""
    return {key: what for row in rows for key, what in keys_of(row).items()}


def _inner(declared: Column | Member | None) -> tuple[type[Row], ...]:
    """Row types of what lies under a key; () where it is free in form."""
    return (declared.row,) if isinstance(declared, Member) and declared.row is not None else ()


def _identity(rows: tuple[type[Row], ...]) -> str:
    return key_of(rows[0].IDENTITY) if rows else "name"


@dataclass(frozen=True, slots=True)
class _Walk:
    """One name on its way through one report.

    In all methods: rows, the row types that are declared of the node; at, the next part of the name;
    concrete, the name up to here with elements by what identifies them.
    """

    report: Report
    parts: Parts

    def figures(self, node: Any, rows: tuple[type[Row], ...], at: int, concrete: Parts) -> Figures:
        if isinstance(node, list):
            yield from self._elements(node, rows, at, concrete)
        elif at == len(self.parts):
            if isinstance(node, Mapping):
                self._is_group([str(key) for key in node])
            yield Figure(concrete, node)
        elif isinstance(node, Mapping):
            part = self.parts[at]
            declared = _declared(rows).get(part)
            if part in node:
                yield from self.figures(node[part], _inner(declared), at + 1, (*concrete, part))
            elif declared is not None:  # left out, as what says nothing may be
                yield Figure((*concrete, *self.parts[at:]), None)
            else:
                raise self._unknown(at, dict.fromkeys([*_declared(rows), *map(str, node)]))
        elif node is None:
            # A whole group that this run has not recorded: its figures are n/a.
            self._look_ahead(rows, at)
            yield Figure((*concrete, *self.parts[at:]), None)
        else:
            name = spell(self.parts[:at])
            raise UnknownName(f"{name} is a figure: it has no {clean(self.parts[at])!r}", [name], [])

    def _elements(self, nodes: list[Any], rows: tuple[type[Row], ...], at: int, concrete: Parts) -> Figures:
        key = _identity(rows)
        names = [str(n[key]) if isinstance(n, Mapping) and key in n else str(i) for i, n in enumerate(nodes)]
        if at == len(self.parts):
            self._is_group([*names, LENGTH])
        part = self.parts[at]
        if part == EVERY:
            yield from self._every(nodes, names, rows, at, concrete)
            return
        chosen = [i for i, name in enumerate(names) if name == part and isinstance(nodes[i], Mapping)]
        column = _declared(rows).get(key)
        # A device goes by its id alone: a position would mean another one on a machine with some hidden.
        by_number = isinstance(column, Column) and column.whole
        if not chosen and not by_number and (position := _position(part, len(nodes))) is not None:
            chosen = [position]
        for i in chosen:
            yield from self.figures(nodes[i], rows, at + 1, (*concrete, names[i]))
        if chosen:
            return
        if part == LENGTH and at + 1 == len(self.parts):
            yield Figure((*concrete, LENGTH), len(nodes))
            return
        self._look_ahead(rows, at + 1)
        choices = column.choices if isinstance(column, Column) else ()
        figure = _declared(rows).get(self.parts[-1])
        if part not in choices or at + 2 != len(self.parts) or not isinstance(figure, Column):
            raise self._unknown(at, dict.fromkeys([*names, *choices]), element=True)
        yield Figure((*concrete, *self.parts[at:]), self._of_nothing(figure, rows))

    def _every(
        self, nodes: list[Any], names: list[str], rows: tuple[type[Row], ...], at: int, concrete: Parts
    ) -> Figures:
        """The figures of those elements that have them: where none has, the name means nothing."""
        self._look_ahead(rows, at + 1)
        unknown: list[UnknownName] = []
        for node, name in zip(nodes, names, strict=True):
            try:
                yield from list(self.figures(node, rows, at + 1, (*concrete, name)))
            except UnknownName as e:
                unknown.append(e)
        if unknown and len(unknown) == len(nodes):
            raise unknown[0]

    def _of_nothing(self, figure: Column, rows: tuple[type[Row], ...]) -> int | None:
        """A figure of one of a closed set (a cause, a part) that this run does not have: its sums are 0.

        Not where the rows are those of devices, and the run has none of them.
        """
        sums = (figure.whole and figure.unit in _SUMS) or figure.unit is Unit.SHARE
        of_devices = "device" in _declared(rows)
        return 0 if sums and (not of_devices or self.report.contract.get("devices")) else None

    def _look_ahead(self, rows: tuple[type[Row], ...], at: int) -> None:
        """Raise UnknownName where the rest of the name means nothing, whatever the run has recorded."""
        while rows and at < len(self.parts):
            declared = _declared(rows).get(self.parts[at])
            if declared is None:
                raise self._unknown(at, _declared(rows))
            rows = _inner(declared)
            at += 2 if isinstance(declared, Member) and declared.many else 1

    def _is_group(self, members: Sequence[str]) -> NoReturn:
        name = spell(self.parts)
        raise UnknownName(f"{name} is a group, not one figure", [], [spell((*self.parts, m)) for m in members])

    def _unknown(self, at: int, names: Iterable[str], element: bool = False) -> UnknownName:
        parts, known = self.parts, list(names)
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


def _position(part: str, length: int) -> int | None:
    digits = part.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    position = int(part)
    return position % length if -length <= position < length else None
