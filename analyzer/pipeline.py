"""Source -> events -> index -> analyses -> findings -> report."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from types import ModuleType

from msgspec import structs

from analyzer import analyses, findings, units
from analyzer.analyses.devices import Devices
from analyzer.analyses.phases import Phase, PhasesResult
from analyzer.analyses.recording import Recording
from analyzer.analyses.trace import TraceFile
from analyzer.analyses.verdict import Verdict
from analyzer.events import select
from analyzer.events.schema import Trace
from analyzer.events.select import Selection
from analyzer.index import selecting
from analyzer.index.build import build
from analyzer.index.parts import Part
from analyzer.report.blocks import Strip
from analyzer.report.document import Findings, Headline, Kind, Report, Tool, ToolRow, Warnings
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Result, Results

#: Told of bytes read, and of all, if known.
Progress = Callable[[int, int | None], None]

#: Analyses at work at once; more find nothing to do.
THREADS = min(4, os.cpu_count() or 1)

#: Phases that the headline names, those with the most time first.
PHASES = 3

#: The distribution's name: `tracecli` belongs to another project.
DISTRIBUTION = "torch-tracecli"


@cache
def modules(package: ModuleType) -> tuple[ModuleType, ...]:
    """The plug-ins of a package, by ORDER and name: an addition is a file, and edits no registry."""
    found = [importlib.import_module(m.name) for m in pkgutil.iter_modules(package.__path__, package.__name__ + ".")]
    return tuple(sorted(found, key=lambda m: (getattr(m, "ORDER", 0), m.__name__)))


def result_of(module: ModuleType) -> type[Result]:
    """The one result type that an analysis declares."""
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Result) and value.__module__ == module.__name__
    )
    return found


@cache
def run_kind() -> Kind:
    """The report of one trace."""
    results = [result_of(module) for module in modules(analyses)]
    return Kind("run", "Report of tracecli analyze", (Tool, TraceFile, Warnings, *_rest(results), Findings), headline)


def _rest(results: list[type[Result]]) -> list[type[Result]]:
    return [r for r in results if r is not TraceFile]


def tool() -> Tool:
    try:
        version = installed_version(DISTRIBUTION)
    except PackageNotFoundError:  # run from a source tree that was not installed
        version = "0+unknown"
    return Tool(tool=ToolRow(name="tracecli", version=version))


def run(trace: Trace, part: Selection | None = None) -> Report:
    """Analyse a trace in memory.

    part  analyse a part of it only; and how its phases are found.
    """
    if part is not None and not part.whole:
        trace = select.take(trace, selecting.part(trace, part))
    chains = build(trace, part.engines if part else None)
    del trace  # the events live on in the trees: two copies would be the peak of memory
    # What nearly all of them stand on first; then they have nothing to do with each other, and most of their time is
    # spent in Polars and numpy, outside of Python's lock.
    _ = chains.verdict
    with ThreadPoolExecutor(THREADS) as pool:
        measured = {type(result): result for result in pool.map(lambda one: one.analyze(chains), modules(analyses))}
    warnings = Warnings(warnings=(*chains.trace.warnings, *chains.warnings))
    results = Results([tool(), measured.pop(TraceFile), warnings, *measured.values()])
    return Report(run_kind(), results.with_(Findings(findings=judge(results))))


def judge(results: Results) -> tuple[Finding, ...]:
    """All findings, the gravest first, and within one severity the one that could win most."""
    found = [
        structs.replace(finding, docs=f"tracecli explain {finding.name}")
        for module in modules(findings)
        for finding in module.find(results)
    ]
    gravity = list(Severity)
    return tuple(sorted(found, key=lambda f: (gravity.index(f.severity), -(f.up_to_ns or 0), f.name)))


def headline(results: Results) -> Headline:
    """The first screen of a run, from its results."""
    trace, verdict, devices = results[TraceFile].trace, results[Verdict], results[Devices]
    steps = len(trace.steps)
    duration = verdict.window.duration_ns
    window = units.duration(duration) if duration is not None else "no events"
    names = sorted({d.name for d in devices.devices if d.name})
    count = f"{len(devices.devices)} × " if len(devices.devices) > 1 else ""
    return Headline(
        source=(
            trace.path.replace("\\", "/").rpartition("/")[2],
            f"{units.plural(steps, 'step')}, {window}" if steps else window,
            count + ", ".join(names) if names else trace.producer,
            f"{trace.events:,} events",
        ),
        bound=verdict.verdict.bound,
        reason=verdict.verdict.reason + _by_phase(results[PhasesResult].phases),
        strips=strips(devices),
        trust=(*verdict.trusted(), *results[Recording].trusted()),
        path=trace.path,
    )


def _by_phase(phases: Sequence[Phase]) -> str:
    """Where phases are bound by different things, what each is: a verdict over both says nothing of either."""
    judged = [p for p in phases if p.verdict is not None]
    if len({p.verdict for p in judged}) < 2:
        return ""
    total = sum(p.wall_ns for p in phases)
    said = [
        f"{p.name} is {p.verdict} ({units.plural(p.calls, 'step')}, {units.share(p.wall_ns / total)} of their time)"
        for p in judged[:PHASES]
    ]
    return "; " + "; ".join(said) if total else ""


def strips(devices: Devices) -> tuple[Strip, ...]:
    """One busy and idle picture a device, over the window."""
    device = {d.device: d for d in devices.devices}
    return tuple(
        Strip(
            f"GPU {line.device}",
            line.busy,
            line.cell_ns,
            device[line.device].window_busy_ns,
            device[line.device].window_idle_ns,
            line.share(Part.EARLIER_WORK),
        )
        for line in devices.timeline
    )
