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

import re
from collections.abc import Iterable, Mapping

from analyzer import units
from analyzer.analyses.kernels import Kernel, Kernels
from analyzer.findings import WORTH, finding, grade, host_bound, share_of, take
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity

NAME = "fp32-gemm-on-cuda-cores"
#: Tensor cores take TF32 from this compute capability on.
AMPERE = 8
GAIN = 7 / 8
#: Products with a vector are bound by memory: tensor cores would not speed them up.
_VECTOR = re.compile(r"(?i)gemv|dot_kernel|reduce|gemmk1|gemmSN")
_NEW = ("ampere", "sm80", "sm86", "sm89", "sm90", "sm100", "cutlass_80", "cutlass3x_sm90")


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    if host_bound(results):
        return
    capable = any(_major(d.get("computeMajor")) >= AMPERE for d in chains.trace.header.devices)
    mine = [
        k
        for k in take(results, Kernels).rows
        if k.decoded.kind in ("gemm", "convolution")
        and k.decoded.precision == "fp32"
        and k.decoded.tensor_cores is False
        if (capable or any(mark in k.name for mark in _NEW)) and not _VECTOR.search(k.name)
    ]
    total = sum(k.total_ns for k in mine)
    share = share_of(chains, total)
    if share < WORTH:
        return
    yield finding(
        NAME,
        grade(share, Severity.WARNING),
        f"fp32 products on CUDA cores take {units.share(share)} of the window",
        (_line(k) for k in mine[:3]),
        'torch.set_float32_matmul_precision("high") lets them use TF32 on tensor cores; bf16 under torch.autocast is '
        "faster still. Check the accuracy that you need.",
        int(total * GAIN),
        chains,
    )


def _major(value: object) -> int:
    return value if isinstance(value, int) else 0


def _line(k: Kernel) -> str:
    tile = f", tile {k.decoded.tile}" if k.decoded.tile else ""
    return (
        f"{units.short_name(k.name, 60)}: {k.calls:,} calls, total {units.duration(k.total_ns)}, median "
        f"{units.duration(k.median_ns)}, max {units.duration(k.max_ns)}{tile}"
    )
