"""What surrounds the products of attention: masks that are built anew, the guard of a safe softmax, and why the math
backend may have been chosen.

Device time is given twice: as durations, and as the time in which any of the work ran, each moment once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import orjson
import polars as pl

from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.index.kernel_names import decode
from analyzer.report.columns import Count, Ns, Row, Text, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Mask, Rows

ORDER = 67

_TRIANGLE = r"^aten::(?:tril|triu)_?$"
_BUILDS = (
    r"^aten::(?:ones|zeros|full|ones_like|zeros_like|tril|triu|tril_|triu_|scalar_tensor|where|logical_not|masked_fill_|"
    r"fill_|bitwise_not|to)$"
)
_ADDS = r"^aten::(?:add_?|masked_fill_?)$"
_PRODUCT = r"^aten::(?:matmul|bmm|baddbmm)$"
_MATH = r"^aten::_scaled_dot_product_attention_math$"
_SDPA = r"^aten::(?:_scaled_dot_product_attention_math|scaled_dot_product_attention)$"
#: One triangle may be a mask that is kept.
SEVERAL = 2


class MaskBuilds(Row, frozen=True, kw_only=True):
    """Triangles (tril, triu) that are made into masks, by the event around them."""

    IDENTITY: ClassVar[str] = "triangles"

    triangles: Annotated[Count, column("triangles", "calls of tril and triu")]
    in_math: Annotated[bool, column("", "only those inside the math backend are told: there are two at least")]
    built: Annotated[Durations, column("", "device time of building the mask, each call")]
    added: Annotated[Durations, column("", "device time of adding it to the scores, each call")]
    device_ns: Annotated[Ns, column("device", "time in which a mask was built, each moment once")]
    path: Annotated[tuple[str, ...], column("", "of the first, outermost first")]


class Guard(Row, frozen=True, kw_only=True):
    """Calls of _safe_softmax: it replaces NaN of rows that are masked entirely."""

    guarded: Annotated[Durations, column("", "device time of the guard, each call")]
    softmax: Annotated[Durations, column("", "device time of the softmax itself, each call")]
    device_ns: Annotated[Ns, column("device", "time in which guards ran, each moment once")]


class Inputs(Row, frozen=True, kw_only=True):
    """What is known of the inputs of scaled_dot_product_attention."""

    IDENTITY: ClassVar[str] = "dtype"

    dtype: Annotated[Text | None, column("dtype", "of the query in the first call, as recorded; null: no shapes")]
    mask: Annotated[bool | None, column("mask", "the first call has a mask tensor; null: no shapes")]
    products: Annotated[tuple[str, ...], column("products", "number formats of the matrix products inside")]


class AttentionCosts(Row, frozen=True, kw_only=True):
    mask: Annotated[MaskBuilds | None, column("", "null: no triangle is made inside another event")]
    guard: Annotated[Guard | None, column("", "null: no _safe_softmax")]
    inputs: Annotated[Inputs | None, column("", "null: no scaled_dot_product_attention")]


class AttentionCost(Result, frozen=True, kw_only=True):
    attention_cost: AttentionCosts


def analyze(chains: Chains) -> AttentionCost:
    work = chains.device.frame.filter(pl.col("launch").is_not_null())
    return AttentionCost(
        attention_cost=AttentionCosts(
            mask=_mask(chains, work), guard=_guard(chains, work), inputs=_inputs(chains, work)
        )
    )


def _mask(chains: Chains, work: pl.DataFrame) -> MaskBuilds | None:
    host = chains.host
    triangles = np.nonzero(exposure.operators(chains, _TRIANGLE))[0]
    if not len(triangles):
        return None
    inside = host.nearest(exposure.operators(chains, _MATH))[triangles] >= 0
    in_math = bool(inside.sum() >= SEVERAL)
    triangles = triangles[inside] if in_math else triangles
    parents = np.unique(host.parent[triangles])
    parents = parents[parents >= 0]
    if not len(parents):
        return None
    builds, adds, slot = _children(chains, parents)
    device = host.below(chains.device.launched_ns)
    each = [
        Durations.of(pl.Series(np.bincount(slot[rows], device[rows], len(parents)).astype(np.int64)))
        for rows in (builds, adds)
    ]
    assert each[0] is not None
    assert each[1] is not None
    return MaskBuilds(
        triangles=len(triangles),
        in_math=in_math,
        built=each[0],
        added=each[1],
        device_ns=_busy(chains, work, builds),
        path=chains.places.path(int(parents[0])),
    )


def _children(chains: Chains, parents: Rows) -> tuple[Rows, Rows, Rows]:
    """Host rows of the parents' children that build the mask, and of those that add it; per host row, which parent."""
    host = chains.host
    child = np.nonzero(np.isin(host.parent, parents))[0]
    slot = np.searchsorted(parents, host.parent[child])

    def first(pattern: str) -> Rows:
        out = np.full(len(parents), host.height, np.int64)
        mine = exposure.operators(chains, pattern)[child]
        np.minimum.at(out, slot[mine], child[mine])
        return out[slot]  # type: ignore[return-value]

    # Only what comes before the first product builds the mask: casts and fills may follow it.
    product, triangle = first(_PRODUCT), first(_TRIANGLE)
    cast = exposure.operators(chains, r"^aten::to$")[child]
    builds = exposure.operators(chains, _BUILDS)[child] & (child < product) & ~(cast & (child < triangle))
    adds = exposure.operators(chains, _ADDS)[child] & (child > product)
    which = np.zeros(host.height, np.int64)
    which[child] = slot
    return child[builds], child[adds], which  # type: ignore[return-value]


