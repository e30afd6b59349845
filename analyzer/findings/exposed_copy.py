"""Copies between host and device run while nothing else does.

What it means
    The device waits for data from the host, or hands results back, and computes nothing meanwhile.

How it is computed
    Device time in which only copies to or from the host ran, pinned or unmarked (pageable ones have a finding
    of their own). It fires from a tenth of the window on, as an error from a quarter or where the verdict is
    copy-bound; a shorter copy at the border of two steps is the usual. "Up to" is that time, less what the same
    copies would take if they alone filled the run: a copy that is longer than the compute beside it can hide only
    as much of itself as there is compute.

What to try
    Copy the next batch on a stream of its own while this one is computed:
        with torch.cuda.stream(copy_stream):
            nxt = batch.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(copy_stream)
    Send less: uint8 images, converted on the device; bf16; only what changed. Keep data on the device across steps.

When it is wrong
    If copies take longer than all compute the link is the limit, and overlap wins at most the compute's time.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.copies import Copies
from analyzer.analyses.exposed_copies import ExposedCopies
from analyzer.findings import HOLDS, bound, copied, finding, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "exposed-copy"
LEAST = 0.1


def find(results: Results) -> Iterable[Finding]:
    exposed = results[ExposedCopies].exposed_copies
    alone, rest = exposed.pinned_ns, exposed.beside_pinned_ns
    share = share_of(results, alone)
    if share < LEAST:
        return
    by_verdict = bound(results) == "copy-bound"
    kinds = [c for c in results[Copies].copies if any(mark in c.kind for mark in ("HtoD", "DtoH", "Host", "Pinned"))]
    yield finding(
        results,
        NAME,
        Severity.ERROR if by_verdict or share >= HOLDS else Severity.WARNING,
        f"the device does nothing but copy for {units.share(share)} of the window",
        (
            *(copied(c) for c in kinds[:3]),
            f"other work keeps the device busy for {units.duration(rest)}",
        ),
        "Copy the next batch on its own stream while this one is computed, and send fewer bytes (uint8 or bf16, "
        "converted on the device)."
        if rest >= alone
        else "The link is the limit: send fewer bytes (uint8 or bf16, converted on the device), or keep data on the "
        "device; overlap hides no more than the compute's own time.",
        min(alone, rest),
    )
