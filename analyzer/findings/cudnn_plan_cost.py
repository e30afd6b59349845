"""cuDNN prepares each call on the CPU for longer than the device works on it.

What it means
    For every call cuDNN's graph API looks up (or builds) an execution plan, binds tensors and launches a generated
    kernel. That takes the host tens of µs more than a plain operator, each time; a first call builds the plan,
    which takes milliseconds.

How it is computed
    Own CPU time of cuDNN's and MIOpen's attention and convolution operators, per call, against the median of all
    operators that launch work in this trace. What lies above it is the plan's cost, counted only as far as the
    device waited for a late launch meanwhile. It fires from a twentieth of the window on, where the operator takes
    twice as long as the median one. "Up to" is that exposed time.

What to try
    Replay the launches: a CUDA graph, or torch.compile(mode="reduce-overhead"). For attention with short
    sequences another backend may dispatch faster, by some 10 µs a call; measure it:
        with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION): ...
    or torch.backends.cuda.enable_cudnn_sdp(False). For convolutions fixed shapes keep the cache of plans hit.

When it is wrong
    On long sequences cuDNN's kernel is the fastest on Hopper, and its dispatch hides behind it: this is silent
    then. Part of the time is the profiler's, which records each of the calls inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.kernels import Kernels
from analyzer.analyses.library_plans import LibraryPlans
from analyzer.analyses.operators import Operator, Operators
from analyzer.findings import WORTH, finding, grade, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "cudnn-plan-cost"
TWICE = 2.0
#: A median needs a few calls.
CALLS = 5
_KNOB = re.compile(r"knob_?(\d+)")


def find(results: Results) -> Iterable[Finding]:
    plans = results[LibraryPlans].library_plans
    usual = plans.usual_ns
    if usual is None:
        return
    exposed = {
        plan.name: plan.exposed_ns
        for plan in plans.operators
        if plan.calls >= CALLS and plan.excess_ns >= (TWICE - 1) * usual
    }
    mine = [o for o in results[Operators].operators if o.name in exposed and o.device_ns]
    total = sum(exposed[o.name] for o in mine)
    share = share_of(results, total)
    if share < WORTH:
        return
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        "cuDNN's preparation on the CPU outlasts its kernels",
        (
            *(_line(o) for o in mine),
            f"an operator that launches takes a median of {units.duration(usual)} in this trace{_knobs(results)}",
        ),
        'Replay the launches (CUDA graph, mode="reduce-overhead"); for attention on short sequences measure another '
        "backend as well: torch.backends.cuda.enable_cudnn_sdp(False).",
        total,
    )


def _line(o: Operator) -> str:
    return (
        f"{o.name}: {o.calls:,} calls, own CPU median {units.duration(o.self_tax_median_ns)}, max "
        f"{units.duration(o.self_tax_max_ns)}; device {units.duration(o.device_ns / o.calls)} a call"
    )


def _knobs(results: Results) -> str:
    chosen = sorted({m[1] for k in results[Kernels].kernels if "cudnn" in k.name and (m := _KNOB.search(k.name))})
    return f"; knobs chosen: {', '.join(chosen)}" if chosen else ""
