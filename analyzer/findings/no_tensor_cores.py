"""Matrix products run on CUDA cores, although this GPU has tensor cores for them.

What it means
    Tensor cores multiply matrices about eight times as fast as CUDA cores do, in the formats that they take: fp16 from
    Volta on, bf16 and TF32 from Ampere on. A product that misses them leaves most of the GPU unused.

How it is computed
    Kernels of matrix products and convolutions whose names say CUDA cores, in fp16 or bf16, or in fp32 on a GPU before
    Ampere, where only fp16 would reach the tensor cores (from Ampere on fp32 is `fp32-gemm-on-cuda-cores`). Products
    with vectors are bound by memory, and left out. It fires where they take a twentieth of the window and the host
    does not set the pace. "Up to" is seven eighths of their time, after the vendor's rates (V100: 125 to 15.7 TFLOPS).

What to try
    fp32 on Volta and Turing: mixed precision, with scaled gradients:
        scaler = torch.amp.GradScaler("cuda")
        with torch.autocast("cuda", dtype=torch.float16): loss = model(x)
    fp16 and bf16: all sizes (batch × sequence, hidden, vocabulary) multiples of 8: pad a vocabulary of 50,257 to
    50,304; tensors contiguous and aligned to 16 bytes.

When it is wrong
    Small products gain less than the rates promise. fp16 needs a check of the accuracy.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.products import Product, Products
from analyzer.findings import WORTH, finding, grade, host_bound, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "no-tensor-cores"
GAIN = 7 / 8


def find(results: Results) -> Iterable[Finding]:
    mine = [
        p for p in results[Products].products if p.tensor_cores is False and p.tensor_core_format not in (None, "tf32")
    ]
    total = sum(p.device_ns for p in mine)
    share = share_of(results, total)
    if share < WORTH or host_bound(results):
        return
    texts = units.short_names([p.kernels[0] for p in mine[:3]], 60)
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"{' and '.join(dict.fromkeys(str(p.precision) for p in mine))} products on CUDA cores take "
        f"{units.share(share)} of the window",
        (f"{p.events:,} × {p.precision}, {units.duration(p.device_ns)}: {texts[p.kernels[0]]}" for p in mine[:3]),
        _advice(mine),
        int(total * GAIN),
    )


def _advice(mine: list[Product]) -> str:
    said = []
    if any(p.precision != p.tensor_core_format for p in mine):
        said.append("this GPU's tensor cores take fp16: torch.autocast with torch.amp.GradScaler")
    if any(p.precision == p.tensor_core_format for p in mine):
        said.append("make all sizes multiples of 8, and tensors contiguous: odd sizes miss the tensor cores")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."
