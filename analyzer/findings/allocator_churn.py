"""Device memory is allocated from and given back to the driver while the run goes on.

What it means
    PyTorch keeps freed memory in its cache, so that a steady run never calls cudaMalloc. Calls in the middle mean
    that the cache is emptied or fragmented, or memory is nearly full: cudaFree waits for the device, and
    cudaMalloc takes up to milliseconds.

How it is computed
    Host calls that allocate and that free, at least three of each outside of first calls, a quarter of their time
    in the second half of the window: a first fill of the cache lies at the start. "Up to" is the time inside them
    that the device waited for a late launch; it fires from a hundredth of the window on.

What to try
    Remove torch.cuda.empty_cache() from the loop. Fragmentation:
        PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
    Nearly full memory: a smaller batch, activation checkpointing, set_to_none=True in zero_grad. Pad to a few
    sizes, so that blocks can be used again.

When it is wrong
    Libraries that manage memory themselves (communication, CUDA graphs' private pools) call the driver too. A run
    of a few steps has no steady state yet.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.allocations import Allocations
from analyzer.findings import SEEN, finding, grade, in_phase, share_of, spread
from analyzer.report.findings import Finding
from analyzer.report.results import Results

NAME = "allocator-churn"
LEAST = 3
LATE = 0.25


def find(results: Results) -> Iterable[Finding]:
    found = results[Allocations].allocations
    allocating, freeing = found.allocating, found.freeing
    if allocating is None or freeing is None or min(allocating.count, freeing.count) < LEAST:
        return
    share = share_of(results, found.exposed_ns)
    if (found.late_share or 0) < LATE or share < SEEN:
        return
    operators = [f"{o.calls:,} in {o.name}" for o in found.operators[:3]]
    yield finding(
        results,
        NAME,
        grade(share),
        f"memory goes back and forth between the cache and the driver{in_phase(results, ('allocator',))}",
        (
            f"{allocating.count:,} allocating calls, {spread(allocating)}; {freeing.count:,} freeing calls, "
            f"{spread(freeing)}",
            f"the device was idle for {units.duration(found.exposed_ns)} of it; {', '.join(operators)}",
        ),
        "Take torch.cuda.empty_cache() out of the loop; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against "
        "fragmentation; a smaller batch if memory is full.",
        found.exposed_ns,
    )
