"""How long many calls took, in one object: a mean alone hides the spikes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from analyzer.report.columns import Count, MeanNs, Ns, Row, column

if TYPE_CHECKING:
    import polars as pl


class Durations(Row, frozen=True, kw_only=True):
    """Durations of some calls, one at least: total, median and maximum."""

    IDENTITY: ClassVar[str] = "count"

    count: Annotated[Count, column("count", "how many")]
    total_ns: Annotated[Ns, column("total", "their sum")]
    median_ns: Annotated[MeanNs, column("median", "the usual one")]
    max_ns: Annotated[Ns, column("max", "the longest")]

    @classmethod
    def of(cls, ns: pl.Series) -> Durations | None:
        """Of integer durations (ns); None where there are none."""
        median, most = ns.median(), ns.max()
        if median is None or most is None:
            return None
        return cls(count=len(ns), total_ns=int(ns.sum()), median_ns=float(median), max_ns=int(most))  # type: ignore[arg-type]
