"""What `capture` stamped into the trace: versions, the scenario, and how far the profiler inflates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzer import units
from analyzer.index.build import Chains
from analyzer.model import Metric, Section, Unit

ORDER = 80

#: The top-level key under which the recorder writes its stamp.
STAMP = "tracecli_capture"


@dataclass(frozen=True, slots=True)
class Recording:
    """stamp: as recorded, empty if none. inflation: profiled / unprofiled step time, None if not measured."""

    stamp: Mapping[str, Any]
    inflation: float | None

    def contract(self) -> dict[str, Any]:
        return {"capture": {**self.stamp, "inflation": self.inflation} if self.stamp else None}

    def section(self, top: int) -> Section | None:
        if not self.stamp:
            return None
        unprofiled, profiled = (
            _number(self.stamp, "unprofiled_step_us"),
            _number(self.stamp, "profiled_step_us"),
        )
        note = "how far the profiler itself stretches a step: CPU times in this report are stretched likewise"
        return Section(
            "capture",
            "How it was recorded",
            metrics=(
                Metric("scenario", _text(self.stamp, "scenario"), Unit.TEXT),
                Metric("torch", _text(self.stamp, "torch"), Unit.TEXT),
                Metric("step without the profiler", None if unprofiled is None else unprofiled * 1000, Unit.NS),
                Metric("step with it", None if profiled is None else profiled * 1000, Unit.NS),
                Metric("inflation", self.inflation, Unit.RATIO, note),
            ),
        )

    def summary(self) -> str | None:
        """A sentence for the trust line."""
        if self.inflation is None:
            return None
        return f"the profiler stretched a step {units.ratio(self.inflation)}"


def analyze(chains: Chains) -> Recording:
    stamp = chains.trace.header.extra.get(STAMP)
    if not isinstance(stamp, Mapping):
        return Recording({}, None)
    unprofiled, profiled = _number(stamp, "unprofiled_step_us"), _number(stamp, "profiled_step_us")
    return Recording(stamp, profiled / unprofiled if profiled and unprofiled else None)


def _number(stamp: Mapping[str, Any], key: str) -> float | None:
    """A figure of the stamp; None where it is missing or a stranger wrote something else."""
    value = stamp.get(key)
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15
    return float(value) if good else None  # type: ignore[arg-type]


def _text(stamp: Mapping[str, Any], key: str) -> str | None:
    value = stamp.get(key)
    return value if isinstance(value, str) else None
