"""Attention calls by backend, read from the operator that ran, never from a kernel's name.

cuDNN's kernels have "flash" in their names, and compiled code calls the inner operator directly:
only the innermost backend operator says which one it was. Hand-written attention (a softmax between
two batched matrix products) counts as backend "unfused".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.index.vocabulary import Role, classify, matches
from analyzer.model import Column, Section, Table, Unit

ORDER = 65

#: Operator -> backend. Forward calls only; first match wins.
BACKENDS: tuple[tuple[str, str], ...] = (
    (r"^aten::_scaled_dot_product_flash_attention(?:_for_cpu)?$", "flash"),
    (r"^aten::_scaled_dot_product_efficient_attention$", "efficient"),
    (r"^aten::_scaled_dot_product_cudnn_attention$", "cudnn"),
    (r"^aten::_scaled_dot_product_attention_math(?:_for_mps)?$", "math"),
    (r"^aten::_scaled_dot_product_fused_attention_overrideable$", "overrideable"),
    (r"^aten::_flash_attention_forward$", "flash"),
    (r"^aten::_efficient_attention_forward$", "efficient"),
    (r"^aten::_cudnn_attention_forward$", "cudnn"),
    (
        r"(?i)^flash_attn(?:_\w+)?::\w*fwd|^flash_attn\w*::_flash_attn\w*forward|^FlashAttn(?:VarlenFunc|Func)?$",
        "flash",
    ),
    (r"(?i)^xformers.*efficient_attention_forward", "efficient"),
    (r"(?i)^(?:triton_tem_fused|triton_flex)\w*flex_attention|^flex_attention$", "flex"),
    (r"(?i)^(?:vllm|sglang|sgl)::\w*attention", "serving engine"),
)
_PRODUCT = r"^aten::(?:matmul|bmm|baddbmm|einsum)$"
_BATCHED = r"^aten::(?:bmm|baddbmm)$"
_SOFTMAX = r"^aten::(?:softmax|_softmax|_safe_softmax|_softmax_backward_data)$"


@dataclass(frozen=True, slots=True)
class Attention:
    """Calls of one backend inside one annotation. Medians per call, times in ns.

    products_total_ns  of `device_total_ns`, what the two matrix products took, as kernels' names tell them.
    parts              device time of all calls by the operator that launched it, largest first.
    """

    annotation: str | None
    backend: str
    calls: int
    device_ns: float
    device_total_ns: int
    cpu_ns: float
    events: float
    products_total_ns: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class AttentionCalls:
    rows: tuple[Attention, ...]

    def contract(self) -> dict[str, Any]:
        return {
            "attention": [
                {
                    "annotation": a.annotation,
                    "backend": a.backend,
                    "calls": a.calls,
                    "device_us_median": units.us(a.device_ns),
                    "device_us": units.us(a.device_total_ns),
                    "cpu_us_median": units.us(a.cpu_ns),
                    "device_events_per_call": a.events,
                    "products_us": units.us(a.products_total_ns),
                    "parts": [{"operator": name, "device_us": units.us(ns)} for name, ns in a.parts],
                }
                for a in self.rows
            ]
        }

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return None
        table = Table(
            "Attention by backend",
            (
                Column("backend", Unit.TEXT),
                Column("inside", Unit.NAME),
                Column("calls", Unit.COUNT),
                Column("device", Unit.NS),
                Column("CPU", Unit.NS),
                Column("events", Unit.COUNT),
                Column("device, all calls", Unit.NS, bar=True),
            ),
            tuple(
                (a.backend, a.annotation or "", a.calls, a.device_ns, a.cpu_ns, a.events, a.device_total_ns)
                for a in self.rows[:top]
            ),
            hidden=max(0, len(self.rows) - top),
            note="medians per call",
        )
        return Section("attention", "Attention", tables=(table,))


def analyze(chains: Chains) -> AttentionCalls:
    host = chains.host
    of_name = classify(chains.trace.names, tuple((pattern, i + 1) for i, (pattern, _) in enumerate(BACKENDS)))
    operator = np.isin(chains.cat, (Cat.OP, Cat.ANNOTATION))
    backend = np.where(operator, of_name[host.name], 0) - 1
    fused = np.nonzero((backend >= 0) & (host.enclosing(backend >= 0) < 0))[0]
    ranges = [(BACKENDS[backend[r]][1], int(r), int(host.last[r]), int(host.start[r]), int(host.end[r])) for r in fused]
    ranges += _unfused(chains, backend >= 0)
    if not ranges:
        return AttentionCalls(())
    lo = np.array([r[1] for r in ranges])
    hi = np.array([r[2] for r in ranges])
    device = np.concatenate(([0], np.cumsum(chains.direct_device_ns)))
    events = np.concatenate(([0], np.cumsum(chains.direct_device_events)))
    gemm = exposure.launched_ns(chains, (exposure.kinds(chains) == "gemm").to_numpy())
    products = np.concatenate(([0], np.cumsum(gemm)))
    annotation = host.nearest((chains.cat == Cat.ANNOTATION) & (chains.role != Role.STEP))[lo]
    table = pl.DataFrame(
        {
            "backend": [r[0] for r in ranges],
            "annotation": np.where(annotation >= 0, host.name[annotation], -1).astype(np.int32),
            "device": device[hi] - device[lo],
            "cpu": [r[4] - r[3] for r in ranges],
            "events": events[hi] - events[lo],
            "products": products[hi] - products[lo],
        }
    ).with_row_index("call")
    parts = _parts(chains, table, lo, hi)
    table = (
        table.group_by("annotation", "backend")
        .agg(
            calls=pl.len(),
            device=pl.col("device").median(),
            total=pl.col("device").sum(),
            cpu=pl.col("cpu").median(),
            events=pl.col("events").median(),
            products=pl.col("products").sum(),
        )
        .sort(["total", "calls", "backend"], descending=[True, True, False])
    )
    names = chains.text(table["annotation"])
    return AttentionCalls(
        tuple(
            Attention(
                text, row[1], row[2], row[3], row[4], row[5], row[6], row[7], tuple(parts.get((row[0], row[1]), ()))
            )
            for text, row in zip(names, table.iter_rows(), strict=True)
        )
    )


def _parts(
    chains: Chains, calls: pl.DataFrame, lo: np.ndarray[Any, Any], hi: np.ndarray[Any, Any]
) -> dict[tuple[int, str], list[tuple[str, int]]]:
    """Device time by launching operator for each (annotation, backend); calls are host rows [lo, hi)."""
    work = chains.device.select("launch", "dur").drop_nulls("launch")
    launch = work["launch"].to_numpy()
    order = np.argsort(lo)
    slot = np.searchsorted(lo[order], launch, "right") - 1
    call = order[np.maximum(slot, 0)]
    inside = (slot >= 0) & (launch < hi[call])
    holder = chains.holder[launch]
    table = (
        work.with_columns(call=pl.Series(call.astype(np.uint32)), holder=pl.Series(chains.host.name[holder]))
        .filter(pl.Series(inside & (holder >= 0)))
        .join(calls.select("call", "annotation", "backend"), on="call")
        .group_by("annotation", "backend", "holder")
        .agg(pl.col("dur").sum())
        .sort("dur", "holder", descending=[True, False])
    )
    out: dict[tuple[int, str], list[tuple[str, int]]] = {}
    for (annotation, backend, _, ns), text in zip(table.iter_rows(), chains.text(table["holder"]), strict=True):
        out.setdefault((annotation, backend), []).append((text, ns))
    return out


def _unfused(chains: Chains, fused: np.ndarray[Any, Any]) -> list[tuple[str, int, int, int, int]]:
    """Product, softmax, product among the children of one event: (backend, row, past, start, end)."""
    host, names = chains.host, chains.trace.names
    name = host.name
    operator = chains.cat == Cat.OP

    def rows_of(pattern: str) -> np.ndarray[Any, Any]:
        return np.asarray(operator & matches(names, pattern)[name])

    product, softmax = rows_of(_PRODUCT), rows_of(_SOFTMAX)
    batched = host.below(rows_of(_BATCHED).astype(np.int64)) > 0
    wanted = (product & batched) | softmax
    top = wanted & (host.enclosing(wanted | fused) < 0)
    rows = np.nonzero(top)[0]
    if len(rows) < 3:
        return []
    frame = (
        pl.DataFrame({"row": rows, "parent": host.parent[rows], "softmax": softmax[rows]})
        .with_columns(thread=host.frame["thread"].gather(rows))
        .sort("thread", "parent", "row", maintain_order=True)
    )
    place = ["thread", "parent"]
    found = frame.with_columns(
        before=pl.col("row").shift(1).over(place),
        after=pl.col("row").shift(-1).over(place),
        first=~pl.col("softmax").shift(1).over(place),
        third=~pl.col("softmax").shift(-1).over(place),
    ).filter(pl.col("softmax") & pl.col("first") & pl.col("third"))
    return [
        ("unfused", a, int(host.last[b]), int(host.start[a]), int(host.end[b]))
        for a, b in found.select("before", "after").iter_rows()
    ]
