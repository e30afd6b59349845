"""Rows of the tables of inputs, collectives and launch configurations, from the text that was interned for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from analyzer.events.builder import NULL
from analyzer.events.schema import COLLECTIVES
from analyzer.sources.kineto.numbers import to_id


def inputs(text: str) -> tuple[str | None, ...]:
    """A row of INPUTS: each value as JSON."""
    return tuple(None if value is None else orjson.dumps(value).decode() for value in orjson.loads(text))


def collective(text: str) -> tuple[int | str | bool | None, ...]:
    """A row of COLLECTIVES; a value of another type than its column's is as good as none."""
    values = zip(COLLECTIVES.values(), orjson.loads(text), strict=True)
    return tuple(_TYPED[kind](value) for kind, value in values)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _number(value: Any) -> int | None:
    number = to_id(value)
    return None if number == NULL else number


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).lower())


_TYPED: dict[str, Callable[[Any], int | str | bool | None]] = {"String": _text, "Int64": _number, "Boolean": _flag}


def config(text: str) -> tuple[int | float | None, ...]:
    """A row of CONFIGS from [grid, block, registers, shared memory, blocks, warps, occupancy]."""
    grid, block, *rest = orjson.loads(text)
    numbers: list[int | float | None] = []
    for axes in (grid, block):
        axes = axes if isinstance(axes, list) else []
        numbers += [_whole(axis) for axis in (axes + [None] * 3)[:3]]
    numbers += [_whole(rest[0]), _whole(rest[1])]
    numbers += [
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None for value in rest[2:]
    ]
    return tuple(numbers)


def _whole(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63:
        return value
    return None
