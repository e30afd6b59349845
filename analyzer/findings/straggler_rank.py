"""This rank waited for others inside its collectives.

What it means
    A collective ends on all ranks at about the same time, so that a rank that arrives early spends the
    difference inside the collective's kernel. Long collectives here mean a slow rank elsewhere.

How it is computed
    From one trace: the same collective of each step (by its place in the step's order, so that it moves the same
    data; all-to-all is left out, since what it moves varies) is compared with its own fastest run. What lies above
    that is waiting, or a busy link. It needs three steps with equally many collectives, counts the places of a step
    whose typical run takes half again its fastest (less is the spread of a network), and fires where their waiting is
    a tenth of the window. "Up to" is that waiting. With less to go by it is silent: compare several ranks.

What to try
    Find the slow rank: the one whose collectives are short. Record all ranks, and look at that one for input, host
    work, or clocks:
        tracecli compare rank-0.json.gz rank-1.json.gz

When it is wrong
    Other traffic on the links, or a switch to another algorithm, lengthens collectives too. If every run waits, even
    the fastest does, and the figure is too small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from analyzer import units
from analyzer.findings import finding, share_of, spread
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

NAME = "straggler-rank"
STEPS = 3
LEAST = 0.1
TYPICAL = 1.5
#: How much these move depends on the data of the step, and so does their time.
_UNEVEN = r"(?i)SendRecv|all_?to_?all"


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    calls = _by_place(chains)
    if calls is None:
        return
    places = (
        calls.group_by("device", "place")
        .agg(
            pl.col("dur"),
            typical=pl.col("dur").median() / pl.col("dur").min(),
            waited=(pl.col("dur") - pl.col("fastest")).sum(),
        )
        .filter(pl.col("typical") >= TYPICAL)
        .sort("waited", descending=True)
    )
    excess = int(places["waited"].sum())
    if share_of(chains, excess) < LEAST:
        return
    durations = places["dur"][0].to_list()
    yield finding(
        NAME,
        Severity.WARNING,
        f"this rank waited {units.duration(excess)} in collectives, most likely for a slower one",
        (
            f"collective {places['place'][0] + 1} of each step: fastest {units.duration(min(durations))}, "
            f"{spread(durations)} over {plural(len(durations), 'step')}",
            f"{plural(places.height, 'place')} of a step where the typical run takes {TYPICAL:g} times its fastest",
        ),
        "Record the other ranks and look at the one whose collectives are short: it is the slow one.",
        excess,
        chains,
    )


def _by_place(chains: Chains) -> pl.DataFrame | None:
    """Collectives with their place in the step's order and the fastest run of that place; None if steps differ."""
    steps = chains.steps
    rows = chains.device.filter(pl.col("communication") & pl.col("launch").is_not_null())
    rows = rows.filter(~chains.text(rows["name"]).str.contains(_UNEVEN))
    if len(steps) < STEPS or not rows.height:
        return None
    host = chains.host
    when = host.start[rows["launch"].to_numpy()]
    step = np.searchsorted(host.start[steps], when, "right") - 1
    inside = (step >= 0) & (when < host.end[steps][np.maximum(step, 0)])
    calls = (
        rows.select("device", "name", "dur")
        .with_columns(step=pl.Series(step), when=pl.Series(when))
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
    return calls.join(good, on="step", how="semi").with_columns(
        fastest=pl.col("dur").min().over("device", "place", "name")
    )
