"""Collectives run while no compute overlaps them.

What it means
    The device has nothing to do but exchange data, or to wait for other ranks inside the collective's kernel: the
    time of a collective includes waiting for the last rank to arrive.

How it is computed
    Time in which a collective's kernel ran and no other kernel did, over all streams of a device. It fires from a
    twentieth of the window on, as an error from a quarter or where the verdict is communication-bound. "Up to" is that
    time: overlapped entirely, it would be hidden.

What to try
    First compare ranks: one with long collectives waits for one with short ones (see `straggler-rank`). Then
    overlap: DDP does so by buckets while backward runs,
        DistributedDataParallel(model, bucket_cap_mb=..., gradient_as_bucket_view=True, static_graph=True)
    gradients in bf16 (register_comm_hook with bf16_compress_hook), accumulation under no_sync(), FSDP's prefetch
    (forward_prefetch=True, limit_all_gathers). Slow links: NCCL_DEBUG=INFO shows the transport in use.

When it is wrong
    Tensor parallelism needs each result before it goes on: there only a faster link or a smaller message helps. A
    verdict on one rank cannot tell a slow network from a slow peer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from analyzer import units
from analyzer.analyses.devices import Devices
from analyzer.analyses.overview import Overview
from analyzer.findings import HOLDS, WORTH, finding, share_of, spread, take
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity

NAME = "exposed-communication"


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    devices = take(results, Devices).rows
    exposed = sum(d.exposed_ns for d in devices)
    total = sum(d.communication_ns for d in devices)
    share = share_of(chains, exposed)
    by_verdict = take(results, Overview).verdict.bound == "communication-bound"
    if share < WORTH or not total:
        return
    kernels = (
        chains.device.filter("communication")
        .group_by("name")
        .agg(pl.col("dur"), total=pl.col("dur").sum())
        .sort("total", descending=True)
        .head(3)
    )
    names = chains.text(kernels["name"]).to_list()
    yield finding(
        NAME,
        Severity.ERROR if by_verdict or share >= HOLDS else Severity.WARNING,
        f"{units.duration(exposed)} of {units.duration(total)} of communication overlaps no compute",
        (
            f"{units.short_name(name, 60)}: {len(r['dur']):,} calls, total {units.duration(r['total'])}, "
            f"{spread(r['dur'])}"
            for name, r in zip(names, kernels.iter_rows(named=True), strict=True)
        ),
        _advice(chains, names[0]),
        exposed,
        chains,
    )


def _advice(chains: Chains, kernel: str) -> str:
    first = "Compare the ranks first: a collective also waits for the slowest peer."
    if "SendRecv" not in kernel and chains.trace.names.str.contains("DistributedDataParallel", literal=True).any():
        return (
            f"{first} Then let DDP overlap more with backward (bucket_cap_mb, static_graph=True), send bf16 gradients "
            "(bf16_compress_hook), or accumulate under no_sync()."
        )
    return f"{first} Then overlap it with compute, send less (bf16), or use a faster link (NCCL_DEBUG=INFO)."
