"""The Python API: `analyze` and what it returns. For tests, scripts and notebooks.

    >>> from analyzer import analyze
    >>> report = analyze("fixtures/decode_eager.json.gz")
    >>> report.verdict
    'overhead-bound'
    >>> report["launches.per_step"]
    149.0
    >>> report["annotations.decode_token.calls"]
    5
    >>> "allocator-churn" in report.findings
    False
    >>> report.frames.device.select("name", "dur_ns").height
    745

A test of a recorded trace is a line:

    def test_a_token_stays_cheap():
        assert analyze("run.json")["annotations.decode_token.cpu_us_median"] < 6_000

What is documented here stays: names are added, never renamed, as in the report's JSON.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from analyzer.errors import TraceError
from analyzer.report.findings import Finding

if TYPE_CHECKING:
    import polars as pl

    from analyzer.events.schema import Trace
    from analyzer.report import document

__all__ = ["Finding", "Frames", "Report", "TraceError", "analyze"]


def analyze(
    path: str | os.PathLike[str],
    *,
    step: str | int | None = None,
    time_us: tuple[float | None, float | None] | None = None,
    annotation: str | None = None,
    phase: str | None = None,
    engines: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    strict: bool = False,
) -> Report:
    """Analyse a trace: a .json or .json.gz of PyTorch's profiler.

    step    analyse one profiler step only: its name, number or position. Or, in its place:
    time_us, annotation, phase  what ran between two times of the report; the calls of an annotation; a phase's steps.
    engines  file with more rows for the table of engines' names, by which phases are found (`index/engines.toml`).
    jobs    processes that parse; None: one a core for large files, 1: none beside this one.
    strict  raise instead of repairing a damaged file.

    Raises TraceError where the file cannot be read; its text says what, where, and what to do.
    """
    from analyzer import pipeline
    from analyzer.events.select import Selection
    from analyzer.sources.kineto.read import read

    trace = read(path, jobs=jobs, strict=strict)
    part = Selection(
        steps=None if step is None else (str(step), str(step)),
        time_us=time_us,
        annotation=None if annotation is None else (annotation, None),
        phase=phase,
        engines=None if engines is None else os.fspath(engines),
    )
    return Report(pipeline.run(trace, part), trace)


class Report:
    """What `tracecli analyze` says of a trace.

    contract  the JSON report, as `tracecli analyze --format json` prints it and `tracecli schema` describes it.
    frames    the events, as Polars frames.
    """

    def __init__(self, report: document.Report, trace: Trace) -> None:
        self._report = report
        self._trace = trace

    @property
    def contract(self) -> Mapping[str, Any]:
        return self._report.contract

    @property
    def verdict(self) -> str:
        """What bounds the run: "overhead-bound", "compute-bound", ..."""
        return self._report.headline.bound

    @property
    def findings(self) -> Mapping[str, tuple[Finding, ...]]:
        """The findings by name, the gravest first; a name is there if the run has at least one such."""
        found: dict[str, list[Finding]] = {}
        for finding in self._report.findings:
            found.setdefault(finding.name, []).append(finding)
        return {name: tuple(some) for name, some in found.items()}

    def __getitem__(self, name: str) -> Any:
        """A figure by its dotted name, as a budget of `tracecli check` names it; None: n/a in this run.

        Raises KeyError, with a suggestion, where there is none; a name that means several figures
        (`devices.*.utilization`) gives a list.
        """
        from analyzer.report import names

        try:
            parts = names.parse(name)
            found = names.resolve(self._report, parts)
        except TraceError as e:
            raise KeyError(f"{e.what}; {e.hint}" if e.hint else e.what) from None
        several = len(found) != 1 or names.EVERY in parts
        return [figure.value for figure in found] if several else found[0].value

    @cached_property
    def frames(self) -> Frames:
        return Frames(self._trace)

    def __repr__(self) -> str:
        return f"<Report of {self._trace.path}: {self.verdict}, {len(self._report.findings)} findings>"


class Frames:
    """The events of a trace as Polars frames, each made when it is first asked for.

    `tracecli schema events` says what the columns are.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def _frame(self, name: str) -> pl.DataFrame:
        from analyzer.events import export

        return export.lazy(self._trace, name).collect()

    @cached_property
    def host(self) -> pl.DataFrame:
        """Operators, annotations, Python frames, calls of the runtime and the driver."""
        return self._frame("host")

    @cached_property
    def device(self) -> pl.DataFrame:
        """Kernels, copies and memsets."""
        return self._frame("device")

    @cached_property
    def memory(self) -> pl.DataFrame:
        """Instants of the allocator, where memory was recorded."""
        return self._frame("memory")

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """What was said of collectives; `collective` of the other frames is the row."""
        return self._frame("collectives")

    @cached_property
    def events(self) -> pl.DataFrame:
        """Host and device in one frame."""
        return self._frame("events")
