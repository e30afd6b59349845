"""Values of events as packed columns: text and what repeats by position in a table, numbers as they are.

Each packer takes the fast way first, and a careful one where a value is not what all producers write.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import orjson

from analyzer.events.builder import NULL
from analyzer.sources.kineto import dialects
from analyzer.sources.kineto.numbers import to_id
from analyzer.sources.limits import EXACT_US, MAX_US

Event = dict[str, Any]

#: How times are packed: microseconds as double, microseconds as int64, nanoseconds as int64.
FLOAT_US, INT_US, INT_NS = "d", "u", "n"

_CONFIG_KEYS = (
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "blocks per SM",
    "warps per SM",
    "est. achieved occupancy %",
)
_CONFIG = itemgetter(*_CONFIG_KEYS)
_NO_CONFIG = orjson.dumps([None] * len(_CONFIG_KEYS))


class NotPlain(Exception):
    """A value that the fast way does not take."""


class Interner(dict[Any, int]):
    """Value -> position; positions are given in order of first sight. `fresh` is what is new."""

    def __init__(self, check: type | None = None) -> None:
        super().__init__()
        self._check = check
        self._new: list[Any] = []

    def __missing__(self, key: Any) -> int:
        if self._check is not None and type(key) is not self._check:
            raise NotPlain
        position = self[key] = len(self)
        self._new.append(key)
        return position

    def fresh(self) -> list[Any]:
        """Keys added since the last call, in order."""
        new, self._new = self._new, []
        return new


class Threads(Interner):
    def __missing__(self, key: tuple[Any, Any]) -> int:
        for part in key:
            if type(part) is not int and type(part) is not str:
                raise NotPlain
        return super().__missing__(key)


class Codes(dict[Any, int]):
    """Category -> code; a category that is not known is remembered by name."""

    def __init__(self) -> None:
        super().__init__(dialects.CODES)
        self.unknown: dict[str, None] = {}

    def __missing__(self, key: Any) -> int:
        if type(key) is not str:
            raise NotPlain
        if len(self.unknown) < 64:
            self.unknown[key] = None
        return dialects.UNKNOWN


#: How times of a kind are packed.
FORMAT = {FLOAT_US: "d", INT_US: "q", INT_NS: "q"}


def pack(code: str, values: Sequence[Any]) -> bytes:
    """Raises struct.error where a value is no number of that type."""
    return struct.pack(f"{len(values)}{code}", *values)


def time_kind(values: Sequence[Any]) -> str | None:
    """How to pack times in microseconds; None where doubles would not be exact. Raises TypeError where
    a value is no number, NotPlain where one is beyond all bounds."""
    low, high = min(values), max(values)
    if low > -EXACT_US and high < EXACT_US:
        return FLOAT_US
    if low < -MAX_US or high > MAX_US:
        raise NotPlain
    return None if float in map(type, values) else INT_US


def id_or_null(value: Any) -> int:
    if type(value) is int and -(1 << 63) < value < 1 << 63:
        return value
    return to_id(value)


def first_id(args: Any, keys: tuple[str, ...], default: int) -> int:
    if type(args) is dict:
        for key in keys:
            if key in args:
                value = id_or_null(args[key])
                return default if value == NULL else value
    return default


def interned(args: Sequence[Event], keys: tuple[str, ...], table: Interner) -> bytes:
    """Positions in `table` of the values of `keys`; -1 where the first key is not there."""
    first = keys[0]
    some = [a for a in args if first in a]
    if not some:
        return b"\xff" * 4 * len(args)
    try:
        found = [table[text] for text in map(orjson.dumps, map(_values(keys), some))]
    except (KeyError, TypeError):
        found = [table[_dumped(a, keys)] for a in some]
    if len(some) == len(args):
        return pack("i", found)
    each = iter(found)
    return pack("i", [next(each) if first in a else -1 for a in args])


@cache
def _values(keys: tuple[str, ...]) -> Callable[[Event], tuple[Any, ...]]:
    """The values of several keys; raises KeyError where one is not there."""
    return itemgetter(*keys)


def interned_configs(args: Sequence[Event], table: Interner) -> bytes:
    dumps = orjson.dumps
    try:
        return pack("i", [table[dumps(_CONFIG(a))] for a in args])
    except (KeyError, TypeError):
        return pack("i", [table[key] if (key := _dumped(a, _CONFIG_KEYS)) != _NO_CONFIG else -1 for a in args])


def _dumped(a: Event, keys: tuple[str, ...]) -> bytes:
    """The values of `keys` as text; nested deeper than can be written, they are none."""
    try:
        return orjson.dumps([a.get(key) for key in keys])
    except TypeError:
        return orjson.dumps([None] * len(keys))


def ids(args: Sequence[Event], key: str) -> bytes:
    """Ids as int64; NULL where there is none."""
    try:
        return pack("q", [a.get(key, NULL) for a in args])
    except (TypeError, struct.error):
        return pack("q", [id_or_null(a.get(key)) for a in args])
