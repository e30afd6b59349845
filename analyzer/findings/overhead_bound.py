"""The device waits for the host to dispatch work.

What it means
    The device finishes each kernel before the host has prepared the next one. Time goes to Python, the
    dispatcher, shape checks, allocation and the launch call, not to arithmetic. A faster GPU changes nothing.

How it is computed
    Idle time of the device that ended in a late launch, split by what the launching thread was doing:
    inside an operator (dispatch), inside a compiled region but outside operators, in Python, and between
    the launch call's return and the kernel's start. It fires when the verdict is overhead-bound, or when
    this time inside the device's span is a quarter of the window: less is worth tuning, but does not hold the
    run back. Where half of it is a single pause, the advice is to record again: that is no steady state.
    First-use costs (module loading) are not counted: see `cold-start`. "Up to" is all of that idle time: the
    device's own work stays.

What to try
    Make fewer, larger launches. Shapes that repeat (inference, decode, a training step):
        model = torch.compile(model, mode="reduce-overhead")     # fuses, and replays a CUDA graph
        g = torch.cuda.CUDAGraph(); with torch.cuda.graph(g): out = model(static_in)     # by hand
        g.replay()
    Otherwise a larger batch (the same launches do more work), `torch.compile` to fuse point-wise chains,
    `torch.optim.AdamW(..., fused=True)` for the optimizer, and no Python loop over small tensors.

When it is wrong
    The profiler inflates host time, most of all with Python stacks on: a run near the border may be
    compute-bound without it. A recording of one call counts the host's head start before the first kernel,
    which a longer run overlaps. Launches that have no device record make a busy device look idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from analyzer import units
from analyzer.analyses.compiled import Compiled
from analyzer.analyses.kernels import Kernels
from analyzer.analyses.launches import Launches
from analyzer.analyses.overview import Overview
from analyzer.findings import HOLDS, SEEN, finding, named, share_of, spread, take
from analyzer.findings.blocking_sync import cost
from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

NAME = "overhead-bound"
#: The steady cost of launching. First use, compilation and the allocator have findings of their own.
CAUSES = (Cause.DISPATCH, Cause.COMPILED_OVERHEAD, Cause.PYTHON, Cause.LAUNCH_LATENCY)


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    bound = take(results, Overview).verdict.bound
    ns = exposure.idle_ns(chains, CAUSES)
    inside = exposure.idle_ns(chains, CAUSES, edges=False)
    named_by_verdict = bound == "overhead-bound" and share_of(chains, ns) >= HOLDS
    if not named_by_verdict and (bound == "compute-bound" or share_of(chains, inside) < HOLDS):
        return
    up_to = ns if named_by_verdict else inside
    python = exposure.gaps_of(chains, (Cause.PYTHON,))
    place = exposure.place(chains, python) if python["ns"].sum() >= up_to / 4 else None
    longest, pause = _longest(chains)
    yield finding(
        NAME,
        Severity.ERROR if named_by_verdict else Severity.WARNING,
        f"the device waits for dispatch {units.share(share_of(chains, up_to))} of the time",
        (
            _pace(results, chains),
            f"waits for: {named(exposure.owners(chains, CAUSES[:3]))}",
            f"Python: {place.frame}, in {place.count:,} of the longest gaps" if place else None,
        ),
        _first_call(longest, pause) if 2 * pause >= up_to else _advice(results, chains),
        up_to,
        chains,
    )


def _longest(chains: Chains) -> tuple[str, int]:
    """Who was at it in the longest pause, and how long it was (ns)."""
    pieces = pl.concat([chains.gap_pieces, chains.edge_pieces.with_columns(gap=-1 - pl.col("gap"))])
    mine = pieces.filter(pl.col("cause").is_in([int(c) for c in CAUSES[:3]]) & (pl.col("owner") >= 0))
    # Only where all of a gap's pieces together outlast the longest piece can there be a longer pause.
    rivals = mine.group_by("gap").agg(pl.col("ns").sum()).filter(pl.col("ns") >= (mine["ns"].max() or 0))
    close = mine.join(rivals, on="gap", how="semi")
    total = close.group_by("gap", "owner").agg(pl.col("ns").sum()).sort("ns", "gap", descending=True)
    if not total.height:
        return "", 0
    return str(chains.trace.names[total["owner"][0]]), int(total["ns"][0])


def _first_call(owner: str, ns: int) -> str:
    return (
        f"Half of it or more is one pause of {units.duration(ns)} in {units.short_name(owner, 60)}, most likely a "
        "first call: record again after a warm-up, schedule(wait=1, warmup=3, active=5), and more steps."
    )


def _pace(results: Mapping[str, Result], chains: Chains) -> str:
    """How fast the host launches against how fast the device runs what was launched."""
    launches = take(results, Launches)
    rows = np.sort(chains.host.start[chains.launches["launch"].to_numpy()])
    per_step = f", {units.count(launches.count / launches.steps)} a step" if launches.steps else ""
    runs = chains.device["dur"].to_list()
    text = f"{plural(launches.count, 'launch', 'launches')}{per_step}; device work takes {spread(runs)}"
    if len(rows) < 3:
        return text
    return f"{text}; the host needs {spread(np.diff(rows).tolist())} from one launch to the next"


def _advice(results: Mapping[str, Result], chains: Chains) -> str:
    launches, compiled = take(results, Launches), take(results, Compiled)
    training = bool(chains.trace.names.str.contains(r"^autograd::engine::|Backward0$").any())
    if launches.graph_launches:
        return (
            "Part of the run already replays graphs: bring the rest (listed above) into the graph, or prepare "
            "it while the graph runs."
        )
    if compiled.regions:
        return (
            'Compiled, but every kernel is launched by itself: torch.compile(..., mode="reduce-overhead") replays '
            "a CUDA graph (static shapes; inputs are copied in), or raise the batch."
        )
    if training:
        return (
            "torch.compile the model to fuse point-wise chains, use the optimizer's fused=True, and raise the "
            'batch; with static shapes mode="reduce-overhead" replays CUDA graphs for forward and backward.'
        )
    if share_of(chains, cost(chains)) >= SEEN and chains.trace.names.str.contains(r"^aten::(?:item|nonzero)$").any():
        return (
            "Remove the blocking waits first (see blocking-sync): a CUDA graph cannot be captured across them. Then "
            'torch.compile(model, mode="reduce-overhead"), or a larger batch.'
        )
    several = len({k.name for k in take(results, Kernels).rows}) > 1
    return (
        "Capture the step in a CUDA graph (torch.cuda.graph, then g.replay()) or let "
        f'torch.compile(model, mode="reduce-overhead") do it{" and fuse the small kernels" if several else ""}; '
        "a larger batch gives each launch more work."
    )
