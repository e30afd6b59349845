"""Copies between host and device that nothing overlaps."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import intervals
from analyzer.index.build import Chains
from analyzer.index.vocabulary import PAGEABLE
from analyzer.report.columns import Ns, Row, column
from analyzer.report.results import Result

ORDER = 56

_HOST = r"(?i)HtoD|DtoH|Host -> Device|Device -> Host|Pinned"


class Exposed(Row, frozen=True, kw_only=True):
    """Device-busy time in the window, all devices. What the profiler does not mark as pageable counts as pinned."""

    IDENTITY: ClassVar[str] = "pageable_ns"

    pageable_ns: Annotated[Ns, column("pageable", "time in which only copies of pageable memory ran")]
    pinned_ns: Annotated[Ns, column("pinned", "time in which only other copies from or to the host ran")]
    beside_pinned_ns: Annotated[Ns, column("other work", "busy time of all but these other copies")]


class ExposedCopies(Result, frozen=True, kw_only=True):
    exposed_copies: Exposed


def analyze(chains: Chains) -> ExposedCopies:
    work = chains.account.work.filter(~pl.col("earlier"))
    name = chains.trace.text(work["name"])
    copy = work["cat"] == int(Cat.MEMCPY)
    pageable = copy & name.str.contains(PAGEABLE)
    pinned = copy & name.str.contains(_HOST) & ~pageable
    busy, beside = _busy(work), _busy(work.filter(~pinned))
    return ExposedCopies(
        exposed_copies=Exposed(
            pageable_ns=busy - _busy(work.filter(~pageable)),
            pinned_ns=busy - beside,
            beside_pinned_ns=beside,
        )
    )


def _busy(work: pl.DataFrame) -> int:
    return int(intervals.union_length(work, ["device"])["length"].sum())
