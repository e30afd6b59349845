"""One kernel takes most of the device's time.

What it means
    Whatever is done elsewhere, the run is about as fast as this kernel. A matrix product or fused attention on tensor
    cores is what one hopes to see there; a softmax, a copy or point-wise kernel is not.

How it is computed
    A kernel with two fifths of the time of all device work (with less, the next ones together weigh more) and a
    quarter of the window, other than a collective. It is a warning where its kind can be fused or avoided, and a note
    where it is a product or attention on tensor cores, or unknown. It stays silent where the host sets the pace,
    and where unfused attention or `fp32-gemm-on-cuda-cores` explains it. Three point-wise kernels or more
    that together take as much are told as one. No "up to": what a better kernel would take is not in the trace.

What to try
    Hold its time against its arithmetic: FLOPs / time / peak. Products: bf16 or fp8, sizes that are multiples of
    128, torch.compile(mode="max-autotune"). Point-wise and reductions: fusion with torch.compile. For single kernels:
        ncu --set full -k <name> python run.py

When it is wrong
    One name may stand for many shapes. In a micro-benchmark one kernel is all there is.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.attention import Attention
from analyzer.analyses.kernels import Kernel, Kernels
from analyzer.analyses.kinds import Kinds
from analyzer.findings import HOLDS, finding, host_bound, named, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "dominant-kernel"
SHARE = 0.4
POINTWISE = ("elementwise", "copy")
#: Two kernels may be one operator and its cast; fusion pays from a chain on.
SEVERAL = 3


def find(results: Results) -> Iterable[Finding]:
    rows = results[Kernels].kernels
    if host_bound(results):
        return
    yield from _pointwise(results)
    if not rows or rows[0].category != "kernel" or rows[0].kind == "communication" or rows[0].share < SHARE:
        return
    k = rows[0]
    written_out = sum(a.device_ns for a in results[Attention].attention if a.backend in ("unfused", "math"))
    if share_of(results, k.total_ns) < HOLDS or written_out >= k.total_ns:
        return
    if k.precision == "fp32" and k.tensor_cores is False:
        return  # `fp32-gemm-on-cuda-cores` says so, and what to do
    expected = k.kind in ("gemm", "convolution", "attention") and k.tensor_cores is not False
    yield finding(
        results,
        NAME,
        Severity.NOTE if expected or k.kind == "other" else Severity.WARNING,
        f"one kernel takes {units.share(k.share)} of the device's time",
        (
            f"{units.short_name(k.name, 90)}: {_what(k)}",
            f"{k.calls:,} calls, total {units.duration(k.total_ns)}, median {units.duration(k.median_ns)}, max "
            f"{units.duration(k.max_ns)}",
        ),
        "This is the run's own work: it gets faster with another number format or shape, or not at all."
        if expected
        else "See what launches it, and whether that work is needed."
        if k.kind == "other"
        else "Fuse it with its neighbours (torch.compile), or replace the operator that launches it.",
    )


def _pointwise(results: Results) -> Iterable[Finding]:
    """Several point-wise kernels that together dominate, where each alone need not."""
    rows = results[Kernels].kernels
    mine = [k for k in rows if k.category == "kernel" and k.kind in POINTWISE and "triton" not in k.name]
    total = sum(k.total_ns for k in mine)
    everything = sum(k.total_ns for k in rows)
    written_out = any(a.backend in ("unfused", "math") for a in results[Attention].attention)
    if len(mine) < SEVERAL or written_out or share_of(results, total) < HOLDS or total < SHARE * everything:
        return
    yield finding(
        results,
        NAME,
        Severity.WARNING,
        f"point-wise kernels take {units.share(total / everything)} of the device's time",
        (
            f"{len(mine):,} different kernels, {sum(k.calls for k in mine):,} calls, total {units.duration(total)}",
            f"by operator: {named(_operators(results))}",
        ),
        "Each reads and writes memory for little arithmetic: torch.compile fuses neighbours into one pass.",
    )


def _operators(results: Results) -> list[tuple[str, int]]:
    """Operators that launched the most point-wise time."""
    total: dict[str, int] = {}
    for kind in results[Kinds].kinds:
        for operator in kind.operators if kind.kind in POINTWISE else ():
            total[operator.name] = total.get(operator.name, 0) + operator.ns
    return sorted(total.items(), key=lambda one: (-one[1], one[0]))[:4]


def _what(k: Kernel) -> str:
    said = [k.kind, k.precision or ""]
    if k.tensor_cores is not None:
        said.append("on tensor cores" if k.tensor_cores else "on CUDA cores")
    return " ".join(part for part in said if part)
