"""A CUDA graph is captured in the recording.

What it means
    Between BeginCapture and EndCapture launches run nothing: they are recorded into a graph, which is then
    instantiated. The device stands still. It is done once, and says nothing of the run that replays the graph.

How it is computed
    What the capturing thread does from `cudaStreamBeginCapture` to the end of instantiation (HIP alike), as far as
    the device is idle meanwhile. Launches in it are captured, not lost. It fires for every capture, as a note;
    "up to" is that idle time.

What to try
    Record after the captures: warm up until every graph that is needed exists, then start the profiler. Where graphs
    are captured again and again, shapes change: pad them to a few sizes, and keep one graph for each.

When it is wrong
    A capture that the recording cut is taken as far as its thread launched nothing that was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.recording import Recording
from analyzer.findings import causes_of, finding
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "graph-capture"


def find(results: Results) -> Iterable[Finding]:
    found = results[Recording].recording
    if not found.captures:
        return
    ns = sum(cause.ns for cause in causes_of(results, ("graph_capture",)))
    yield finding(
        results,
        NAME,
        Severity.NOTE,
        f"{plural(found.captures, 'graph is', 'graphs are')} captured while the profiler records",
        (
            f"{plural(found.captured_launches, 'launch', 'launches')} captured: they run nothing, and are not lost",
            f"the device was idle for {units.duration(ns)} of it" if ns else None,
            f"{plural(found.replays, 'graph launch', 'graph launches')} in the recording" if found.replays else None,
        ),
        "Warm up until all graphs are captured, then record; captured again and again: pad shapes to a few sizes.",
        ns or None,
    )
