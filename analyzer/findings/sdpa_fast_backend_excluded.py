"""Attention could not run its fastest kernels: what it was called with rules them out.

What it means
    scaled_dot_product_attention picks a backend by its arguments. FlashAttention and cuDNN's attention take fp16 and
    bf16 only; FlashAttention takes no mask tensor, and heads of one size up to 256. What they refuse runs
    in the memory-efficient kernel, or written out (`math`), which are slower, several times in fp32.

How it is computed
    Calls that ran the efficient or the math backend although their arguments, or their kernels' number format, rule
    flash out. It is told where these calls take a hundredth of the window, and as a warning for fp32 or fp64 where
    they take a quarter of it and the host does not set the pace. Calls for which nothing rules flash out chose their
    backend on purpose, and are left out. No "up to": what another kernel would take is not in the trace.

What to try
        with torch.autocast("cuda", dtype=torch.bfloat16): ...     # or q, k, v in bf16
        F.scaled_dot_product_attention(q, k, v, is_causal=True)    # in place of a causal attn_mask
    Other masks: torch.nn.attention.flex_attention, or cuDNN's backend, which takes masks in 16 bits. Why a backend
    refuses: with sdpa_kernel([SDPBackend.FLASH_ATTENTION]), the warning says it.

When it is wrong
    Where fp32 is needed, the efficient kernel is the right one. An older GPU (before compute capability 8.0) has no
    flash kernel whatever the arguments.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.attention_inputs import AttentionInputs, SdpaInputs
from analyzer.findings import HOLDS, SEEN, finding, host_bound, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "sdpa-fast-backend-excluded"
SLOWER = ("efficient", "math", "ck")
LARGEST_HEAD = 256
LISTED = 3


def find(results: Results) -> Iterable[Finding]:
    excluded = [(a, why) for a in results[SdpaInputs].attention_inputs if a.backend in SLOWER and (why := _why(a))]
    share = share_of(results, sum(a.device_ns for a, _ in excluded))
    if share < SEEN:
        return
    wide = share_of(results, sum(a.device_ns for a, _ in excluded if a.dtype in ("fp32", "fp64")))
    yield finding(
        results,
        NAME,
        Severity.WARNING if wide >= HOLDS and not host_bound(results) else Severity.NOTE,
        f"attention takes {units.share(share)} of the window, and its arguments rule FlashAttention out",
        (
            f"{plural(a.calls, 'call')} ran {a.backend}, {units.duration(a.device_ns)} on the device: {'; '.join(why)}"
            for a, why in excluded[:LISTED]
        ),
        _advice([a for a, _ in excluded]),
    )


def _why(a: AttentionInputs) -> list[str]:
    """What rules flash out; empty: nothing that was recorded."""
    why = []
    if a.dtype in ("fp32", "fp64"):
        why.append(f"inputs are {a.dtype}: flash and cuDNN take fp16 and bf16 only")
    if a.mask:
        why.append("a mask tensor is passed, which flash does not take")
    if (a.head_size or 0) > LARGEST_HEAD:
        why.append(f"heads of {a.head_size}: flash goes up to {LARGEST_HEAD}")
    if a.head_size and a.value_head_size and a.head_size != a.value_head_size:
        why.append(f"query heads of {a.head_size}, value heads of {a.value_head_size}: flash wants one size")
    return why


def _advice(excluded: list[AttentionInputs]) -> str:
    said = []
    if any(a.dtype in ("fp32", "fp64") for a in excluded):
        said.append("run attention in bf16 or fp16 (torch.autocast), if the accuracy allows")
    if any(a.mask for a in excluded):
        said.append("pass is_causal=True in place of a causal mask; other masks: FlexAttention")
    if not said:
        said.append("pad or split the heads to one size up to 256")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."
