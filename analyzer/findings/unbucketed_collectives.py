"""Many collectives of small messages, each exposed: the start of each costs more than what it moves.

What it means
    A collective takes ten microseconds or more whatever its size, and a launch on every rank. A gradient, a metric
    or a parameter at a time adds up to milliseconds that one large message would not take.

How it is computed
    Collectives of less than 1 MiB, as the profiler recorded their sizes, at least sixteen a step, or fifty without
    steps. Their cost is the device time in which nothing but such a collective ran, and the idle time that their late
    launches left. It fires from a twentieth of the window on: small buckets that hide behind backward cost nothing,
    however many they are. "Up to" adds both; waiting for another rank is part of it, which one rank cannot tell.

What to try
    DDP's buckets (bucket_cap_mb=25, the default; not 1), one all_reduce of a flattened tensor for own gradients:
        flat = torch.cat([p.grad.flatten() for p in params]); dist.all_reduce(flat)
    Several small results: `dist.all_reduce_coalesced`, or stack the metrics and reduce them every N steps.

When it is wrong
    Where a late rank is what they wait for, fewer collectives wait as long: compare the ranks. Tensor parallelism
    needs each result before it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.small_collectives import SmallCollectives
from analyzer.analyses.steps import Steps
from analyzer.findings import WORTH, finding, grade, share_of, spread
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "unbucketed-collectives"
PER_STEP, AT_ALL = 16, 50
LISTED = 3


def find(results: Results) -> Iterable[Finding]:
    small, steps = results[SmallCollectives].small_collectives, len(results[Steps].steps)
    cost = small.exposed_ns + small.idle_ns
    share = share_of(results, cost)
    if share < WORTH or small.count < (PER_STEP * steps if steps else AT_ALL):
        return
    per_step = f", {units.count(round(small.count / steps, 1))} a step" if steps else ""
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"{plural(small.count, 'collective')} of less than {units.size(small.below_bytes)}{per_step}",
        (
            *(
                f"{m.runs.count:,} × {m.name}: {spread(m.runs)}, usually {units.size(m.bytes_median)}"
                for m in small.names[:LISTED]
            ),
            f"nothing else ran for {units.duration(small.exposed_ns)} of it; the device waited "
            f"{units.duration(small.idle_ns)} for their launches",
        ),
        "Send fewer, larger messages: DDP's default buckets, one all_reduce of a flattened tensor, metrics every N "
        "steps. Compare the ranks too: a late one looks the same from here.",
        cost,
    )
