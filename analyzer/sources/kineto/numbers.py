"""Numbers of events as whole nanoseconds and 64-bit ids, whatever way the file spells them."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from analyzer.events.builder import NULL
from analyzer.sources.limits import EXACT_US, MAX_US

_PLAIN = re.compile(r"(-?)(\d{1,18})(?:\.(\d{1,3}))?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)


def to_ns(us: object) -> int:
    """Microseconds as a number or as text, to whole nanoseconds (nearest); NULL where unusable.

    Floats have to lie within EXACT_US of zero for the result to be exact; beyond that the caller
    passes the number's text.
    """
    kind = type(us)
    if kind is int or kind is bool:
        return us * 1000 if -MAX_US <= us <= MAX_US else NULL  # type: ignore[operator]
    if kind is float:
        return _from_float(us)  # type: ignore[arg-type]
    if kind is str:
        return _from_text(us)  # type: ignore[arg-type]
    return NULL


def _from_float(us: float) -> int:
    if not math.isfinite(us) or abs(us) > MAX_US:
        return NULL
    if abs(us) < EXACT_US:
        # `us` is within 0.0005 of its text. Whole and fraction apart: the product of both would be
        # rounded to halves between 2**51 and 2**52, and then once more to an integer.
        whole = math.floor(us)
        return whole * 1000 + round((us - whole) * 1000.0)
    return _from_text(repr(us))


def _from_text(text: str) -> int:
    text = text.strip()
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        sign, whole, fraction = plain.groups()
        ns = int(whole) * 1000 + (int(fraction.ljust(3, "0")) if fraction else 0)
        ns = -ns if sign else ns
        return ns if -MAX_US * 1000 <= ns <= MAX_US * 1000 else NULL
    if len(text) > 64 or _DECIMAL.fullmatch(text) is None:
        return NULL
    value = Decimal(text)
    if value.adjusted() > 18:
        return NULL
    ns = int((value * 1000).to_integral_value())
    return ns if -MAX_US * 1000 <= ns <= MAX_US * 1000 else NULL


def to_id(value: object) -> int:
    """An id (correlation, stream, device) as a signed 64-bit integer; NULL where there is none.

    Unsigned 64-bit ids keep their bits, so that two sides of a join still agree.
    """
    kind = type(value)
    if kind is str:
        text = value.strip()  # type: ignore[attr-defined]
        if _INTEGER.fullmatch(text) is None:
            return NULL
        value = int(text)
    elif kind is float:
        if not value.is_integer():  # type: ignore[attr-defined]
            return NULL
        value = int(value)  # type: ignore[call-overload]
    elif kind is not int:
        return NULL
    if -(1 << 63) < value < 1 << 63:  # type: ignore[operator]
        return value  # type: ignore[return-value]
    return value - (1 << 64) if 0 < value < 1 << 64 else NULL  # type: ignore[operator]


def spell(value: object) -> str:
    """A pid or tid as the file spells it. Whole floats and integers are one thread."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int):
        return str(int(value))
    return str(value)
