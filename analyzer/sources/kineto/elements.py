"""Elements of a list of events, parsed; and what takes them."""

from __future__ import annotations

import re
from typing import Any, Protocol

import orjson

_TIMES = re.compile(rb'("(?:ts|dur)"[ \t\r\n]*:[ \t\r\n]*)(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=[ \t\r\n,}])')


class OtherDocument(Exception):
    """An element that holds events itself: it has lost its end, or another document begins in it."""


class Sink(Protocol):
    """Takes the elements of a list, in order of the file."""

    def add(self, piece: bytes) -> None:
        """Take all elements of `[elements]`, or none: raises JSONDecodeError, OtherDocument."""
        ...

    def take(self) -> dict[str, Any]:
        """What came of the elements since the last call, as plain values that `marshal` takes."""
        ...


def parse(piece: bytes) -> list[Any]:
    """Elements of `[elements]`. Raises JSONDecodeError, OtherDocument."""
    elements: list[Any] = orjson.loads(piece)
    try:
        events = len([1 for element in elements if "ph" in element])
    except TypeError:  # a number, a word
        events = 0
    if piece.count(b'"ph"') > events or list in map(type, elements):
        for element in elements:
            if any(map(holds_events, element.values() if type(element) is dict else (element,))):
                raise OtherDocument
    return elements


def parse_with_times_as_text(piece: bytes) -> list[Any]:
    """The same, with every digit of the times. Raises JSONDecodeError, OtherDocument."""
    return parse(_TIMES.sub(rb'\1"\2"', piece))


def holds_events(value: Any) -> bool:
    """Does a value inside an element hold what looks like an event?"""
    if type(value) is list:
        return any(map(holds_events, value))
    if type(value) is not dict:
        return False
    return ("ph" in value and ("pid" in value or "ts" in value)) or any(map(holds_events, value.values()))
