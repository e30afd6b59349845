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

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.kernels import Kernel, Kernels
from analyzer.findings import finding, host_bound
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "occupancy-not-measured"
LARGE = 0.1
#: Tiles in registers and shared memory leave room for few warps: nothing that a reader should tune.
LOW = 0.25


def find(results: Results) -> Iterable[Finding]:
    if host_bound(results):
        return
    mine = [
        k
        for k in results[Kernels].kernels
        if k.category == "kernel"
        and k.kind != "communication"
        and k.occupancy_reported == 0
        and k.share >= LARGE
        and _fills(k)
    ]
    if not mine:
        return
    texts = units.short_names([k.name for k in mine[:3]], 40)
    listed = "; ".join(f"{texts[k.name]}{_theory(k)}" for k in mine[:3])
    yield finding(
        results,
        NAME,
        Severity.NOTE,
        f"a reported occupancy of 0% was not measured; {listed}",
        (),
        "A gap of the profiler's for driver launches: go by the theoretical figure.",
    )


def _fills(k: Kernel) -> bool:
    """More than a handful of blocks: a grid of one or two may truly round to nothing."""
    return k.grid is None or k.grid[0] * k.grid[1] * k.grid[2] >= 16


def _theory(k: Kernel) -> str:
    if k.occupancy_theoretical is None:
        return ""
    design = k.kind == "attention" or (k.kind == "gemm" and k.tensor_cores)
    low = ", low by design" if design and k.occupancy_theoretical <= LOW else ""
    return f": theoretical {units.share(k.occupancy_theoretical)}, limited by {k.limited_by}{low}"
