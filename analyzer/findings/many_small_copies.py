"""Many small copies cost more to launch than to move.

What it means
    A copy of a few KiB takes a microsecond or two on the device whatever its size, and a launch on the host. A
    hundred of them a step cost what one large one would not.

How it is computed
    Memory copies of less than 64 KiB (PCIe moves that in about 2 µs: below it the set-up is the cost), grouped by
    the operators that asked for them, at least ten a step, or fifty without steps: fewer are the usual scalars.
    Copies that other findings explain are left out: bias copies of addmm, clones, and reads of scalars, which
    cost a wait and not a copy. "Up to" is their device time and the time that the device waited for their
    launch; it fires from a hundredth of the window on.

What to try
    Gather first: torch.cat or torch.stack on the host, one .to("cuda"); torch._foreach_copy_ for lists of tensors. In
    DDP gradients are copied into buckets and back, and buffers broadcast, one tensor at a time:
        DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)

When it is wrong
    Copies on a stream of their own, behind a busy device, cost little. broadcast_buffers=False changes results
    where ranks must share running statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from analyzer import units
from analyzer.analyses.copies import SMALL_BYTES
from analyzer.events.schema import Cat
from analyzer.findings import SEEN, finding, grade, share_of, spread
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

NAME = "many-small-copies"
PER_STEP, AT_ALL = 10, 50
_EXPLAINED = r"^aten::(?:addmm|baddbmm|_local_scalar_dense|nonzero|clone)$"


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    small = chains.device.filter(
        (pl.col("cat") == int(Cat.MEMCPY)) & (pl.col("bytes") < SMALL_BYTES) & pl.col("launch").is_not_null()
    )
    if small.height < AT_ALL:
        return
    host = chains.host
    holder = chains.holder[small["launch"].to_numpy()]
    explained = host.nearest(exposure.operators(chains, _EXPLAINED))[small["launch"].to_numpy()] >= 0
    small = small.with_columns(
        holder=pl.Series(holder),
        path=pl.Series(chains.path_id[holder]),
    ).filter(pl.Series((holder >= 0) & ~explained))
    least = max(AT_ALL, PER_STEP * len(chains.steps))
    if small.height < least:
        return
    rows = small["launch"].to_numpy()
    waited = int(exposure.waited_during(chains, host.start[rows], host.end[rows]).sum())
    total = int(small["dur"].sum()) + waited
    share = share_of(chains, total)
    if share < SEEN:
        return
    groups = (
        small.group_by("path")
        .agg(pl.len(), pl.col("holder").first(), pl.col("dur"), pl.col("bytes").median())
        .sort("len", "path", descending=[True, False])
        .head(3)
    )
    places = [(" > ".join(chains.path(r["holder"])[-3:]), r) for r in groups.iter_rows(named=True)]
    yield finding(
        NAME,
        grade(share, Severity.WARNING),
        f"{plural(small.height, 'copy', 'copies')} of less than {units.size(SMALL_BYTES)}",
        (f"{r['len']:,} in {place}: {spread(r['dur'])}, median {units.size(r['bytes'])}" for place, r in places),
        _advice([place for place, _ in places]),
        total,
        chains,
    )


def _advice(places: list[str]) -> str:
    said = []
    if any("copy_bucket" in p or "reducer" in p for p in places):
        said.append("DistributedDataParallel(..., gradient_as_bucket_view=True) leaves the gradients in their buckets")
    if any("DistributedDataParallel.forward" in p for p in places):
        said.append("broadcast_buffers=False, where ranks need no common statistics, saves the copies of buffers")
    if not said:
        said.append("gather before copying: torch.cat, then one .to(device); torch._foreach_copy_ for lists of tensors")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."
