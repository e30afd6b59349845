"""The profiler's own work is part of what was recorded.

What it means
    Recording costs time: buffers are requested and flushed inside the run's own calls, and Python stacks make
    every function call dearer. The figures describe the run under the profiler, not the run.

How it is computed
    Idle time of the device while the profiler handled its buffers (events that it marks itself; the report takes
    them out of every operator's tax); where the recorder measured a step without the profiler, the ratio of
    both; and whether Python stacks were recorded while the verdict rests on host time. It fires from a twentieth
    of the window, from a step that is a fifth longer, or as a note for stacks on a run that the host bounds.
    "Up to" is the idle time that is the profiler's: it is no gain for the run, only for the figures.

What to try
    Record without stacks (with_stack=False, with_modules=False) to measure, and once with them to find the
    place. Skip the first steps: schedule(wait=1, warmup=2, active=10). Trust ratios within one trace more
    than absolute host times.

When it is wrong
    Behind a busy device the profiler's time costs nothing, and is not counted. Cost that the profiler adds
    inside each call (some hundred ns a call) leaves no event and cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.capture import Capture
from analyzer.analyses.verdict import Verdict
from analyzer.findings import WORTH, bound, causes_of, finding, grade, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "profiler-overhead"
#: A step that is a fifth longer moves a verdict; less is within the spread of steps.
INFLATED = 1.2
HOST_BOUND = ("overhead-bound", "input-bound", "mixed", "sync-bound", "cpu-only")


def find(results: Results) -> Iterable[Finding]:
    ns = sum(cause.ns for cause in causes_of(results, ("profiler",)))
    share = share_of(results, ns)
    inflation = results[Capture].inflation
    inflated = inflation is not None and inflation >= INFLATED
    stacks = results[Verdict].trust.python_stacks and bound(results) in HOST_BOUND
    if share < WORTH and not inflated and not stacks:
        return
    evidence = (
        f"the device was idle for {units.duration(ns)} while the profiler handled its buffers" if ns else None,
        f"a step took {units.ratio(inflation)} as long as without the profiler" if inflated else None,
        "Python stacks were recorded: they lengthen host times, and the verdict rests on these" if stacks else None,
    )
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"the profiler itself takes {units.share(share)} of the window"
        if share >= WORTH
        else "the profiler inflates the host's times",
        evidence,
        "Skip the first steps with schedule(wait=1, warmup=2, active=10); measure with with_stack=False and record "
        "stacks in a second run.",
        ns if share >= WORTH else None,
    )
