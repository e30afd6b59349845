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

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.kernels import Kernel, Kernels
from analyzer.findings import finding, host_bound
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "low-occupancy-by-design"
LOW = 0.25
#: Of the device's time: a smaller kernel is not what anyone would look at.
LARGE = 0.1


def find(results: Results) -> Iterable[Finding]:
    if host_bound(results):
        return
    mine = [k for k in results[Kernels].kernels if _by_design(k)][:3]
    texts = units.short_names([k.name for k in mine], 40)
    listed = "; ".join(_line(k, texts[k.name]) for k in mine)
    if not listed:
        return
    yield finding(
        results,
        NAME,
        Severity.NOTE,
        f"low occupancy is by design: {listed}",
        (),
        "Nothing to tune: tiles live in registers.",
    )


def _by_design(k: Kernel) -> bool:
    tiled = k.kind == "attention" or (k.kind == "gemm" and bool(k.tensor_cores))
    low = k.occupancy_theoretical is not None and k.occupancy_theoretical <= LOW
    return k.share >= LARGE and tiled and low and k.occupancy_reported != 0


def _line(k: Kernel, text: str) -> str:
    return f"{text} {units.share(k.occupancy_theoretical)}, limited by {k.limited_by}"
