"""scaled_dot_product_attention runs its plain formula instead of a fused kernel.

What it means
    The math backend writes attention out: casts to fp32, two matrix products (fp32, on CUDA cores unless TF32 is
    allowed), mask, scale and softmax, each a pass over a matrix of sequence × sequence. It is the fallback
    when no fused backend accepts the call, and is often several times slower.

How it is computed
    Calls of aten::_scaled_dot_product_attention_math, with the device time launched inside, by operator. It
    fires from a twentieth of the window on, and as a note below, where the host sets the pace. "Up to" is their
    device time less their matrix products: a fused kernel does these too, and little else.

What to try
    Ask for fused backends only; the error (or the warning before it) says why none fits:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    Usual reasons: fp32 or fp64 inputs (flash and cuDNN need fp16 or bf16), an explicit attn_mask (use
    is_causal=True, or FlexAttention for other masks), a head size above 256 or no multiple of 8, a last dimension
    that is not contiguous, dropout in a backend that lacks it, an enclosing sdpa_kernel(SDPBackend.MATH).

When it is wrong
    For short sequences math can be as fast as a fused kernel. Reference runs choose it for its accuracy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

from analyzer import units
from analyzer.analyses.attention import Attention, AttentionCalls
from analyzer.findings import SEEN, WORTH, finding, grade, host_bound, share_of, take
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.index.kernel_names import decode
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

NAME = "sdpa-math-backend"
_OPERATOR = r"^aten::(?:_scaled_dot_product_attention_math|scaled_dot_product_attention)$"


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    calls = [a for a in take(results, AttentionCalls).rows if a.backend == "math"]
    total = sum(a.device_total_ns for a in calls)
    share = share_of(chains, total)
    if share < SEEN or (host_bound(results) and share < WORTH):
        return
    gain = total - sum(a.products_total_ns for a in calls)
    yield finding(
        NAME,
        Severity.NOTE if host_bound(results) else grade(share_of(chains, gain)),
        "attention runs the unfused math backend",
        (
            *(
                f"{plural(a.calls, 'call')} in {a.annotation or 'no annotation'}: {units.duration(a.device_ns)} on the "
                f"device each, {units.count(a.events)} kernels; {parts(a)}"
                for a in calls[:2]
            ),
            _reason(chains),
        ),
        "Allow fused backends only, and read the reason: with sdpa_kernel([SDPBackend.FLASH_ATTENTION, "
        "SDPBackend.EFFICIENT_ATTENTION]). Flash needs fp16 or bf16, no explicit mask (is_causal=True), and heads "
        "up to 256.",
        gain,
        chains,
    )


def parts(a: Attention, top: int = 6) -> str:
    """What the device time of the calls consists of, by operator, with shares."""
    return ", ".join(
        f"{name.removeprefix('aten::')} {units.share(ns / a.device_total_ns)}" for name, ns in a.parts[:top] if ns
    )


def _reason(chains: Chains) -> str | None:
    """Why no fused backend may have accepted it, as far as input types, masks or kernels tell."""
    rows = exposure.operators(chains, _OPERATOR).nonzero()[0]
    said = []
    types, mask = _inputs(chains, int(rows[0])) if len(rows) else ("", False)
    inside = (chains.host.nearest(exposure.operators(chains, _OPERATOR)) >= 0) & (chains.direct_device_ns > 0)
    work = chains.device.filter(chains.device["launch"].is_not_null())
    names = work["name"].filter(inside[work["launch"].to_numpy()]).unique()
    formats = {d.precision for text in chains.text(names) if (d := decode(text)).kind == "gemm"}
    if types == "double" or "fp64" in formats:
        said.append("inputs are fp64, which no fused backend takes")
    elif types == "float":
        said.append("inputs are fp32: flash and cuDNN take fp16 and bf16 only")
    elif formats == {"fp32"}:
        said.append("the products run in fp32: inputs are fp32, or were cast up (flash and cuDNN need fp16 or bf16)")
    if mask:
        said.append("an explicit attn_mask is passed: flash takes none")
    return "; ".join(said) or None


def _inputs(chains: Chains, row: int) -> tuple[str, bool]:
    """Type of the query and whether a mask tensor was passed; ("", False) without recorded shapes."""
    shapes = int(chains.host.frame["shapes"][row])
    if shapes < 0:
        return "", False
    try:
        dims, types = orjson.loads(chains.trace.names[shapes])
        mask = len(dims) > 3 and bool(dims[3]) and str(types[3]) not in ("", "Scalar")
        return str(types[0]), mask
    except (ValueError, TypeError, IndexError, KeyError):  # a stranger's own form
        return "", False
