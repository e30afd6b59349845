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

from collections.abc import Iterable, Mapping

import numpy as np

from analyzer import units
from analyzer.findings import SEEN, finding, grade, share_of, spread
from analyzer.index import exposure
from analyzer.index.build import Call, Chains
from analyzer.index.vocabulary import matches
from analyzer.model import Finding, Result

NAME = "allocator-churn"
LEAST = 3
LATE = 0.25


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    host, window = chains.host, chains.window
    # A first call fills the cache and finds its workspace: `cold-start` counts that.
    cold = host.nearest(chains.threads.first_use > 0) >= 0
    rows = np.nonzero((chains.call == Call.ALLOCATE) & ~cold)[0]
    if window is None or not len(rows) or not chains.device.height:
        return
    frees = matches(chains.trace.names, r"(?i)free|unmap|release|unregister")[host.name[rows]]
    length = (host.end - host.start)[rows]
    late = host.start[rows] > window.start + window.duration // 2
    if frees.sum() < LEAST or (~frees).sum() < LEAST or length[late].sum() < LATE * length.sum():
        return
    ns = int(exposure.waited_during(chains, host.start[rows], host.end[rows]).sum())
    share = share_of(chains, ns)
    if share < SEEN:
        return
    holders = chains.holder[rows]
    named, counts = np.unique(host.name[holders[holders >= 0]], return_counts=True)
    operators = [f"{counts[i]:,} in {chains.trace.names[int(named[i])]}" for i in np.argsort(-counts)[:3]]
    yield finding(
        NAME,
        grade(share),
        "memory goes back and forth between the cache and the driver",
        (
            f"{(~frees).sum():,} allocating calls, {spread(length[~frees].tolist())}; {frees.sum():,} freeing calls, "
            f"{spread(length[frees].tolist())}",
            f"the device was idle for {units.duration(ns)} of it; {', '.join(operators)}",
        ),
        "Take torch.cuda.empty_cache() out of the loop; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against "
        "fragmentation; a smaller batch if memory is full.",
        ns,
        chains,
    )
