"""What `capture` stamped into the trace: versions, the scenario, and how far the profiler inflates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from analyzer.index.build import Chains
from analyzer.report.blocks import Block, Metric
from analyzer.report.columns import Unit, column
from analyzer.report.results import Result

ORDER = 80

#: The top-level key under which the recorder writes its stamp.
STAMP = "tracecli_capture"


class Capture(Result, frozen=True, kw_only=True):
    SECTION = "capture"
    TITLE = "How it was recorded"

    capture: Annotated[
        Mapping[str, Any] | None,
        column("", "the recorder's stamp, and `inflation`: profiled by unprofiled step time; null: no stamp"),
    ]

    @property
    def inflation(self) -> float | None:
        """Profiled by unprofiled step time; None: not measured."""
        return _number(self.capture or {}, "inflation")

    def blocks(self) -> Iterator[Block]:
        if not self.capture:
            return
        for key in ("scenario", "torch"):
            yield Metric(key, _text(self.capture, key), Unit.TEXT)
        for title, key in (("step without the profiler", "unprofiled_step_us"), ("step with it", "profiled_step_us")):
            us = _number(self.capture, key)
            yield Metric(title, None if us is None else us * 1000, Unit.NS)
        note = "how far the profiler itself stretches a step: CPU times in this report are stretched likewise"
        yield Metric("inflation", self.inflation, Unit.RATIO, note)


def analyze(chains: Chains) -> Capture:
    stamp = chains.trace.header.extra.get(STAMP)
    if not isinstance(stamp, Mapping) or not stamp:
        return Capture(capture=None)
    unprofiled, profiled = _number(stamp, "unprofiled_step_us"), _number(stamp, "profiled_step_us")
    return Capture(capture={**stamp, "inflation": profiled / unprofiled if profiled and unprofiled else None})


def _number(stamp: Mapping[str, Any], key: str) -> float | None:
    """A figure of the stamp; None where it is missing or a stranger wrote something else."""
    value = stamp.get(key)
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15
    return float(value) if good else None  # type: ignore[arg-type]


def _text(stamp: Mapping[str, Any], key: str) -> str | None:
    value = stamp.get(key)
    return value if isinstance(value, str) else None
