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

from collections.abc import Iterable

from analyzer.analyses.attention import Attention
from analyzer.analyses.attention_cost import AttentionCost
from analyzer.findings import SEEN, WORTH, attended, finding, grade, host_bound, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "sdpa-math-backend"


def find(results: Results) -> Iterable[Finding]:
    calls = [a for a in results[Attention].attention if a.backend == "math"]
    share = share_of(results, sum(a.device_ns for a in calls))
    if share < SEEN or (host_bound(results) and share < WORTH):
        return
    gain = sum(a.beside_products_ns for a in calls)
    yield finding(
        results,
        NAME,
        Severity.NOTE if host_bound(results) else grade(share_of(results, gain)),
        "attention runs the unfused math backend",
        (
            *(attended(a, "kernels") for a in calls[:2]),
            _reason(results),
        ),
        "Allow fused backends only, and read the reason: with sdpa_kernel([SDPBackend.FLASH_ATTENTION, "
        "SDPBackend.EFFICIENT_ATTENTION]). Flash needs fp16 or bf16, no explicit mask (is_causal=True), and heads "
        "up to 256.",
        gain,
    )


def _reason(results: Results) -> str | None:
    """Why no fused backend may have accepted it, as far as input types, masks or kernels tell."""
    inputs = results[AttentionCost].attention_cost.inputs
    if inputs is None:
        return None
    said = []
    if inputs.dtype == "double" or "fp64" in inputs.products:
        said.append("inputs are fp64, which no fused backend takes")
    elif inputs.dtype == "float":
        said.append("inputs are fp32: flash and cuDNN take fp16 and bf16 only")
    elif inputs.products == ("fp32",):
        said.append("the products run in fp32: inputs are fp32, or were cast up (flash and cuDNN need fp16 or bf16)")
    if inputs.mask:
        said.append("an explicit attn_mask is passed: flash takes none")
    return "; ".join(said) or None
