"""Collectives of each step against their own fastest run: what lies above it is waiting for another rank, or the link.

A collective is known by its place in the step's order, so that it moves the same data each time. All-to-all and
point-to-point are left out: what they move varies with the step's data.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.report.columns import Count, Ns, Row, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

ORDER = 58

#: With fewer steps the fastest run says little.
STEPS = 3
#: How much these move depends on the data of the step, and so does their time.
_UNEVEN = r"(?i)SendRecv|all_?to_?all"


class CollectivePlace(Row, frozen=True, kw_only=True):
    """One collective of the step, over the steps."""

    IDENTITY: ClassVar[str] = "place"

    device: Annotated[Count, column("device", "that it ran on")]
    place: Annotated[Count, column("place", "in the order of the step's collectives, from 0")]
    runs: Annotated[Durations, column("", "durations, one a step")]
    fastest_ns: Annotated[Ns, column("fastest", "the shortest of them")]
    excess_ns: Annotated[Ns, column("excess", "time above the fastest run of the same kernel, each moment once")]


class CollectiveWaits(Result, frozen=True, kw_only=True):
    """Largest excess first; none where fewer than three steps have equally many collectives."""

    collective_waits: tuple[CollectivePlace, ...]


def analyze(chains: Chains) -> CollectiveWaits:
    calls = _by_place(chains)
    if calls is None:
        return CollectiveWaits(collective_waits=())
    places = (
        calls.group_by("device", "place")
        .agg(pl.col("dur"), excess=pl.min_horizontal(pl.col("dur") - pl.col("fastest"), "once").sum())
        .sort("excess", "device", "place", descending=[True, False, False])
    )
    return CollectiveWaits(
        collective_waits=tuple(
            CollectivePlace(device=device, place=place, runs=runs, fastest_ns=min(each), excess_ns=excess)
            for device, place, each, excess in places.iter_rows()
            if (runs := Durations.of(pl.Series(each)))
        )
    )


def _by_place(chains: Chains) -> pl.DataFrame | None:
    """Collectives with their place in the step's order and the fastest run of that place; None if steps differ."""
    steps = chains.host.steps
    rows = chains.device.frame.filter(pl.col("communication") & pl.col("launch").is_not_null())
    rows = rows.filter(~chains.trace.text(rows["name"]).str.contains(_UNEVEN))
    if len(steps) < STEPS or not rows.height:
        return None
    host = chains.host
    when = host.start[rows["launch"].to_numpy()]
    step = np.searchsorted(host.start[steps], when, "right") - 1
    inside = (step >= 0) & (when < host.end[steps][np.maximum(step, 0)])
    calls = (
        rows.select("device", "name", "dur")
        .with_columns(step=pl.Series(step), when=pl.Series(when), once=exposure.once(rows))
        .filter(pl.Series(inside))
        .sort("device", "step", "when")
        .with_columns(place=pl.int_range(pl.len()).over("device", "step"))
    )
    counts = calls.group_by("step").len()
    # The first step often has its collectives cut off, or moves other buckets.
    usual = counts["len"].mode()
    if not usual.len():
        return None
    good = counts.filter(pl.col("len") == usual.max())
    if good.height < STEPS:
        return None
    return calls.join(good, on="step", how="semi", maintain_order="left").with_columns(
        fastest=pl.col("dur").min().over("device", "place", "name")
    )
