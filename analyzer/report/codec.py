"""Rows to JSON and back, and the schema of both: all three from the declarations.

Times are whole nanoseconds inside and µs with three decimals outside; everything else passes as it is.
msgspec checks what is read and writes the schema.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

import msgspec

from analyzer.report.columns import Row, Unit, columns_of, members_of

R = TypeVar("R", bound=Row)

#: Times beyond it do not fit 64 bits as ns.
_MAX_US = float(1 << 53)


def dump(row: Row) -> dict[str, Any]:
    """An object of plain values, ready for any JSON writer. What is no number becomes None."""
    out: dict[str, Any] = {}
    columns = columns_of(type(row))
    for field, key, default in zip(row.__struct_fields__, row.__struct_encode_fields__, _defaults(row), strict=True):
        value = getattr(row, field)
        if value is None and default is None and row.__struct_config__.omit_defaults:
            continue
        column = columns.get(field)
        out[key] = _plain(value) if column is None or column.unit is not Unit.NS else _scaled(value, _us)
    return out


def _defaults(row: Row) -> tuple[Any, ...]:
    required = len(row.__struct_fields__) - len(row.__struct_defaults__)
    return (*([msgspec.NODEFAULT] * required), *row.__struct_defaults__)


def load(row: type[R], plain: Mapping[str, Any]) -> R:
    """The row that `dump` made an object of. Raises msgspec.ValidationError with the place of what is wrong."""
    return msgspec.convert(_unscaled(row, plain), row, strict=True)


def as_read(row: R) -> R:
    """The row as it is when it was saved and read again: fractions of ns are gone, and shown figures are the same."""
    return load(type(row), dump(row))


def schema(rows: Sequence[type[Row]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """JSON schema of an object that holds the keys of all `rows`: it, and the definitions that it refers to."""
    references, definitions = msgspec.json.schema_components(rows, ref_template="#/$defs/{name}")
    _as_numbers(definitions)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for reference in references:
        part = definitions.pop(reference["$ref"].rpartition("/")[2])
        if both := properties.keys() & part["properties"].keys():
            raise ValueError(f"declared twice: {', '.join(sorted(both))}")
        properties |= part["properties"]
        required += part.get("required", ())
    return {"type": "object", "properties": properties, "required": required}, definitions


def _as_numbers(node: Any) -> None:
    """Whole nanoseconds inside are µs with decimals outside."""
    if isinstance(node, dict):
        if node.get("x-unit") == "us" and "type" in node:
            node["type"] = "number"
        for one in node.values():
            _as_numbers(one)
    elif isinstance(node, list):
        for one in node:
            _as_numbers(one)


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return dump(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _scaled(value: Any, scale: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_scaled(one, scale) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _scaled(one, scale) for key, one in value.items()}
    return scale(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _us(ns: float) -> float | None:
    return round(ns / 1000, 3) if math.isfinite(ns) else None


def _ns(us: float) -> float:
    """Times that are out of range stay as they are, for the check to refuse."""
    return round(us * 1000) if abs(us) < _MAX_US else us


def _unscaled(row: type[Row], plain: Any) -> Any:
    """The same object with times in ns; whatever is not of the declared form is left to the check."""
    if isinstance(plain, list | tuple):
        return [_unscaled(row, one) for one in plain]
    if not isinstance(plain, Mapping):
        return plain
    out = dict(plain)
    for column in columns_of(row).values():
        if column.unit is Unit.NS and column.key in out:
            out[column.key] = _scaled(out[column.key], _ns)
    for member in members_of(row).values():
        if member.row is not None and member.key in out:
            out[member.key] = _unscaled(member.row, out[member.key])
    return out
