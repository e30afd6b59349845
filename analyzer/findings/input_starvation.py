"""The device waits while the host prepares input.

What it means
    Loading, decoding, augmenting or collating the next batch happens in the same thread that launches the
    model, or its workers cannot keep up. The device is idle for all of it.

How it is computed
    Idle time whose cause is the input pipeline: the launching thread was inside a DataLoader, a function of
    torch/utils/data, or an annotation whose name says that it loads or prepares data. The place named is the
    deepest Python frame in a file that was open for nine tenths of a gap (deeper ones came and went). It
    fires from a twentieth of the window on, as an error from a quarter, or when the verdict is input-bound.
    "Up to" is that idle time: at best loading hides entirely behind the device's work.

What to try
    Let other processes load, ahead of time, into pinned memory:
        DataLoader(ds, num_workers=8, persistent_workers=True, pin_memory=True, prefetch_factor=4)
        batch = batch.to("cuda", non_blocking=True)
    Do costly transforms once (cache them on disk), on the device, or in the workers. With workers already in
    use: more of them, fewer bytes a sample, a faster decoder.

When it is wrong
    A custom loader without an annotation is counted as Python under `overhead-bound`: wrap it in
    `torch.profiler.record_function("load_batch")`. With the device the bottleneck the rest of the run may
    take the freed time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

import polars as pl

from analyzer import units
from analyzer.analyses.overview import Overview
from analyzer.findings import HOLDS, WORTH, finding, named, share_of, take
from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

NAME = "input-starvation"
CAUSES = (Cause.INPUT_PIPELINE,)


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    ns = exposure.idle_ns(chains, CAUSES)
    share = share_of(chains, ns)
    by_verdict = take(results, Overview).verdict.bound == "input-bound"
    if share < WORTH and not by_verdict:
        return
    gaps = exposure.gaps_of(chains, CAUSES).filter(pl.col("ns") * 2 > pl.col("end") - pl.col("start"))
    place = exposure.place(chains, gaps) or exposure.place(chains, chains.edges)
    owners = exposure.owners(chains, CAUSES)
    yield finding(
        NAME,
        Severity.ERROR if by_verdict or share >= HOLDS else Severity.WARNING,
        "the device waits while the host prepares input",
        (_gaps(chains, gaps), f"CPU at the time: {named(owners, 72)}", f"Python: {place.frame}" if place else None),
        _advice([name for name, _ in owners], place),
        ns,
        chains,
    )


def _gaps(chains: Chains, gaps: pl.DataFrame) -> str | None:
    if not gaps.height:
        return None
    lengths = (gaps["end"] - gaps["start"]).to_list()
    ended = chains.text(chains.device["name"].gather(gaps["after"])).value_counts(sort=True, name="n")
    return (
        f"{plural(gaps.height, 'gap')}, median {units.duration(statistics.median(lengths))}, max "
        f"{units.duration(max(lengths))}, {ended['n'][0]:,} of them ended by {units.short_name(ended[0, 0], 48)}"
    )


def _advice(owners: list[str], place: exposure.Place | None) -> str:
    single = any("SingleProcess" in name for name in owners)
    several = any("MultiProcessing" in name for name in owners)
    function = place.frame.rpartition(": ")[2] if place else ""
    # A frame of the loader itself says no more than its annotation does.
    user = function if place and "torch/utils/data/" not in place.frame else ""
    if single:
        moved = f"Move {user}() out of the launching process" if user else "Load in other processes"
        return (
            f"{moved}: DataLoader(num_workers=8, persistent_workers=True, pin_memory=True), or do it once ahead of "
            "time; then .to(device, non_blocking=True)."
        )
    if several:
        return (
            "The workers cannot keep up: more num_workers, a higher prefetch_factor, cheaper or cached transforms"
            f"{f' (see {user})' if user else ''}."
        )
    return (
        "Prepare the next batch while the device works: a DataLoader with "
        "workers and pin_memory=True, then .to(device, non_blocking=True)."
    )
