"""The device waits for the host to dispatch work.

What it means
    The device finishes each kernel before the host has prepared the next one. Time goes to Python, the
    dispatcher, shape checks, allocation and the launch call, not to arithmetic. A faster GPU changes nothing.

How it is computed
    Part `dispatch` of the window: idle time of the device in which the host went from launch to launch, inside an
    operator, a compiled region or Python, or between the launch call's return and the kernel's start (up to a
    millisecond). Pauses, in which the host did something else, are another part, and so are first use and the
    allocator. It fires when the verdict is overhead-bound, or when this is a quarter of the
    window and the device is not the bottleneck: less is worth tuning, but does not hold the run back. "Up to" is all
    of that idle time: the device's own work stays.

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

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.compile import Compile
from analyzer.analyses.kernels import Kernels
from analyzer.analyses.launches import Launches
from analyzer.analyses.pace import Pace
from analyzer.analyses.traits import Traits
from analyzer.analyses.wait_cost import WaitCost
from analyzer.findings import (
    HOLDS,
    HOST_WORK,
    SEEN,
    bound,
    causes_of,
    finding,
    named,
    owners_of,
    part_of,
    share_of,
    spread,
)
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "overhead-bound"


def find(results: Results) -> Iterable[Finding]:
    ns, share = part_of(results, "dispatch")
    judged = bound(results)
    named_by_verdict = judged == "overhead-bound"
    if not named_by_verdict and (judged == "compute-bound" or share < HOLDS):
        return
    yield finding(
        results,
        NAME,
        Severity.ERROR if named_by_verdict else Severity.WARNING,
        f"the device waits for dispatch {units.share(share)} of the time",
        (
            _pace(results),
            f"waits for: {named(owners_of(causes_of(results, HOST_WORK)))}",
            _place(results, ns),
        ),
        _advice(results),
        ns,
    )


def _place(results: Results, up_to: int) -> str | None:
    for cause in causes_of(results, ("python",)):
        if cause.place and cause.gaps_ns >= up_to / 4:
            return f"Python: {cause.place.frame}, in {cause.place.count:,} of the longest gaps"
    return None


def _pace(results: Results) -> str | None:
    """How fast the host launches against how fast the device runs what was launched."""
    launches, pace = results[Launches].launches, results[Pace].pace
    if pace.device_work is None:
        return None
    per_step = "" if launches.per_step is None else f", {units.count(launches.per_step)} a step"
    text = f"{plural(launches.count, 'launch', 'launches')}{per_step}; device work takes {spread(pace.device_work)}"
    if pace.between_launches is None:
        return text
    return f"{text}; the host needs {spread(pace.between_launches)} from one launch to the next"


def _advice(results: Results) -> str:
    traits = results[Traits].traits
    if results[Launches].launches.graph_launches:
        return (
            "Part of the run already replays graphs: bring the rest (listed above) into the graph, or prepare "
            "it while the graph runs."
        )
    if results[Compile].compile.regions:
        return (
            'Compiled, but every kernel is launched by itself: torch.compile(..., mode="reduce-overhead") replays '
            "a CUDA graph (static shapes; inputs are copied in), or raise the batch."
        )
    if traits.training:
        return (
            "torch.compile the model to fuse point-wise chains, use the optimizer's fused=True, and raise the "
            'batch; with static shapes mode="reduce-overhead" replays CUDA graphs for forward and backward.'
        )
    if share_of(results, results[WaitCost].wait_cost.idle_ns) >= SEEN and traits.reads_values:
        return (
            "Remove the blocking waits first (see blocking-sync): a CUDA graph cannot be captured across them. Then "
            'torch.compile(model, mode="reduce-overhead"), or a larger batch.'
        )
    several = len({k.name for k in results[Kernels].kernels}) > 1
    return (
        "Capture the step in a CUDA graph (torch.cuda.graph, then g.replay()) or let "
        f'torch.compile(model, mode="reduce-overhead") do it{" and fuse the small kernels" if several else ""}; '
        "a larger batch gives each launch more work."
    )
