"""What is shown: blocks that every renderer walks in the same way and in the same order.

A block refers to rows of a result; nothing is formatted or cut here. How many rows a table shows is the
renderer's option, so that a saved report can be shown again in any way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from analyzer.report.columns import Column, Row, Unit, columns_of


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its unit, for a column whose rows are of different ones (`Unit.OWN`). signed: show a plus."""

    value: float | str | None
    unit: Unit
    signed: bool = False


#: A value of a metric or a cell. None is shown as "n/a".
Value = int | float | str | Quantity | None


@dataclass(frozen=True, slots=True)
class Cells:
    """A column of a table: its declaration, and how to take it from a row."""

    column: Column
    get: Callable[[Any], Value]


def cells(title: str, unit: Unit, get: Callable[[Any], Value], *, bar: bool = False) -> Cells:
    """A column that is shown and not declared: put together from figures of the row."""
    return Cells(Column("", "", unit, title, "", bar), get)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, largest first.

    most   rows shown at most, however many are asked for; None: no bound.
    whole  all rows are shown, however few are asked for: none of them may be missed.
    """

    title: str
    columns: tuple[Cells, ...]
    rows: Sequence[Any]
    note: str | None = None
    most: int | None = None
    whole: bool = False

    def shown(self, top: int) -> tuple[tuple[Value, ...], ...]:
        """Values of the first rows, a tuple a row."""
        count = len(self.rows) if self.whole else top if self.most is None else min(top, self.most)
        return tuple(tuple(c.get(row) for c in self.columns) for row in self.rows[:count])


def table(
    title: str,
    row: type[Row],
    rows: Sequence[Any],
    *shown: str | Cells,
    note: str | None = None,
    most: int | None = None,
    whole: bool = False,
) -> Table:
    """A table of declared figures.

    shown  fields of `row`, or columns of one's own (`cells`).
    """
    declared = columns_of(row)
    return Table(title, tuple(_field(declared[s]) if isinstance(s, str) else s for s in shown), rows, note, most, whole)


def _field(column: Column) -> Cells:
    def get(row: Any) -> Value:
        value: Value = getattr(row, column.field)
        return "" if column.blank and not value else value

    return Cells(column, get)


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure with its name. `note` says what it means, or why it is n/a."""

    title: str
    value: Value
    unit: Unit
    note: str | None = None


def metric(row: Row, field: str, note: str | None = None) -> Metric:
    """A declared figure of an object, by its title."""
    column = columns_of(type(row))[field]
    return Metric(column.title, getattr(row, field), column.unit, note)


@dataclass(frozen=True, slots=True)
class Strip:
    """The busy share of a device over time, for a one-line picture: one float in [0, 1] a cell; times in ns.

    earlier  the share of each cell that is earlier work, recorded or not; empty: none is.
    """

    title: str
    shares: tuple[float, ...]
    cell_ns: float
    busy_ns: int
    idle_ns: int
    earlier: tuple[float, ...] = ()

    @property
    def earlier_ns(self) -> float:
        return sum(self.earlier) * self.cell_ns


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence."""

    text: str


Block = Table | Metric | Strip | Note


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report: a key for `--only`, and its blocks in the order in which they are shown.

    detail  shown only when asked for: the figures behind the figures.
    first   what of it belongs to the first look.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]
    detail: bool = False
    first: Table | None = None