def _guard(chains: Chains, work: pl.DataFrame) -> Guard | None:
    host = chains.host
    safe = exposure.operators(chains, r"^aten::_safe_softmax$")
    rows = np.nonzero(safe)[0]
    if not len(rows):
        return None
    inner = host.nearest(exposure.operators(chains, r"^aten::softmax$|^aten::_softmax$")) >= 0
    softmax = host.below(np.where(inner, chains.device.launched_ns, 0))[rows]
    guard = host.below(chains.device.launched_ns)[rows] - softmax
    launch = work["launch"].to_numpy()
    mine = (host.nearest(safe)[launch] >= 0) & ~inner[launch]
    guarded, own = Durations.of(pl.Series(guard)), Durations.of(pl.Series(softmax))
    assert guarded is not None
    assert own is not None
    busy = int(exposure.once(work.filter(pl.Series(mine))).sum())
    return Guard(guarded=guarded, softmax=own, device_ns=busy)


def _busy(chains: Chains, work: pl.DataFrame, rows: Rows) -> int:
    """Time in which work that was launched inside some host rows ran, each moment once."""
    wanted: Mask = np.zeros(chains.host.height, bool)
    wanted[rows] = True
    mine = chains.host.nearest(wanted)[work["launch"].to_numpy()] >= 0
    return int(exposure.once(work.filter(pl.Series(mine))).sum())


def _inputs(chains: Chains, work: pl.DataFrame) -> Inputs | None:
    calls = exposure.operators(chains, _SDPA)
    rows = np.nonzero(calls)[0]
    if not len(rows):
        return None
    dtype, mask = _recorded(chains, int(rows[0]))
    inside = chains.host.nearest(calls)[work["launch"].to_numpy()] >= 0
    names = work["name"].filter(pl.Series(inside)).unique()
    decoded = [d for text in chains.trace.text(names) if (d := decode(text)).kind == "gemm"]
    return Inputs(dtype=dtype, mask=mask, products=tuple(sorted({d.precision or "unknown" for d in decoded})))


def _recorded(chains: Chains, row: int) -> tuple[str | None, bool | None]:
    """Type of the query and whether a mask tensor was passed; None, None without recorded shapes."""
    shapes = int(chains.host.frame["shapes"][row])
    if shapes < 0:
        return None, None
    try:
        dims, types = orjson.loads(chains.trace.names[shapes])
        mask = len(dims) > 3 and bool(dims[3]) and str(types[3]) not in ("", "Scalar")
        return str(types[0]), mask
    except (ValueError, TypeError, IndexError, KeyError):  # a stranger's own form
        return None, None
