"""A reported occupancy of 0% is a gap in the measurement.

What it means
    The profiler estimates occupancy from launches that it sees through the runtime API. Kernels launched through the
    driver (cuLaunchKernelEx: cuBLAS, cuDNN on Hopper), or with more shared memory than it knows of, get 0%.

How it is computed
    Kernels with a reported occupancy of 0 that ran all the same and take a tenth of the device's time, with
    the theoretical figure beside it where the trace has registers, shared memory and block. A note without gain.

What to try
    Go by the theoretical figure, or measure with Nsight Compute: ncu --section Occupancy.

When it is wrong
    Figures below half a per cent are written as 0 as well: a grid of one block on a large device is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analyzer import units
from analyzer.analyses.kernels import Kernel, Kernels
from analyzer.events.schema import Cat
from analyzer.findings import finding, host_bound, take
from analyzer.findings.low_occupancy_by_design import LOW
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity

NAME = "occupancy-not-measured"
LARGE = 0.1


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    if host_bound(results):
        return
    mine = [
        k
        for k in take(results, Kernels).rows
        if k.cat == Cat.KERNEL
        and k.decoded.kind != "communication"
        and k.reported == 0
        and k.share >= LARGE
        and _fills(k)
    ]
    if not mine:
        return
    listed = "; ".join(f"{units.short_name(k.name, 40)}{_theory(k)}" for k in mine[:3])
    yield finding(
        NAME,
        Severity.NOTE,
        f"a reported occupancy of 0% was not measured; {listed}",
        (),
        "A gap of the profiler's for driver launches: go by the theoretical figure.",
        None,
        chains,
    )


def _fills(k: Kernel) -> bool:
    """More than a handful of blocks: a grid of one or two may truly round to nothing."""
    return k.grid is None or k.grid[0] * k.grid[1] * k.grid[2] >= 16


def _theory(k: Kernel) -> str:
    if k.occupancy is None:
        return ""
    design = k.decoded.kind == "attention" or (k.decoded.kind == "gemm" and k.decoded.tensor_cores)
    low = ", low by design" if design and k.occupancy.share <= LOW else ""
    return f": theoretical {units.share(k.occupancy.share)}, limited by {k.occupancy.limited_by}{low}"
