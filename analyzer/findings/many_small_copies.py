"""Many small copies cost more to launch than to move.

What it means
    A copy of a few KiB takes a microsecond or two on the device whatever its size, and a launch on the host. A
    hundred of them a step cost what one large one would not.

How it is computed
    Memory copies of less than 64 KiB (PCIe moves that in about 2 µs: below it the set-up is the cost), grouped by
    the operators that asked for them, at least ten a step, or fifty without steps: fewer are the usual scalars.
    Copies that other findings explain are left out: bias copies of addmm, clones, and reads of scalars, which
    cost a wait and not a copy. "Up to" is their device time and what the device waited for them: all that the host
    took from one small copy to the next (operators, launches, waits), which one gathered copy needs once; where other
    work lies between them, their launch calls. It fires from a hundredth of the window on.

What to try
    Gather first: torch.cat or torch.stack on the host, one .to("cuda"); torch._foreach_copy_ for lists of tensors. In
    DDP gradients are copied into buckets and back, and buffers broadcast, one tensor at a time:
        DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)

When it is wrong
    Copies on a stream of their own, behind a busy device, cost little. broadcast_buffers=False changes results
    where ranks must share running statistics.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.findings import finding, gatherable_copies, grade, share_of, spread, within
from analyzer.report.findings import Finding
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "many-small-copies"


def find(results: Results) -> Iterable[Finding]:
    small = gatherable_copies(results)
    if small is None:
        return
    total = small.device_ns + small.waited_ns
    places = [(within(p.path), p) for p in small.places[:3]]
    yield finding(
        results,
        NAME,
        grade(share_of(results, total)),
        f"{plural(small.count, 'copy', 'copies')} of less than {units.size(small.below_bytes)}",
        (
            f"{p.copies.count:,} in {place}: {spread(p.copies)}, median {units.size(p.bytes_median)}"
            for place, p in places
        ),
        _advice([place for place, _ in places]),
        total,
    )


def _advice(places: list[str]) -> str:
    said = []
    if any("copy_bucket" in p or "reducer" in p for p in places):
        said.append("DistributedDataParallel(..., gradient_as_bucket_view=True) leaves the gradients in their buckets")
    if any("DistributedDataParallel.forward" in p for p in places):
        said.append("broadcast_buffers=False, where ranks need no common statistics, saves the copies of buffers")
    if not said:
        said.append("gather before copying: torch.cat, then one .to(device); torch._foreach_copy_ for lists of tensors")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."
