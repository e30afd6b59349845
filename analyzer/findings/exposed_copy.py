"""Copies between host and device run while nothing else does.

What it means
    The device waits for data from the host, or hands results back, and computes nothing meanwhile.

How it is computed
    Device time in which only copies to or from the host ran, pinned or unmarked (pageable ones have a finding
    of their own). It fires from a tenth of the window on, as an error from a quarter or where the verdict is
    copy-bound; a shorter copy at the border of two steps is the usual. "Up to" is that time, less what the same
    copies would take if they alone filled the run: a copy that is longer than the compute beside it can hide only
    as much of itself as there is compute.

What to try
    Copy the next batch on a stream of its own while this one is computed:
        with torch.cuda.stream(copy_stream):
            nxt = batch.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(copy_stream)
    Send less: uint8 images, converted on the device; bf16; only what changed. Keep data on the device across steps.

When it is wrong
    If copies take longer than all compute the link is the limit, and overlap wins at most the compute's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from analyzer import units
from analyzer.analyses.copies import CopyKinds
from analyzer.analyses.overview import Overview
from analyzer.events.schema import Cat
from analyzer.findings import HOLDS, copied, finding, share_of, take
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity

NAME = "exposed-copy"
LEAST = 0.1
_HOST = r"(?i)HtoD|DtoH|Host -> Device|Device -> Host|Pinned"


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    name = chains.text(chains.device["name"])
    mine = (chains.device["cat"] == int(Cat.MEMCPY)) & name.str.contains(_HOST) & ~name.str.contains(r"(?i)pageable")
    if not mine.any():
        return
    busy, rest = _busy(chains.device), _busy(chains.device.filter(~mine))
    alone = busy - rest
    share = share_of(chains, alone)
    by_verdict = take(results, Overview).verdict.bound == "copy-bound"
    if share < LEAST:
        return
    kinds = [
        c for c in take(results, CopyKinds).rows if any(mark in c.kind for mark in ("HtoD", "DtoH", "Host", "Pinned"))
    ]
    yield finding(
        NAME,
        Severity.ERROR if by_verdict or share >= HOLDS else Severity.WARNING,
        f"the device does nothing but copy for {units.share(share)} of the window",
        (
            *(copied(c) for c in kinds[:3]),
            f"other work keeps the device busy for {units.duration(rest)}",
        ),
        "Copy the next batch on its own stream while this one is computed, and send fewer bytes (uint8 or bf16, "
        "converted on the device)."
        if rest >= alone
        else "The link is the limit: send fewer bytes (uint8 or bf16, converted on the device), or keep data on the "
        "device; overlap hides no more than the compute's own time.",
        min(alone, rest),
        chains,
    )


def _busy(work: pl.DataFrame) -> int:
    return int(Chains.union(work, ["device"])["length"].sum())
