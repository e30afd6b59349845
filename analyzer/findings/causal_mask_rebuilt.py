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

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from analyzer import units
from analyzer.analyses.attention import AttentionCalls
from analyzer.findings import finding, grade, share_of, spread, take
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Rows

NAME = "causal-mask-rebuilt"
_TRIANGLE = r"^aten::(?:tril|triu)_?$"
_BUILDS = (
    r"^aten::(?:ones|zeros|full|ones_like|zeros_like|tril|triu|tril_|triu_|scalar_tensor|where|logical_not|masked_fill_|"
    r"fill_|bitwise_not|to)$"
)
_PRODUCT = r"^aten::(?:matmul|bmm|baddbmm)$"
_MATH = r"^aten::_scaled_dot_product_attention_math$"
LEAST = 2


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    host = chains.host
    triangles = np.nonzero(exposure.operators(chains, _TRIANGLE))[0]
    unfused = sum(a.calls for a in take(results, AttentionCalls).rows if a.backend == "unfused")
    math = host.nearest(exposure.operators(chains, _MATH))
    inside = math[triangles] >= 0
    if inside.sum() >= LEAST:
        triangles = triangles[inside]
    elif len(triangles) < LEAST or not unfused or len(triangles) < unfused:
        return
    parents = np.unique(host.parent[triangles])
    parents = parents[parents >= 0]
    if not len(parents):
        return
    build, added = _times(chains, parents)
    total = int(build.sum())
    yield finding(
        NAME,
        grade(share_of(chains, total), Severity.WARNING),
        f"the causal mask is built {plural(len(triangles), 'time')}",
        (
            f"building it takes {spread(build.tolist())} on the device a call, "
            f"{units.share(share_of(chains, total))} of the window; in {' > '.join(chains.path(int(parents[0]))[-2:])}",
            f"adding it to the scores takes {spread(added.tolist())} more a call, "
            f"{units.share(share_of(chains, int(added.sum())))} of the window"
            if added.any()
            else None,
        ),
        "Use is_causal=True with a fused backend, which needs no mask in memory; in hand-written attention build it "
        "once as a buffer.",
        total,
        chains,
    )


def _times(chains: Chains, parents: Rows) -> tuple[Ints, Ints]:
    """Per parent, device time of the children that build the mask, and of the one that adds it to the scores."""
    host = chains.host
    device = host.below(chains.direct_device_ns)
    child = np.nonzero(np.isin(host.parent, parents))[0]
    slot = np.searchsorted(parents, host.parent[child])
    # Only what comes before the first product builds the mask: casts and fills may follow it.
    product = exposure.operators(chains, _PRODUCT)[child]
    first = np.full(len(parents), host.height, np.int64)
    np.minimum.at(first, slot[product], child[product])
    triangle = np.full(len(parents), host.height, np.int64)
    made = exposure.operators(chains, _TRIANGLE)[child]
    np.minimum.at(triangle, slot[made], child[made])
    cast = exposure.operators(chains, r"^aten::to$")[child]
    builds = exposure.operators(chains, _BUILDS)[child] & (child < first[slot]) & ~(cast & (child < triangle[slot]))
    adds = exposure.operators(chains, r"^aten::(?:add_?|masked_fill_?)$")[child] & (child > first[slot])
    return (
        np.bincount(slot[builds], device[child[builds]], len(parents)).astype(np.int64),
        np.bincount(slot[adds], device[child[adds]], len(parents)).astype(np.int64),
    )
