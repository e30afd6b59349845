"""The recording holds first-use costs: loading, library start-up, first calls.

What it means
    The first call of an operator loads its kernels, starts a library (cuBLAS, cuDNN), asks the driver for
    occupancies and attributes, allocates workspaces, and may try several algorithms. It happens once a
    process, and says nothing about the steady state.

How it is computed
    An operator's first call counts where it took three times the median of its later ones and 100 µs more
    (less is the warm-up of CPU caches); so does module and function loading that the profiler marks. "Up to"
    is the device's idle time while that went on. It fires from a twentieth of the window on, where it
    bends every figure of the report. Where the verdict is startup-bound and nothing was compiled again and no graph
    was captured, it speaks of all that is done once: compilation and what autotuning ran on the device, too.
    The profiler's own buffer requests inside a call are told apart; where it
    requested some, and nothing was loaded or allocated, the first call is most likely its start, and a note.

What to try
    When measuring: run a few steps before recording,
        schedule(wait=1, warmup=3, active=5)
    When the start itself matters: keep the process alive, warm up before traffic, CUDA_MODULE_LOADING=EAGER
    moves loading to the start, torch.backends.cudnn.benchmark = False avoids trying algorithms.

When it is wrong
    A first call with larger shapes than the later ones looks like a cold one. An operator that is called
    once or twice has no median to compare with, and stays silent.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.compile import Compile
from analyzer.analyses.first_use import FirstCall, FirstUse
from analyzer.analyses.recording import Recording
from analyzer.findings import WORTH, bound, causes_of, finding, grade, part_of, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "cold-start"
#: First calls that are explained one by one, the longest first.
EXPLAINED = 3


def find(results: Results) -> Iterable[Finding]:
    first_use = sum(cause.ns for cause in causes_of(results, ("first_use",)))
    startup, _ = part_of(results, "startup")
    repeated = results[Compile].compile.recompilations or results[Recording].recording.captures
    by_verdict = bound(results) == "startup-bound" and not repeated
    ns = startup if by_verdict else first_use
    share = share_of(results, ns)
    if share < WORTH:
        return
    first = results[FirstUse].first_use
    started = first.profiler_started and not by_verdict
    loading = (
        f"{plural(first.loading_events, 'loading event')} in all, {units.duration(first.loading_ns)}"
        if first.loading_events
        else None
    )
    if started:
        title = f"first calls take {units.share(share)} of the window, most likely the profiler's own start"
    elif ns > first_use:
        title = f"what is done once takes {units.share(share)} of the window: first use, compilation, autotuning"
    else:
        title = f"first-use costs take {units.share(share)} of the window"
    yield finding(
        results,
        NAME,
        Severity.NOTE if started else grade(share),
        title,
        [_once(results, ns), *(_explain(call) for call in first.calls[:EXPLAINED]), loading],
        "Warm up before recording: schedule(wait=1, warmup=3, active=5), or a few steps before the profiler starts. "
        "If the start is what you measure: CUDA_MODULE_LOADING=EAGER, and keep the process alive.",
        ns,
    )


def _once(results: Results, ns: int) -> str | None:
    """What the time consists of, where compilation is in it."""
    compiled = causes_of(results, ("compile",))
    idle = sum(cause.ns for cause in causes_of(results, ("first_use", "compile")))
    if not compiled or ns < idle:
        return None
    text = f"idle while compiling {units.duration(sum(cause.ns for cause in compiled))}"
    rest = ns - idle
    return f"{text}; device work that autotuning launched {units.duration(rest)}" if rest else text


def _explain(call: FirstCall) -> str:
    """One first call against the later ones, and what was inside it."""
    told = "; ".join(
        f"{part.what}{'' if part.count is None else f' ({part.count:,})'}"
        f"{',' if part.what.endswith('unrecorded') else ''} {units.duration(part.ns)}"
        for part in call.inside
    )
    later = units.duration(call.later_ns_median)
    return f"first {call.name}: {units.duration(call.ns)}, later ones median {later}: {told}"
