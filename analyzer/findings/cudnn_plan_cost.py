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
from collections.abc import Iterable, Mapping

import numpy as np

from analyzer import units
from analyzer.analyses.kernels import Kernels
from analyzer.analyses.operators import Operator, Operators
from analyzer.findings import WORTH, finding, grade, share_of, take
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity

NAME = "cudnn-plan-cost"
_OPERATOR = re.compile(r"^aten::(?:_cudnn_attention_(?:forward|backward)|(?:cudnn|miopen)_convolution\w*)$")
TWICE = 2.0
#: A median needs a few calls.
CALLS = 5
_KNOB = re.compile(r"knob_?(\d+)")


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    rows = take(results, Operators).rows
    launching = [
        o.self_tax_median_ns for o in rows if o.self_device_ns and not _OPERATOR.match(o.name) for _ in range(o.calls)
    ]
    mine = [o for o in rows if _OPERATOR.match(o.name) and o.calls >= CALLS and o.device_ns]
    if not launching or not mine:
        return
    usual = float(np.median(launching))
    mine = [o for o in mine if o.self_tax_median_ns >= TWICE * usual]
    costs = {o.name: _exposed(chains, o, usual) for o in mine}
    total = sum(costs.values())
    share = share_of(chains, total)
    if share < WORTH:
        return
    yield finding(
        NAME,
        grade(share, Severity.WARNING),
        "cuDNN's preparation on the CPU outlasts its kernels",
        (
            *(
                f"{o.name}: {o.calls:,} calls, own CPU median {units.duration(o.self_tax_median_ns)}, max "
                f"{units.duration(o.self_tax_max_ns)}; device {units.duration(o.device_ns / o.calls)} a call"
                for o in mine
            ),
            f"an operator that launches takes a median of {units.duration(usual)} in this trace{_knobs(results)}",
        ),
        'Replay the launches (CUDA graph, mode="reduce-overhead"); for attention on short sequences measure another '
        "backend as well: torch.backends.cuda.enable_cudnn_sdp(False).",
        total,
        chains,
    )


def _exposed(chains: Chains, o: Operator, usual: float) -> int:
    """Per call, the lesser of the excess over a usual operator and the time that the device waited in it."""
    rows = np.nonzero(exposure.operators(chains, f"^{re.escape(o.name)}$"))[0]
    waited = exposure.waited_during(chains, chains.host.start[rows], chains.host.end[rows])
    # At most what is usual for it: the first call also loads and tunes, which `cold-start` counts.
    return int(np.minimum(waited, o.self_tax_median_ns - usual).sum())


def _knobs(results: Mapping[str, Result]) -> str:
    chosen = sorted({m[1] for k in take(results, Kernels).rows if "cudnn" in k.name and (m := _KNOB.search(k.name))})
    return f"; knobs chosen: {', '.join(chosen)}" if chosen else ""
