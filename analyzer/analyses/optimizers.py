"""What each optimizer's step launches: by itself, one tensor after the other, or for all tensors at once."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.index.vocabulary import Call, Role, matches
from analyzer.report.columns import Count, MeanCount, Name, Ns, Row, column
from analyzer.report.results import Result

ORDER = 58

#: What torch calls an optimizer's work: `Optimizer.step#AdamW.step`, `Optimizer.zero_grad#SGD.zero_grad`.
_WORK = r"^Optimizer\.(?:step|zero_grad)#"
#: Operators that work on lists of tensors.
_LISTS = r"^aten::_foreach_|^aten::_fused_|^(?:apex|amp_C|transformer_engine|bitsandbytes|fbgemm)::"
#: What a late launch of its costs the device.
LATE = (Cause.DISPATCH, Cause.PYTHON, Cause.LAUNCH_LATENCY)
#: Operators that are listed, the most launches first.
LISTED = 8


class LoopOperator(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("operator", "that launched for one tensor at a time")]
    per_call: Annotated[MeanCount, column("a call", "its launches, median of the calls")]


class OptimizerWork(Row, frozen=True, kw_only=True):
    """All calls of one optimizer's step, or of its zero_grad."""

    name: Annotated[Name, column("optimizer", "as torch names it")]
    calls: Annotated[Count, column("calls", "of it")]
    launches_median: Annotated[MeanCount, column("launches", "kernels, copies and fills that a call launched, median")]
    single_median: Annotated[
        MeanCount,
        column("single", "of these, one tensor at a time: by no foreach, fused or compiled operator; median"),
    ]
    device_ns: Annotated[Ns, column("device", "time in which work of single launches ran, each moment once")]
    idle_ns: Annotated[Ns, column("idle before", "idle time of late single launches in the gaps that they ended")]
    operators: Annotated[tuple[LoopOperator, ...], column("", "who launched one at a time, the most first; at most 8")]


class Optimizers(Result, frozen=True, kw_only=True):
    optimizers: tuple[OptimizerWork, ...]  # the most idle time first


def analyze(chains: Chains) -> Optimizers:
    host, names = chains.host, chains.trace.names
    named = (host.cat == Cat.ANNOTATION) & names.str.contains(_WORK).to_numpy()[host.name]
    if not named.any():
        return Optimizers(optimizers=())
    at_once = (host.cat == Cat.OP) & matches(names, _LISTS)[host.name] | np.isin(
        host.role, (Role.REGION, Role.REGION_PART)
    )
    work = chains.device.frame.with_row_index("row").filter(pl.col("launch").is_not_null())
    launch = work["launch"].to_numpy()
    call = host.nearest(named)[launch]
    # Kernels for lists of tensors say so themselves, where a library launches them from Python.
    single = (host.nearest(at_once)[launch] < 0) & (host.call[launch] != Call.GRAPH)
    single &= (work["kind"] != "optimizer").to_numpy()
    holder = host.holder[launch]
    work = work.with_columns(
        call=pl.Series(call),
        optimizer=pl.Series(np.where(call >= 0, host.name[call], -1)),
        single=pl.Series(single),
        operator=pl.Series(np.where(holder >= 0, host.name[holder], -1)),
    ).filter(pl.col("call") >= 0)
    waited = exposure.gaps_of(chains, LATE).filter(~pl.col("edge")).select(row="after", waited="ns")
    work = work.join(waited, on="row", how="left", maintain_order="left")
    calls = np.bincount(host.name[named], minlength=len(names))
    rows = []
    for (name,), mine in work.group_by("optimizer", maintain_order=True):
        alone = mine.filter("single")
        each = mine.group_by("call").agg(launches=pl.len(), single=pl.col("single").sum())
        rows.append(
            OptimizerWork(
                name=str(names[int(name)]),
                calls=int(calls[name]),
                launches_median=_median(each["launches"]),
                single_median=_median(each["single"]),
                device_ns=int(exposure.once(alone).sum()),
                idle_ns=int(alone["waited"].sum()),
                operators=_operators(chains, alone),
            )
        )
    return Optimizers(optimizers=tuple(sorted(rows, key=lambda row: (-row.idle_ns, row.name))))


def _median(counts: pl.Series) -> float:
    return float(np.median(counts.to_numpy())) if len(counts) else 0.0


def _operators(chains: Chains, alone: pl.DataFrame) -> tuple[LoopOperator, ...]:
    """Per operator the median of its launches in the calls that have any."""
    counted = (
        alone.group_by("operator", "call")
        .len("count")
        .group_by("operator")
        .agg(pl.col("count").median(), total=pl.col("count").sum())
        .sort("total", "operator", descending=[True, False])
        .head(LISTED)
    )
    return tuple(
        LoopOperator(name=name or "(no operator)", per_call=count)
        for name, count in zip(chains.trace.text(counted["operator"]), counted["count"], strict=True)
    )
