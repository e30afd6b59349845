"""The softmax of attention takes extra passes to guard against rows that are masked entirely.

What it means
    aten::_safe_softmax follows a softmax with a test for rows of -inf only and replaces their NaN by zeros: three
    more passes over the scores. The math backend of scaled_dot_product_attention always does.

How it is computed
    Device time inside aten::_safe_softmax less that of the softmax itself. It fires from a hundredth of the window
    on, where the host does not set the pace. "Up to" is that time.

What to try
    A fused backend handles such rows in its own loop: see `sdpa-math-backend` for how to get one. Hand-written
    attention with is_causal needs no guard, as no row is masked entirely: use torch.softmax.

When it is wrong
    With padding masks some rows are masked entirely, and without the guard they become NaN.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.attention_cost import AttentionCost
from analyzer.findings import SEEN, finding, grade, host_bound, share_of, spread
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "safe-softmax"


def find(results: Results) -> Iterable[Finding]:
    guard = results[AttentionCost].attention_cost.guard
    if guard is None or host_bound(results) or (share := share_of(results, guard.device_ns)) < SEEN:
        return
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"the guard of _safe_softmax takes {units.share(share)} of the window",
        (
            f"{plural(guard.guarded.count, 'call')}: guard {spread(guard.guarded)}",
            f"the softmax itself {spread(guard.softmax)}",
        ),
        "A fused attention backend needs no such passes (see sdpa-math-backend); a causal mask alone needs no guard.",
        guard.device_ns,
    )
