"""Attention calls by backend, read from the operator that ran, never from a kernel's name.

cuDNN's kernels have "flash" in their names, and compiled code calls the inner operator directly:
only the innermost backend operator says which one it was. Hand-written attention (a softmax between
two batched matrix products) counts as backend "unfused".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import backward, exposure
from analyzer.index.attention_backends import BACKENDS
from analyzer.index.build import Chains
from analyzer.index.vocabulary import Role, classify, matches
from analyzer.report.blocks import Block, table
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ns, Row, Text, column
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Mask, Rows

ORDER = 65

_PRODUCT = r"^aten::(?:matmul|bmm|baddbmm|einsum)$"
_BATCHED = r"^aten::(?:bmm|baddbmm)$"
_SOFTMAX = r"^aten::(?:softmax|_softmax|_safe_softmax|_softmax_backward_data)$"


class AttentionPart(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "operator"

    operator: Annotated[Name, column("operator", "the innermost one that launched")]
    device_ns: Annotated[Ns, column("device", "device time that it launched in all calls")]


class AttentionCalls(Row, frozen=True, kw_only=True):
    """Calls of one backend inside one annotation; medians per call."""

    IDENTITY: ClassVar[str] = "backend"

    annotation: Annotated[Name | None, column("inside", "the innermost annotation; null: none", blank=True)]
    backend: Annotated[Text, column("backend", "flash, efficient, cudnn, math, flex, ..; unfused: written out by hand")]
    calls: Annotated[Count, column("calls", "forward calls")]
    device_ns_median: Annotated[MeanNs, column("device", "device time that a call launched")]
    device_ns: Annotated[Ns, column("device, all calls", "device time that all calls launched", bar=True)]
    cpu_ns_median: Annotated[MeanNs, column("CPU", "host time of a call")]
    device_events_per_call: Annotated[MeanCount, column("events", "device events that a call launched, median")]
    backward_calls: Annotated[Count, column("", "of the calls, those whose backward pass was recorded")]
    backward_ns: Annotated[Ns, column("backward", "device time that the backward passes of all calls launched")]
    products_ns: Annotated[Ns, column("", "of `device_us`, the matrix products, as kernels' names tell them")]
    beside_products_ns: Annotated[Ns, column("", "time in which anything but the products ran, each moment once")]
    parts: Annotated[tuple[AttentionPart, ...], column("", "`device_us` by launching operator, largest first")]


class Attention(Result, frozen=True, kw_only=True):
    SECTION = "attention"
    TITLE = "Attention"

    attention: tuple[AttentionCalls, ...]

    def blocks(self) -> Iterator[Block]:
        if self.attention:
            yield table(
                "Attention by backend",
                AttentionCalls,
                self.attention,
                "backend",
                "annotation",
                "calls",
                "device_ns_median",
                "cpu_ns_median",
                "device_events_per_call",
                "device_ns",
                *(["backward_ns"] if any(a.backward_calls for a in self.attention) else []),
                note="medians per call",
            )


def analyze(chains: Chains) -> Attention:
    host = chains.host
    of_name = classify(chains.trace.names, tuple((pattern, i + 1) for i, (pattern, _) in enumerate(BACKENDS)))
    operator = np.isin(chains.host.cat, (Cat.OP, Cat.ANNOTATION))
    backend = np.where(operator, of_name[host.name], 0) - 1
    fused = np.nonzero((backend >= 0) & (host.enclosing(backend >= 0) < 0))[0]
    ranges = [(BACKENDS[backend[r]][1], int(r), int(host.last[r]), int(host.start[r]), int(host.end[r])) for r in fused]
    ranges += _unfused(chains, backend >= 0)
    if not ranges:
        return Attention(attention=())
    lo = np.array([r[1] for r in ranges])
    hi = np.array([r[2] for r in ranges])
    device = np.concatenate(([0], np.cumsum(chains.device.launched_ns)))
    events = np.concatenate(([0], np.cumsum(chains.device.launched_events)))
    annotation = host.nearest((chains.host.cat == Cat.ANNOTATION) & (chains.host.role != Role.STEP))[lo]
    calls = pl.DataFrame(
        {
            "backend": [r[0] for r in ranges],
            "annotation": np.where(annotation >= 0, host.name[annotation], -1).astype(np.int32),
            "device": device[hi] - device[lo],
            "cpu": [r[4] - r[3] for r in ranges],
            "events": events[hi] - events[lo],
            "backward": _backward(chains, device, lo, hi),
        }
    ).with_row_index("call")
    work = _work(chains, calls, lo, hi)
    parts = _parts(chains, work)
    grouped = (
        calls.group_by("annotation", "backend")
        .agg(
            calls=pl.len(),
            device_ns_median=pl.col("device").median(),
            device_ns=pl.col("device").sum(),
            cpu_ns_median=pl.col("cpu").median(),
            device_events_per_call=pl.col("events").median(),
            backward_calls=(pl.col("backward") >= 0).sum(),
            backward_ns=pl.col("backward").filter(pl.col("backward") >= 0).sum(),
        )
        .join(_products(work), on=["annotation", "backend"], how="left")
        .with_columns(pl.col("products_ns", "beside_products_ns").fill_null(0))
        .sort(["device_ns", "calls", "backend", "annotation"], descending=[True, True, False, False])
    )
    names = chains.trace.text(grouped["annotation"])
    return Attention(
        attention=tuple(
            AttentionCalls(annotation=text, parts=tuple(parts.get((row.pop("annotation"), row["backend"]), ())), **row)
            for text, row in zip(names, grouped.iter_rows(named=True), strict=True)
        )
    )


def _backward(chains: Chains, device: Ints, lo: Ints, hi: Ints) -> Ints:
    """Device time of each call's backward pass (ns); -1: none was recorded. device: running total by host row."""
    row, forward = backward.functions(chains.host)
    call, inside = _call_of(forward, lo, hi)
    out = np.full(len(lo), -1, np.int64)
    out[call[inside]] = 0
    np.add.at(out, call[inside], (device[chains.host.last[row]] - device[row])[inside])
    return out


