"""A small kind of report, declared as the real ones are, to be filled from plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from analyzer.report import codec
from analyzer.report.blocks import Note
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ns, Row, Share, Text, column
from analyzer.report.document import Findings, Headline, Kind, Report, Warnings
from analyzer.report.results import Result, Results


class Launches(Result, frozen=True, kw_only=True):
    class Times(Row, frozen=True, kw_only=True):
        per_step: Annotated[MeanCount | None, column("per step", "by steps")] = None
        count: Annotated[Count | None, column("count", "of all")] = None
        queue_wait_ns_median: Annotated[MeanNs | None, column("queue wait", "n/a here")] = None

    SECTION = "launches"
    launches: Times

    def blocks(self):
        yield Note("launches")


class Device(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "device"

    device: Annotated[int, column("device", "id")]
    utilization: Annotated[Share, column("busy", "of span")]


class Devices(Result, frozen=True, kw_only=True):
    devices: tuple[Device, ...]


class CauseTotal(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "cause"

    device: Annotated[int, column("device", "id")]
    cause: Annotated[Literal["dispatch", "blocking_sync"], column("cause", "of a closed set")]
    total_ns: Annotated[Ns, column("idle", "sum")]
    median_ns: Annotated[MeanNs | None, column("median", "no sum")] = None
    share: Annotated[Share, column("share", "of idle time")]


class Gap(Row, frozen=True, kw_only=True):
    duration_ns: Annotated[Ns, column("idle", "its length")]


class Gaps(Result, frozen=True, kw_only=True):
    class Idle(Row, frozen=True, kw_only=True):
        by_cause: tuple[CauseTotal, ...]
        longest: tuple[Gap, ...]

    gaps: Idle


class Kernel(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("name", "of it")]
    median_ns: Annotated[MeanNs, column("median", "duration")]
    grid: Annotated[tuple[int, int, int] | None, column("", "blocks")] = None


class Kernels(Result, frozen=True, kw_only=True):
    kernels: tuple[Kernel, ...]


class Step(Row, frozen=True, kw_only=True):
    name: Annotated[Text, column("step", "of it")]


class Steps(Result, frozen=True, kw_only=True):
    steps: tuple[Step, ...]


class StepsFound(Result, frozen=True, kw_only=True):
    class Found(Row, frozen=True, kw_only=True):
        steps: Annotated[Count, column("steps", "found")]

    steps_found: Found


class Annotation(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("name", "of it")]
    calls: Annotated[Count, column("calls", "of it")] = 1
    cpu_ns_median: Annotated[MeanNs, column("CPU", "of a call")]
    cpu_ns_spread: Annotated[MeanNs, column("", "over the calls")] = 0.0


class Annotations(Result, frozen=True, kw_only=True):
    annotations: tuple[Annotation, ...]


class Spike(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("name", "of it")]
    duration_ns: Annotated[Ns, column("took", "its length")]


class Spikes(Result, frozen=True, kw_only=True):
    spikes: tuple[Spike, ...]


class Capture(Result, frozen=True, kw_only=True):
    capture: Annotated[Mapping[str, Any] | None, column("", "free in form")]


class Memory(Result, frozen=True, kw_only=True):
    class Peak(Row, frozen=True, kw_only=True):
        bytes: Annotated[Count, column("", "of it")]

    memory: Peak | None


class Verdict(Result, frozen=True, kw_only=True):
    class Judgement(Row, frozen=True, kw_only=True):
        bound: Annotated[Text, column("", "of it")]

    verdict: Judgement


class TraceFile(Result, frozen=True, kw_only=True):
    class File(Row, frozen=True, kw_only=True):
        path: Annotated[Text, column("", "as given")]

    trace: File


def _headline(results: Results) -> Headline:
    return Headline((), "toy", "", path=results[TraceFile].trace.path if TraceFile in results else "")


RESULTS = (
    TraceFile, Warnings, Launches, Devices, Gaps, Kernels, Annotations, Spikes, Capture, Memory, Verdict, Steps,
    StepsFound, Findings,
)  # fmt: skip
TOY = Kind("toy", "A toy", RESULTS, _headline)


def report(plain: Mapping[str, Any]) -> Report:
    """The results that the plain values fill; a report may hold less than its kind has."""
    return Report(TOY, Results(codec.load(r, plain) for r in RESULTS if r.__struct_encode_fields__[0] in plain))
