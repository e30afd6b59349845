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

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.devices import Devices
from analyzer.analyses.kernels import Kernel, Kernels
from analyzer.analyses.traits import Traits
from analyzer.findings import HOLDS, WORTH, bound, finding, part_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "exposed-communication"


def find(results: Results) -> Iterable[Finding]:
    devices = results[Devices].devices
    exposed, share = part_of(results, "communication")
    total = sum(d.communication_ns for d in devices)
    if share < WORTH or not total:
        return
    by_verdict = bound(results) == "communication-bound"
    kernels = [k for k in results[Kernels].kernels if k.category == "kernel" and k.kind == "communication"]
    yield finding(
        results,
        NAME,
        Severity.ERROR if by_verdict or share >= HOLDS else Severity.WARNING,
        f"for {units.duration(exposed)} of the window the device communicates and computes nothing",
        (
            f"in the whole recording {units.duration(sum(d.exposed_communication_ns for d in devices))} of "
            f"{units.duration(total)} of communication overlap no compute",
            *(_line(k) for k in kernels[:3]),
        ),
        _advice(results, kernels[0].name if kernels else ""),
        exposed,
    )


def _line(k: Kernel) -> str:
    times = (
        units.duration(k.max_ns)
        if k.calls == 1
        else f"median {units.duration(k.median_ns)}, max {units.duration(k.max_ns)}"
    )
    return f"{units.short_name(k.name, 60)}: {k.calls:,} calls, total {units.duration(k.total_ns)}, {times}"


def _advice(results: Results, kernel: str) -> str:
    first = "Compare the ranks first: a collective also waits for the slowest peer."
    if "SendRecv" not in kernel and results[Traits].traits.data_parallel:
        return (
            f"{first} Then let DDP overlap more with backward (bucket_cap_mb, static_graph=True), send bf16 gradients "
            "(bf16_compress_hook), or accumulate under no_sync()."
        )
    return f"{first} Then overlap it with compute, send less (bf16), or use a faster link (NCCL_DEBUG=INFO)."
