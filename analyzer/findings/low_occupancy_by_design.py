"""Kernels that run at low occupancy on purpose.

What it means
    Matrix products and fused attention on tensor cores keep their tiles in registers and shared memory, so that few
    warps fit on a multiprocessor. They hide latency by pipelines inside the kernel, not by more warps. A
    low figure is how they are meant to run; raising it would slow them down.

How it is computed
    Theoretical occupancy from registers, shared memory and block size (NVIDIA's formula), at most a quarter, for
    fused attention and for matrix products on tensor cores that take a tenth of the device's time. A note, to keep
    a reader from tuning the wrong thing; it has no gain. Where the profiler reported 0%, `occupancy-not-measured`
    says the same.

What to try
    Nothing for the occupancy. Whether such a kernel is fast is told by its time against the arithmetic it does.

When it is wrong
    A hand-written kernel with tensor cores may be limited by accident: then the limiter named is where to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analyzer import units
from analyzer.analyses.kernels import Kernels
from analyzer.findings import finding, host_bound, take
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity

NAME = "low-occupancy-by-design"
LOW = 0.25
#: Of the device's time: a smaller kernel is not what anyone would look at.
LARGE = 0.1


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    if host_bound(results):
        return
    mine = [
        k
        for k in take(results, Kernels).rows
        if k.share >= LARGE and (k.decoded.kind == "attention" or (k.decoded.kind == "gemm" and k.decoded.tensor_cores))
        if k.occupancy is not None and k.occupancy.share <= LOW and k.reported != 0
    ]
    if not mine:
        return
    listed = "; ".join(
        f"{units.short_name(k.name, 40)} {units.share(k.occupancy.share)}, limited by {k.occupancy.limited_by}"
        for k in mine[:3]
        if k.occupancy
    )
    yield finding(
        NAME,
        Severity.NOTE,
        f"low occupancy is by design: {listed}",
        (),
        "Nothing to tune: tiles live in registers.",
        None,
        chains,
    )
