"""What scaled_dot_product_attention was called with, by the backend that ran: it decides which backends could run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import orjson
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.attention_backends import BACKENDS
from analyzer.index.build import Chains
from analyzer.index.kernel_names import decode
from analyzer.index.vocabulary import classify
from analyzer.report.columns import Count, Ns, Row, Text, column
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Mask

ORDER = 68

_SDPA = r"^aten::scaled_dot_product_attention$"
_FORMATS = {
    "float": "fp32", "double": "fp64", "c10::BFloat16": "bf16", "c10::Half": "fp16",
    "Float": "fp32", "Double": "fp64", "BFloat16": "bf16", "Half": "fp16",
}  # fmt: skip
#: Positions among the operator's arguments.
_QUERY, _VALUE, _MASK = 0, 2, 3


class AttentionInputs(Row, frozen=True, kw_only=True):
    """Calls alike in backend and arguments. null: not recorded (profile with record_shapes=True)."""

    IDENTITY: ClassVar[str] = "backend"

    backend: Annotated[Text, column("backend", "that ran: flash, efficient, cudnn, math, ..")]
    dtype: Annotated[Text | None, column("format", "of the query; without recorded types as the kernels' names say")]
    head_size: Annotated[Count | None, column("head", "last dimension of the query")]
    value_head_size: Annotated[Count | None, column("value head", "last dimension of the value")]
    mask: Annotated[bool | None, column("mask", "whether a mask tensor was passed")]
    calls: Annotated[Count, column("calls", "of it")]
    device_ns: Annotated[Ns, column("device", "device time that the calls launched", bar=True)]


class SdpaInputs(Result, frozen=True, kw_only=True):
    """The most device time first."""

    attention_inputs: tuple[AttentionInputs, ...]


def analyze(chains: Chains) -> SdpaInputs:
    host = chains.host
    called = exposure.operators(chains, _SDPA)
    if not called.any():
        return SdpaInputs(attention_inputs=())
    of_name = classify(chains.trace.names, tuple((pattern, i + 1) for i, (pattern, _) in enumerate(BACKENDS)))
    ran = np.where(host.cat == Cat.OP, of_name[host.name], 0)
    call = host.nearest(called)
    # The outermost operator of a backend inside a call; it may call others of its kind.
    chosen = np.nonzero((ran > 0) & (call >= 0))[0]
    _, first = np.unique(call[chosen], return_index=True)
    rows = call[chosen[first]]
    formats = _formats(chains, called)
    device = host.below(chains.device.launched_ns)
    seen: dict[tuple[Any, ...], list[int]] = {}
    read: dict[int, tuple[Any, ...]] = {}
    inputs = host.frame["inputs"].to_numpy()
    for row, inner in zip(rows.tolist(), chosen[first].tolist(), strict=True):
        given = int(inputs[row])
        if given not in read:
            read[given] = _arguments(chains, given)
        dtype, *rest = read[given]
        key = (BACKENDS[int(ran[inner]) - 1][1], dtype or formats.get(row), *rest)
        seen.setdefault(key, []).append(int(device[row]))
    return SdpaInputs(
        attention_inputs=tuple(
            AttentionInputs(
                backend=key[0],
                dtype=key[1],
                head_size=key[2],
                value_head_size=key[3],
                mask=key[4],
                calls=len(ns),
                device_ns=sum(ns),
            )
            for key, ns in sorted(seen.items(), key=lambda one: (-sum(one[1]), str(one[0])))
        )
    )


def _formats(chains: Chains, called: Mask) -> dict[int, str]:
    """Number format of the fused kernels that each call launched, where their names agree.

    The math backend's products tell nothing: it casts its inputs up.
    """
    work = chains.device.frame.filter(pl.col("launch").is_not_null() & (pl.col("kind") == "attention"))
    row = chains.host.nearest(called)[work["launch"].to_numpy()]
    names = work.select("name").with_columns(call=pl.Series(row)).filter(pl.col("call") >= 0).unique()
    found: dict[int, set[str | None]] = {}
    for text, call in zip(chains.trace.text(names["name"]), names["call"].to_list(), strict=True):
        found.setdefault(call, set()).add(decode(text).precision)
    return {call: one for call, said in found.items() if len(said) == 1 and (one := next(iter(said))) is not None}


def _arguments(chains: Chains, given: int) -> tuple[Any, ...]:
    """(dtype, head size, value head size, mask) of one row of `Trace.inputs`; None each: not recorded."""
    if given < 0:
        return (None,) * 4
    row = chains.trace.inputs.row(given, named=True)
    dims, types = _list(row["dims"]), _list(row["types"])
    dtype = _FORMATS.get(str(types[_QUERY])) if types else None
    mask = bool(len(types) > _MASK and types[_MASK] and types[_MASK] != "Scalar") if types else None
    return dtype, _last(dims, _QUERY), _last(dims, _VALUE), mask


def _list(text: str | None) -> list[Any]:
    if not text:
        return []
    try:
        value = orjson.loads(text)
    except ValueError:  # a stranger's own form
        return []
    return value if isinstance(value, list) else []


def _last(dims: list[Any], position: int) -> int | None:
    shape = dims[position] if len(dims) > position else None
    return shape[-1] if isinstance(shape, list) and shape and type(shape[-1]) is int else None
