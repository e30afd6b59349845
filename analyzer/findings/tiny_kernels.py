"""Most launches are point-wise kernels too short for the host to keep up with.

What it means
    An addition, a cast or a small reduction takes the device a microsecond, and the host many times that. Each is
    a launch of its own, though neighbours could be one kernel.

How it is computed
    Kernels that fusion can join (element-wise, copies by kernel, reductions, softmax, normalisation, optimizer
    steps) and that are shorter than this trace's median launch call: below that even a perfect host thread
    cannot feed the device. It fires where they are half of all launches, at least a hundred (fewer are not
    "many"), and dispatch leaves the device idle for a quarter of its span. "Up to" is the idle time that
    such kernels ended. Where the device is busy, their launches are hidden behind it, and this stays silent.

What to try
    torch.compile(model) joins point-wise chains and reductions into single Triton kernels. By hand:
    torch.addcmul for mul + add, F.layer_norm in place of its formula, torch._foreach_* for lists of tensors,
        torch.optim.AdamW(model.parameters(), fused=True)

When it is wrong
    Kernels that a dependency keeps apart (a loop over time steps) do not fuse; a CUDA graph still removes their
    launches. Idle time is the launch path's, not only these kernels': `overhead-bound` counts the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from analyzer import units
from analyzer.analyses.launches import Launches
from analyzer.events.schema import Cat
from analyzer.findings import HOLDS, finding, grade, named, share_of, take
from analyzer.findings.overhead_bound import CAUSES
from analyzer.index import exposure
from analyzer.index.build import Call, Chains
from analyzer.model import Finding, Result, Severity

NAME = "tiny-kernels"
FUSABLE = ("elementwise", "copy", "reduction", "softmax", "normalisation", "optimizer")
MOST, MANY = 0.5, 100


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    launches = take(results, Launches)
    if launches.call_ns is None or share_of(chains, exposure.idle_ns(chains, CAUSES, edges=False)) < HOLDS:
        return
    work = chains.device.with_row_index("row").with_columns(kind=exposure.kinds(chains))
    linked = work.filter(pl.col("launch").is_not_null() & (pl.col("cat") == int(Cat.KERNEL)))
    # What a graph launches costs the host nothing more.
    single = chains.call[linked["launch"].to_numpy()] != Call.GRAPH
    linked = linked.filter(pl.Series(single))
    tiny = linked.filter(pl.col("kind").is_in(FUSABLE) & (pl.col("dur") < launches.call_ns))
    if tiny.height < MANY or tiny.height < MOST * launches.count:
        return
    ended = exposure.gaps_of(chains, CAUSES).join(tiny.select(after="row"), on="after", how="semi")
    ns = int(ended["ns"].sum())
    holder = chains.holder[tiny["launch"].to_numpy()]
    operators = (
        tiny.with_columns(operator=pl.Series(chains.host.name[holder]))
        .filter(pl.Series(holder >= 0))
        .group_by("operator")
        .agg(pl.len())
        .sort("len", "operator", descending=[True, False])
        .head(4)
    )
    counted = ", ".join(
        f"{n:,} {name}" for name, n in zip(chains.text(operators["operator"]), operators["len"], strict=True)
    )
    kinds = tiny.group_by("kind").agg(pl.col("dur").sum()).sort("dur", descending=True)
    yield finding(
        NAME,
        grade(share_of(chains, ns), Severity.WARNING),
        f"{tiny.height:,} of {launches.count:,} launches are point-wise kernels shorter than their launch call",
        (
            f"kernel median {units.duration(tiny['dur'].median())}, launch call median "  # type: ignore[arg-type]
            f"{units.duration(launches.call_ns)}; by operator: {counted}",
            f"device time by kind: {named(kinds.iter_rows())}",
        ),
        "torch.compile joins point-wise chains into one kernel; for the optimizer fused=True; a CUDA graph where "
        "they cannot be joined.",
        ns,
        chains,
    )
