"""The causal mask is built anew in every call of attention.

What it means
    A triangle of ones (aten::tril or aten::triu) is made, turned into a mask, and applied, for each layer and
    each step, though it depends on the sequence length alone. The math backend of scaled_dot_product_attention
    does so with is_causal=True.

How it is computed
    aten::tril or aten::triu inside calls of the math backend, or at least as often as hand-written attention in the
    trace. The build is the device time of these, of what makes their input and of what turns them into a mask (ones,
    zeros, full, fill, where, logical_not, masked_fill_ next to them, before the first product). Adding the mask to the
    scores is told beside it, since a fused kernel needs neither; "up to" is the build alone. It fires from two
    calls on, as a note unless the build takes a twentieth of the window.

What to try
    A fused backend needs no mask in memory: is_causal=True with flash, cuDNN or efficient attention. Hand-written:
        self.register_buffer("mask", torch.ones(n, n, dtype=torch.bool).tril(), persistent=False)
    built once, and sliced to the length.

When it is wrong
    A mask that changes from call to call (padding, packed sequences) must be built anew.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.attention import Attention
from analyzer.analyses.attention_cost import AttentionCost
from analyzer.findings import finding, grade, share_of, spread, within
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "causal-mask-rebuilt"
LEAST = 2


def find(results: Results) -> Iterable[Finding]:
    mask = results[AttentionCost].attention_cost.mask
    if mask is None or mask.triangles < LEAST:
        return
    unfused = sum(a.calls for a in results[Attention].attention if a.backend == "unfused")
    if not mask.in_math and not 0 < unfused <= mask.triangles:
        return
    share = share_of(results, mask.device_ns)
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"the causal mask is built {plural(mask.triangles, 'time')}",
        (
            f"building it takes {spread(mask.built)} on the device a call, "
            f"{units.share(share)} of the window; in {within(mask.path, 2)}",
            f"adding it to the scores takes {spread(mask.added)} more a call, "
            f"{units.share(share_of(results, mask.added.total_ns))} of the window"
            if mask.added.total_ns
            else None,
        ),
        "Use is_causal=True with a fused backend, which needs no mask in memory; in hand-written attention build it "
        "once as a buffer.",
        mask.device_ns,
    )
