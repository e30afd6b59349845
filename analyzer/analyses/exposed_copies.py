"""Copies between host and device that nothing overlaps."""

from __future__ import annotations

from typing import Annotated, ClassVar

from analyzer.events.schema import Cat
from analyzer.index import exposure
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
    work = chains.account.work
    name = chains.trace.text(work["name"])
    copy = work["cat"] == int(Cat.MEMCPY)
    # Earlier work hides a copy as any other does, but its own copies are not the window's.
    copy &= ~work["earlier"]
    pageable = copy & name.str.contains(PAGEABLE)
    pinned = copy & name.str.contains(_HOST) & ~pageable
    return ExposedCopies(
        exposed_copies=Exposed(
            pageable_ns=exposure.alone(work, pageable.to_numpy()),
            pinned_ns=exposure.alone(work, pinned.to_numpy()),
            beside_pinned_ns=exposure.busy(work.filter(~pinned)),
        )
    )
