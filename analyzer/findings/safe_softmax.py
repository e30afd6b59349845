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

from collections.abc import Iterable, Mapping

import numpy as np

from analyzer import units
from analyzer.findings import SEEN, finding, grade, host_bound, share_of, spread
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

NAME = "safe-softmax"


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    host = chains.host
    rows = np.nonzero(exposure.operators(chains, r"^aten::_safe_softmax$"))[0]
    if not len(rows) or host_bound(results):
        return
    own = exposure.operators(chains, r"^aten::softmax$|^aten::_softmax$")
    softmax = host.below(np.where(host.nearest(own) >= 0, chains.direct_device_ns, 0))[rows]
    guard = host.below(chains.direct_device_ns)[rows] - softmax
    total = int(guard.sum())
    share = share_of(chains, total)
    if share < SEEN:
        return
    yield finding(
        NAME,
        grade(share, Severity.WARNING),
        f"the guard of _safe_softmax takes {units.share(share)} of the window",
        (
            f"{plural(len(rows), 'call')}: guard {spread(guard.tolist())}",
            f"the softmax itself {spread(softmax.tolist())}",
        ),
        "A fused attention backend needs no such passes (see sdpa-math-backend); a causal mask alone needs no guard.",
        total,
        chains,
    )
