"""Attention is written out by hand: product, softmax, product, each a pass over a large matrix.

What it means
    The matrix of scores (sequence × sequence) is written to memory and read again by scale, mask, softmax and the
    second product. A fused kernel keeps it on the chip: its time is that of the two products, its memory linear.

How it is computed
    A softmax between two batched matrix products among the children of one operator, annotation or module, with the
    device time launched from the first to the second, by operator. It fires from a hundredth of the window
    on; where the host sets the pace from a twentieth, as a note. "Up to" is that time less its matrix products:
    a fused kernel does these too, and little else.

What to try
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    (Hugging Face: from_pretrained(..., attn_implementation="sdpa" or "flash_attention_2").) Masks or biases
    that it lacks: torch.nn.attention.flex_attention, compiled. To pin a backend and hear why it is refused:
        with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION): ...

When it is wrong
    A model that returns its attention weights needs the matrix. A softmax between two products may be something
    else (a mixture, a router); then the sequence lengths give it away.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.analyses.attention import Attention
from analyzer.findings import SEEN, WORTH, attended, finding, grade, host_bound, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "unfused-attention"


def find(results: Results) -> Iterable[Finding]:
    calls = [a for a in results[Attention].attention if a.backend == "unfused"]
    gain = sum(a.beside_products_ns for a in calls)
    share = share_of(results, gain)
    by_host = host_bound(results)
    if share < (WORTH if by_host else SEEN):
        return
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING if by_host else Severity.ERROR),
        "attention is written out by hand",
        (attended(a, "events") for a in calls[:2]),
        "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=...) keeps the scores on the chip "
        '(Hugging Face: attn_implementation="sdpa").',
        gain,
    )
