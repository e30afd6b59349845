"""Copies between host and device pass through pageable memory.

What it means
    The device can only read pinned host memory by itself. A pageable tensor is first copied into a staging buffer
    by the CPU, piece by piece; the call blocks, nothing overlaps, and the rate is a fraction of the link's.

How it is computed
    Copies that the profiler marks as Pageable. Their cost is the device time in which nothing but such a
    copy ran, and the idle time while the host took part in one. "Up to" adds both: pinned and asynchronous,
    a copy can hide behind kernels entirely. It fires from a hundredth of the window on.

What to try
    Pin once, copy without blocking:
        DataLoader(..., pin_memory=True)
        x = x.to("cuda", non_blocking=True)
    Results: out = torch.empty(shape, pin_memory=True); out.copy_(y, non_blocking=True), then one synchronize
    before it is read. Constants: create them on the device, torch.zeros(n, device="cuda").

When it is wrong
    Pinning costs time itself: pin buffers that are used again, not each tensor anew. AMD's traces do not say which
    copies are pageable, so that it stays silent there.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.copies import Copies
from analyzer.analyses.exposed_copies import ExposedCopies
from analyzer.findings import SEEN, causes_of, copied, finding, grade, share_of
from analyzer.report.findings import Finding
from analyzer.report.results import Results

NAME = "pageable-copy"


def find(results: Results) -> Iterable[Finding]:
    kinds = [c for c in results[Copies].copies if "pageable" in c.kind.lower()]
    if not kinds:
        return
    alone = results[ExposedCopies].exposed_copies.pageable_ns
    idle = sum(cause.ns for cause in causes_of(results, ("pageable_copy",)))
    share = share_of(results, alone + idle)
    if share < SEEN:
        return
    yield finding(
        results,
        NAME,
        grade(share),
        "copies pass through pageable memory, and block the host",
        (
            *(f"{copied(c)}{f', by {c.operators[0].name}' if c.operators else ''}" for c in kinds[:3]),
            f"nothing else ran on the device for {units.duration(alone)} of it; it was idle for {units.duration(idle)}"
            " more",
        ),
        "pin_memory=True in the DataLoader (or tensor.pin_memory() once), then .to(device, non_blocking=True); results "
        "into a pinned buffer.",
        alone + idle,
    )