def _call_of(rows: Rows, lo: Ints, hi: Ints) -> tuple[Ints, Mask]:
    """(call that each host row lies in, whether it lies in one); calls [lo, hi) are disjoint."""
    order = np.argsort(lo)
    slot = np.searchsorted(lo[order], rows, "right") - 1
    call = order[np.maximum(slot, 0)]
    return call, (slot >= 0) & (rows < hi[call])


def _work(chains: Chains, calls: pl.DataFrame, lo: Ints, hi: Ints) -> pl.DataFrame:
    """Device work that the calls (host rows [lo, hi)) launched: each with kind, annotation and backend."""
    work = chains.device.frame.with_columns(kind=chains.device.kind).filter(pl.col("launch").is_not_null())
    call, inside = _call_of(work["launch"].to_numpy(), lo, hi)
    return (
        work.with_columns(call=pl.Series(call.astype(np.uint32)))
        .filter(pl.Series(inside))
        .join(calls.select("call", "annotation", "backend"), on="call", maintain_order="left")
    )


def _products(work: pl.DataFrame) -> pl.DataFrame:
    """Per annotation and backend, device time of the matrix products, and of what ran beside them."""
    product = pl.col("kind") == "gemm"
    rest = work.filter(~product)
    rest = rest.with_columns(beside_products_ns=exposure.once(rest, ["device", "backend"]))
    return (
        pl.concat([work.filter(product), rest], how="diagonal")
        .group_by("annotation", "backend")
        .agg(products_ns=pl.col("dur").filter(product).sum(), beside_products_ns=pl.col("beside_products_ns").sum())
    )


def _parts(chains: Chains, work: pl.DataFrame) -> dict[tuple[int, str], list[AttentionPart]]:
    """Device time by launching operator for each (annotation, backend)."""
    holder = chains.host.holder[work["launch"].to_numpy()]
    grouped = (
        work.with_columns(holder=pl.Series(chains.host.name[holder]))
        .filter(pl.Series(holder >= 0))
        .group_by("annotation", "backend", "holder")
        .agg(pl.col("dur").sum())
        .sort("dur", "holder", descending=[True, False])
    )
    out: dict[tuple[int, str], list[AttentionPart]] = {}
    for (annotation, backend, _, ns), text in zip(
        grouped.iter_rows(), chains.trace.text(grouped["holder"]), strict=True
    ):
        out.setdefault((annotation, backend), []).append(AttentionPart(operator=text, device_ns=ns))
    return out


def _unfused(chains: Chains, fused: Mask) -> list[tuple[str, int, int, int, int]]:
    """Product, softmax, product among the children of one event: (backend, row, past, start, end)."""
    host, names = chains.host, chains.trace.names
    name = host.name
    operator = chains.host.cat == Cat.OP

    def rows_of(pattern: str) -> Mask:
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
