"""Figures, declared once: a field of a `Row` with its unit, its title and what it means.

    class Kernel(Row):
        name: Annotated[Name, column("name", "as the profiler wrote it")]
        total_ns: Annotated[Ns, column("total", "sum of the durations", bar=True)]

The key in JSON is the field's name; times are integer nanoseconds inside and µs with three decimals in JSON,
so that the field `total_ns` is the key `total_us`. None stands for n/a, and the doc says why.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Union

import msgspec


class Unit(Enum):
    """How a value is formatted; see `units.format_value`."""

    TEXT = "text"
    NAME = "name"  # a kernel, operator or frame: long, shortened in the middle
    COUNT = "count"
    NS = "ns"  # nanoseconds; µs in JSON
    BYTES = "bytes"
    SHARE = "share"  # 0 to 1
    RATIO = "ratio"  # 2.0 means twice
    RATE = "rate"  # bytes a second
    OWN = "own"  # each value brings its own: `blocks.Quantity`


def _unit(unit: Unit, **schema: Any) -> msgspec.Meta:
    return msgspec.Meta(extra={"unit": unit}, extra_json_schema=schema)


#: Nanoseconds: whole, and as a median or mean.
Ns = Annotated[int, _unit(Unit.NS, type="number", **{"x-unit": "us"})]
MeanNs = Annotated[float, _unit(Unit.NS, type="number", **{"x-unit": "us"})]
Count = Annotated[int, _unit(Unit.COUNT, minimum=0)]
#: A count as a median, mean or rate a step.
MeanCount = Annotated[float, _unit(Unit.COUNT, minimum=0)]
Bytes = Annotated[int, _unit(Unit.BYTES, **{"x-unit": "bytes"})]
#: Of the schema only: a rounding error beyond 1 is no reason to refuse a saved report.
Share = Annotated[float, _unit(Unit.SHARE, minimum=0, maximum=1)]
Ratio = Annotated[float, _unit(Unit.RATIO, minimum=0)]
Rate = Annotated[float, _unit(Unit.RATE, minimum=0, **{"x-unit": "bytes/s"})]
Name = Annotated[str, _unit(Unit.NAME)]
Text = Annotated[str, _unit(Unit.TEXT)]


def column(title: str, doc: str, *, bar: bool = False, blank: bool = False) -> msgspec.Meta:
    """Title and meaning of a figure.

    title  over the column of a table; ""  where no table shows it.
    doc    one line: what it is, None included.
    bar    draw the share that a row has of the column's maximum.
    blank  show a zero or n/a as nothing: most rows have none, and the few that do should stand out.
    """
    return msgspec.Meta(title=title or None, description=doc, extra={"title": title, "bar": bar, "blank": blank})


def key_of(field: str) -> str:
    """The key in JSON of a field: `cpu_ns_median` is `cpu_us_median`."""
    return re.sub(r"(?<![a-z])ns(?![a-z])", "us", field)


class Row(msgspec.Struct, frozen=True, kw_only=True, rename=key_of):
    """A row of a table, or an object of the report.

    IDENTITY  the field by which a row is told from the others of its list (dotted names, comparisons).
    """

    IDENTITY: ClassVar[str] = "name"


@dataclass(frozen=True, slots=True)
class Column:
    """One declared figure: field and key, unit, title, doc; how it is drawn.

    whole    an integer: a count or a sum, never a mean or a median.
    choices  all values that it can have, where the set is closed.
    """

    field: str
    key: str
    unit: Unit
    title: str
    doc: str
    bar: bool = False
    blank: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a Row that is no plain figure: the rows (`many`) or the object in it, None where free in form."""

    key: str
    row: type[Row] | None
    many: bool = False


@cache
def columns_of(row: type[Row]) -> dict[str, Column]:
    """The plain figures of a row type by field; lists and mappings of numbers and texts included."""
    return {field: what for field, what in _declared(row).items() if isinstance(what, Column)}


@cache
def members_of(row: type[Row]) -> dict[str, Member]:
    """The nested rows and objects of a row type by field."""
    return {field: what for field, what in _declared(row).items() if isinstance(what, Member)}


@cache
def keys_of(row: type[Row]) -> dict[str, Column | Member]:
    """All that is declared of a row type by its key in JSON."""
    return {what.key: what for what in _declared(row).values()}


@cache
def _declared(row: type[Row]) -> dict[str, Column | Member]:
    hints = typing.get_type_hints(row, include_extras=True)
    keys = zip(row.__struct_fields__, row.__struct_encode_fields__, strict=True)
    return {field: _read(field, key, hints[field]) for field, key in keys}


def _read(field: str, key: str, hint: Any) -> Column | Member:
    metas: list[msgspec.Meta] = []
    plain: list[Any] = []
    choices: tuple[Any, ...] = ()
    nested: type[Row] | None = None
    many = free = False
    todo = [hint]
    while todo:
        one = todo.pop()
        origin, inner = typing.get_origin(one), typing.get_args(one)
        if origin is Annotated:
            metas += inner[1:]
            todo.append(inner[0])
        elif origin in (Union, types.UnionType, tuple, list):
            many |= origin in (tuple, list)
            todo += [a for a in inner if a is not Ellipsis]
        elif origin in (dict, Mapping):
            todo.append(inner[1])
        elif origin is Literal:
            choices = inner
        elif isinstance(one, type) and issubclass(one, Row):
            nested = one
        elif isinstance(one, type) and issubclass(one, Enum):
            choices = tuple(member.value for member in one)
        else:
            free |= origin is not None or one in (Any, dict, object)
            plain.append(one)
    if nested is not None or free:
        return Member(key, nested, many)
    extra = {name: value for meta in reversed(metas) for name, value in (meta.extra or {}).items()}
    schema = [meta.extra_json_schema for meta in metas if meta.extra_json_schema]
    return Column(
        field,
        key,
        extra.get("unit", Unit.TEXT),
        extra.get("title", ""),
        next((meta.description for meta in metas if meta.description), ""),
        extra.get("bar", False),
        extra.get("blank", False),
        int in plain and float not in plain,
        choices or next((tuple(s["enum"]) for s in schema if "enum" in s), ()),
    )
