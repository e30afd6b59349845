"""Values as text, by their unit: shared by all renderers."""

from __future__ import annotations

from collections.abc import Callable

from analyzer import units
from analyzer.report.blocks import Quantity, Value
from analyzer.report.columns import Unit

_FORMATS: dict[Unit, Callable[[float], str]] = {
    Unit.COUNT: units.count,
    Unit.NS: units.duration,
    Unit.BYTES: units.size,
    Unit.SHARE: units.share,
    Unit.RATIO: units.ratio,
    Unit.RATE: units.rate,
}


def text(value: Value, unit: Unit) -> str:
    """One value, formatted. None is "n/a"; text passes `units.clean`."""
    if isinstance(value, Quantity):
        plus = "+" if value.signed and isinstance(value.value, int | float) and value.value > 0 else ""
        return plus + text(value.value, value.unit)
    if value is None:
        return units.NOT_AVAILABLE
    if isinstance(value, str):
        return units.clean(value)
    formatter = _FORMATS.get(unit)
    return formatter(value) if formatter else units.clean(str(value))


def is_text(unit: Unit) -> bool:
    """Whether a column is aligned left."""
    return unit in (Unit.TEXT, Unit.NAME)
