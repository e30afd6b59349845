"""Matrix products or convolutions in fp32 run on CUDA cores, with the tensor cores idle.

What it means
    From Ampere on, tensor cores compute fp32 products as TF32 (10 bits of mantissa) at about eight times the rate.
    PyTorch allows that for convolutions, but not for matrix products unless asked.

How it is computed
    Kernels whose names say fp32 without tensor cores (sgemm, simt, f32f32_f32f32), on a device of compute
    capability 8.0 or above, or where the name itself says so. It fires where they take a twentieth of the window
    and the host does not set the pace. "Up to" is seven eighths of their time: the vendor's rates are 8 to 1
    (A100: 156 to 19.5 TFLOPS; H100: 495 to 67).

What to try
        torch.set_float32_matmul_precision("high")        # TF32 for matrix products
        torch.backends.cudnn.allow_tf32 = True            # and for convolutions
    or, faster still, bf16: with torch.autocast("cuda", dtype=torch.bfloat16): ...

When it is wrong
    Where fp32's precision is needed (solvers, some losses). Small products are bound by memory or launches, and gain
    less than the rates promise.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.kernels import Kernel, Kernels
from analyzer.analyses.products import Products
from analyzer.findings import WORTH, finding, grade, host_bound, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "fp32-gemm-on-cuda-cores"
GAIN = 7 / 8


def find(results: Results) -> Iterable[Finding]:
    if host_bound(results):
        return
    mine = [
        p
        for p in results[Products].products
        if p.precision == "fp32" and p.tensor_cores is False and p.could_use_tensor_cores
    ]
    total = sum(p.device_ns for p in mine)
    share = share_of(results, total)
    if share < WORTH:
        return
    names = {name for p in mine for name in p.kernels}
    kernels = [k for k in results[Kernels].kernels if k.category == "kernel" and k.name in names][:3]
    texts = units.short_names([k.name for k in kernels], 60)
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"fp32 products on CUDA cores take {units.share(share)} of the window",
        (_line(k, texts[k.name]) for k in kernels),
        'torch.set_float32_matmul_precision("high") lets them use TF32 on tensor cores; bf16 under torch.autocast is '
        "faster still. Check the accuracy that you need.",
        int(total * GAIN),
    )


def _line(k: Kernel, text: str) -> str:
    tile = f", tile {k.tile}" if k.tile else ""
    return (
        f"{text}: {k.calls:,} calls, total {units.duration(k.total_ns)}, median "
        f"{units.duration(k.median_ns)}, max {units.duration(k.max_ns)}{tile}"
    )
