"""What a report consists of: plain frozen data that every renderer walks in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

#: Of the JSON contract: keys may be added, never renamed, within one version.
SCHEMA_VERSION = 1

#: A value of a metric or a cell. None is shown as "n/a".
Value = int | float | str | None


class Unit(Enum):
    """How a value is to be formatted; see `units.format_value`."""

    TEXT = "text"
    NAME = "name"  # a kernel, operator or frame: long, shortened in the middle
    COUNT = "count"
    NS = "ns"  # integer nanoseconds
    BYTES = "bytes"
    SHARE = "share"  # 0 to 1
    RATIO = "ratio"  # 2.0 means twice
    RATE = "rate"  # bytes a second


@dataclass(frozen=True, slots=True)
class Warning:
    """Something that the reader or an analysis repaired, left out or does not trust.

    code   stable, kebab-case; tests and users match on it.
    byte   0-based offset in the uncompressed text of the first occurrence, if it has a place.
    count  how many times it happened, if countable.
    """

    code: str
    message: str
    byte: int | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `bar`: draw the share that a row has of the column's maximum."""

    title: str
    unit: Unit
    bar: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, largest first, cut to a top N by whoever built it; `hidden` counts what was cut."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    hidden: int = 0
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure with its name. `note` says what it means, or why it is n/a."""

    title: str
    value: Value
    unit: Unit
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """The busy share of a device over time, for a one-line picture: one float in [0, 1] a cell."""

    title: str
    shares: tuple[float, ...]
    cell_ns: int
    busy_ns: int
    idle_ns: int


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report: a key for `--only`, and what is shown, in this order.

    detail  shown only when asked for: the figures behind the figures.
    """

    key: str
    title: str
    metrics: tuple[Metric, ...] = ()
    strips: tuple[Strip, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    detail: bool = False


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """A judgement: what is wrong, by what evidence, what to try, and what it could win.

    up_to_ns  time that would be gone at best; None where it cannot be told.
    share     `up_to_ns` of the window, 0 to 1.
    """

    name: str
    severity: Severity
    title: str
    evidence: tuple[str, ...]
    advice: str
    up_to_ns: int | None = None
    share: float | None = None


class Result(Protocol):
    """What an analysis returns: a small frozen value that knows its own part of the report."""

    def contract(self) -> Mapping[str, Any]:
        """Top-level keys of the JSON report. Times in µs, n/a as None."""

    def section(self, top: int) -> Section | None:
        """What is shown, tables cut to `top` rows; None where there is nothing to say."""


@dataclass(frozen=True, slots=True)
class Headline:
    """What a reader sees first, and the trust line that closes the report.

    source  parts of the first line: file, steps and window, device, events.
    bound   of the verdict; `reason` is its sentence with the figures.
    trust   sentences on what the figures rest on.
    path    of the trace, as given.
    """

    source: tuple[str, ...]
    bound: str
    reason: str
    strips: tuple[Strip, ...]
    trust: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Report:
    """One trace, analysed. `contract` is the JSON object of DESIGN's contract, ready to print."""

    contract: Mapping[str, Any]
    headline: Headline
    sections: Sequence[Section]
    findings: Sequence[Finding]
    warnings: Sequence[Warning]
