"""The device waits for the host to dispatch work.

What it means
    The device finishes each kernel before the host has prepared the next one. Time goes to Python, the
    dispatcher, shape checks, allocation and the launch call, not to arithmetic. A faster GPU changes nothing.

How it is computed
    Part `dispatch` of the window: idle time of the device in which the host went from launch to launch, inside an
    operator, a compiled region or Python, or between the launch call's return and the kernel's start (up to a
    millisecond). Pauses, in which the host did something else, are another part, and so are first use and the
    allocator. It fires when the verdict is overhead-bound, or when this is a quarter of the
    window and the device is not the bottleneck: less is worth tuning, but does not hold the run back. "Up to" is that
    idle time, less what a finding with a remedy of its own claims of it (an optimizer's loop, many small copies).

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

from collections.abc import Iterable, Iterator

from analyzer import units
from analyzer.analyses.compile import Compile
from analyzer.analyses.kernels import Kernels
from analyzer.analyses.launches import Launches
from analyzer.analyses.optimizers import Optimizers
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
    gatherable_copies,
    in_phase,
    named,
    optimizer_loops,
    owners_of,
    part_of,
    repeated_calls,
    share_of,
    spread,
    words,
)
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "overhead-bound"
#: One launch in ten followed by a wait: the host never runs ahead, and nothing can be captured.
WAITS = 0.1
#: Launches of a fused optimizer's step, at most: a kernel for some dozens of tensors each.
FUSED = 8
#: Of the window: less in compiled regions, and the run is eager.
COMPILED = 0.1


def find(results: Results) -> Iterable[Finding]:
    ns, share = part_of(results, "dispatch")
    judged = bound(results)
    named_by_verdict = judged == "overhead-bound"
    if not named_by_verdict and (judged == "compute-bound" or share < HOLDS):
        return
    theirs = list(_claimed(results))
    yield finding(
        results,
        NAME,
        Severity.ERROR if named_by_verdict else Severity.WARNING,
        f"the device waits for dispatch {units.share(share)} of the time{in_phase(results, HOST_WORK)}",
        (
            _pace(results),
            f"waits for: {named(owners_of(causes_of(results, HOST_WORK)))}",
            _place(results, ns),
            *(f"{units.duration(mine)} of it is told under {name}, and not counted here" for name, mine in theirs),
        ),
        _advice(results),
        max(0, ns - sum(mine for _, mine in theirs)),
    )


def _claimed(results: Results) -> Iterator[tuple[str, int]]:
    """Findings that claim part of the same idle time with a remedy of their own, and how much."""
    if loops := sum(o.idle_ns for o in optimizer_loops(results)):
        yield "optimizer-loop", loops
    repeated = sum(r.spare_ns for r in repeated_calls(results))
    if share_of(results, repeated) >= SEEN:
        yield "repeated-small-calls", repeated
    small = gatherable_copies(results)
    if small is not None and small.dispatch_ns:
        yield "many-small-copies", small.dispatch_ns


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
    traits, own = results[Traits].traits, words(results)
    waits, launches = results[WaitCost].wait_cost.followed, results[Launches].launches.count
    if waits >= WAITS * launches:
        return (
            f"First stop waiting for the device ({plural(waits, 'wait')}, {plural(launches, 'launch', 'launches')}): "
            "nothing is launched ahead while the host waits. Then launch less: larger pieces, torch.compile."
        )
    if results[Launches].launches.graph_launches:
        return (
            "Part of the run already replays graphs: bring the rest (listed above) into the graph, or prepare "
            "it while the graph runs."
        )
    if _compiled(results):
        return (
            'Compiled, but every kernel is launched by itself: torch.compile(..., mode="reduce-overhead") replays '
            f"a {own.graph} (static shapes; inputs are copied in), or raise the batch."
        )
    if traits.training:
        # A fused optimizer launches a kernel or two for many tensors.
        several = any(o.launches_median > FUSED for o in results[Optimizers].optimizers if ".step#" in o.name)
        fused = " use the optimizer's fused=True," if several else ""
        return (
            f"torch.compile the model to fuse point-wise chains,{fused} and raise the batch; with static shapes "
            f'mode="reduce-overhead" replays {own.graph}s for forward and backward.'
        )
    if share_of(results, results[WaitCost].wait_cost.idle_ns) >= SEEN and traits.reads_values:
        return (
            f"Remove the blocking waits first (see blocking-sync): a {own.graph} cannot be captured across them. Then "
            'torch.compile(model, mode="reduce-overhead"), or a larger batch.'
        )
    several = len({k.name for k in results[Kernels].kernels}) > 1
    return (
        f"Capture the step in a {own.graph}{own.how} or let "
        f'torch.compile(model, mode="reduce-overhead") do it{" and fuse the small kernels" if several else ""}; '
        "a larger batch gives each launch more work."
    )


def _compiled(results: Results) -> bool:
    """Whether compiled code is a part of the run worth speaking of, and not one function of many."""
    outermost = [r for r in results[Compile].compile.regions if r.parent is None]
    return share_of(results, sum(r.calls * r.cpu_ns_median for r in outermost)) >= COMPILED
