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

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.idle import IdleCause, Place
from analyzer.findings import HOLDS, WORTH, bound, causes_of, finding, in_phase, named, owners_of, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "input-starvation"


def find(results: Results) -> Iterable[Finding]:
    causes = causes_of(results, ("input_pipeline",))
    if not causes:
        return
    (waited,) = causes
    share = share_of(results, waited.ns)
    by_verdict = bound(results) == "input-bound"
    if share < WORTH and not by_verdict:
        return
    owners = owners_of(causes)
    yield finding(
        results,
        NAME,
        Severity.ERROR if by_verdict or share >= HOLDS else Severity.WARNING,
        f"the device waits while the host prepares input{in_phase(results, ('input_pipeline',))}",
        (
            _gaps(waited),
            f"CPU at the time: {named(owners, 72)}",
            f"Python: {waited.place.frame}" if waited.place else None,
        ),
        _advice([name for name, _ in owners], waited.place),
        waited.ns,
    )


def _gaps(waited: IdleCause) -> str | None:
    gaps, ended = waited.mostly, waited.ended_by
    if gaps is None or ended is None:
        return None
    return (
        f"{plural(gaps.count, 'gap')}, median {units.duration(gaps.median_ns)}, max "
        f"{units.duration(gaps.max_ns)}, {ended.count:,} of them ended by {units.short_name(ended.name, 48)}"
    )


def _advice(owners: list[str], place: Place | None) -> str:
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
