"""Most launches are point-wise kernels too short for the host to keep up with.

What it means
    An addition, a cast or a small reduction takes the device a microsecond, and the host many times that. Each is
    a launch of its own, though neighbours could be one kernel.

How it is computed
    Kernels that fusion can join (element-wise, copies by kernel, reductions, softmax, normalisation, optimizer
    steps) and that are shorter than this trace's median launch call: below that even a perfect host thread
    cannot feed the device. It fires where they are half of all launches, at least a hundred (fewer are not
    "many"), and dispatch leaves the device idle for a quarter of its span. "Up to" is the idle time that
    such kernels ended. Where the device is busy, their launches are hidden behind it, and this stays silent.

What to try
    torch.compile(model) joins point-wise chains and reductions into single Triton kernels. By hand:
    torch.addcmul for mul + add, F.layer_norm in place of its formula, torch._foreach_* for lists of tensors,
        torch.optim.AdamW(model.parameters(), fused=True)

When it is wrong
    Kernels that a dependency keeps apart (a loop over time steps) do not fuse; a CUDA graph still removes their
    launches. Idle time is the launch path's, not only these kernels': `overhead-bound` counts the same time.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.launches import Launches
from analyzer.analyses.small_kernels import SmallKernels
from analyzer.findings import HOLDS, LAUNCH_PATH, causes_of, finding, grade, named, optimizer_loops, share_of, words
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "tiny-kernels"
MOST, MANY = 0.5, 100


def find(results: Results) -> Iterable[Finding]:
    small, launches = results[SmallKernels].small_kernels, results[Launches].launches.count
    kernels = small.kernels
    if kernels is None or kernels.count < max(MANY, MOST * launches):
        return
    if share_of(results, sum(cause.gaps_ns for cause in causes_of(results, LAUNCH_PATH))) < HOLDS:
        return
    loops = optimizer_loops(results)
    counted = ", ".join(f"{o.count:,} {o.name}" for o in small.operators[:4])
    yield finding(
        results,
        NAME,
        grade(share_of(results, small.idle_ns), Severity.WARNING),
        f"{kernels.count:,} of {launches:,} launches are point-wise kernels shorter than their launch call",
        (
            f"kernel median {units.duration(kernels.median_ns)}, launch call median "
            f"{units.duration(small.launch_call_ns_median)}; by operator: {counted}",
            f"device time by kind: {named((kind.kind, kind.ns) for kind in small.kinds)}",
        ),
        "torch.compile joins point-wise chains into one kernel; "
        f"{'for the optimizer fused=True; ' if loops else ''}a {words(results).graph} where they cannot be joined.",
        small.idle_ns,
    )
