"""Kernels that fusion can join and that are shorter than a launch call: no host thread can feed a device with them."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.index.vocabulary import Call
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, Text, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

ORDER = 52

FUSABLE = ("elementwise", "copy", "reduction", "softmax", "normalisation", "optimizer")
#: The launch path: what a late launch costs at the least.
LATE = (Cause.DISPATCH, Cause.COMPILED_OVERHEAD, Cause.PYTHON, Cause.LAUNCH_LATENCY)
#: Operators that are listed, the most launches first.
LISTED = 10


class Launcher(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("operator", "operator or annotation that launched them")]
    count: Annotated[Count, column("kernels", "small kernels that it launched")]


class SmallKind(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "kind"

    kind: Annotated[Text, column("kind", "of kernel, as in `kernels`")]
    ns: Annotated[Ns, column("device", "device time of the small ones")]


class Small(Row, frozen=True, kw_only=True):
    """Element-wise kernels, copies by kernel, reductions, softmax, normalisation and optimizer steps, each launched by
    itself, that are shorter than the median launch call."""

    launch_call_ns_median: Annotated[MeanNs | None, column("launch call", "median; null: no launch")]
    kernels: Annotated[Durations | None, column("", "the small kernels; null: none")]
    idle_ns: Annotated[Ns, column("idle before", "idle time of late launches in gaps that one of them ended")]
    operators: Annotated[tuple[Launcher, ...], column("", "who launched them; at most 10")]
    kinds: Annotated[tuple[SmallKind, ...], column("", "what they are, the most time first")]


class SmallKernels(Result, frozen=True, kw_only=True):
    small_kernels: Small


def analyze(chains: Chains) -> SmallKernels:
    call = _launch_call(chains)
    linked = chains.device.frame.with_row_index("row").with_columns(kind=chains.device.kind)
    linked = linked.filter(pl.col("launch").is_not_null() & (pl.col("cat") == int(Cat.KERNEL)))
    # What a graph launches costs the host nothing more.
    single = pl.Series(chains.host.call[linked["launch"].to_numpy()] != Call.GRAPH)
    small = linked.filter(single & pl.col("kind").is_in(FUSABLE) & (pl.col("dur") < (call or 0)))
    ended = (
        exposure.gaps_of(chains, LATE).filter(~pl.col("edge")).join(small.select(after="row"), on="after", how="semi")
    )
    kinds = small.group_by("kind").agg(pl.col("dur").sum()).sort("dur", "kind", descending=[True, False])
    return SmallKernels(
        small_kernels=Small(
            launch_call_ns_median=call,
            kernels=Durations.of(small["dur"]),
            idle_ns=int(ended["ns"].sum()),
            operators=_operators(chains, small),
            kinds=tuple(SmallKind(kind=kind, ns=ns) for kind, ns in kinds.iter_rows()),
        )
    )


def _launch_call(chains: Chains) -> float | None:
    """Median launch call, as `launches` has it."""
    rows = chains.device.launches
    launch = rows["launch"].to_numpy()
    causal = rows["work_start"].to_numpy() >= chains.host.start[launch]
    length = (chains.host.end - chains.host.start)[launch][causal]
    return float(np.median(length)) if len(length) else None


def _operators(chains: Chains, small: pl.DataFrame) -> tuple[Launcher, ...]:
    holder = chains.host.holder[small["launch"].to_numpy()]
    counted = (
        pl.DataFrame({"operator": chains.host.name[holder[holder >= 0]]})
        .group_by("operator")
        .len("count")
        .sort("count", "operator", descending=[True, False])
        .head(LISTED)
    )
    return tuple(
        Launcher(name=name, count=count)
        for name, count in zip(chains.trace.text(counted["operator"]), counted["count"], strict=True)
    )
