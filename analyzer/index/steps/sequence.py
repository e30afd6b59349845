"""Steps that the sequence of launches alone shows: between two cuts of it."""

from __future__ import annotations

import numpy as np
import polars as pl

from analyzer.index.steps import cuts
from analyzer.index.steps.scene import EVENTS, LAUNCHES, Found, How, Scene

#: What one read a period holds of the work, where the period is the iteration and other reads are small.
ONE_READ = 0.5


def reads(scene: Scene) -> Found | None:
    """Steps between the reads of results."""
    return _of_cuts(scene, How.READS, cuts.reads)


def find(scene: Scene) -> Found | None:
    """Steps that the sequence of launches alone shows."""
    found = reads(scene)
    period = _of_cuts(scene, How.PERIOD, cuts.period)
    if found is not None and period is not None:
        # A period of two or three reads is the iteration, and so is one of which one read holds most (the others
        # are small); one that is finer by half lies inside what is read.
        ratio = found.count / period.count
        kind, events = scene.kinds(found), scene.events(found)
        calls = np.bincount(kind)[kind]
        once = events[np.abs(calls - period.count) <= 1].sum() >= ONE_READ * events.sum()
        return period if 1.5 <= ratio < 3.5 or ratio <= 0.5 or (ratio > 1.5 and once) else found
    if found is not None or period is not None:
        return found if found is not None else period
    for how, rule in (
        (How.BACKWARD, cuts.backward),
        (How.INPUTS, cuts.inputs),
        (How.GRAPHS, cuts.graphs),
    ):
        found = _of_cuts(scene, how, rule)
        if found is not None:
            return found
    return None


def _of_cuts(scene: Scene, how: How, rule: cuts.Rule) -> Found | None:
    """Steps between cuts of the main group's sequence, if they are any; see `cuts`."""
    mine = np.nonzero(scene.launched.group == scene.main)[0]
    line = cuts.Line(scene.chains, scene.launched, mine)
    first = rule(line)
    if first is None or len(first) < 2:
        return None
    first = cuts.joined(first, len(mine))
    past = np.append(first[1:], len(mine))
    if how is How.PERIOD:  # what is left of the last repeat
        past[-1] = min(past[-1], first[-1] + int(np.median(np.diff(first))))
    start = scene.launched.start[mine]
    row = scene.launched.row[mine]
    end = np.append(start, start[-1] + 1)[past]
    end[-1] = max(int(scene.chains.host.end[row[past[-1] - 1]]), int(start[past[-1] - 1]) + 1)
    count = len(first)
    found = Found(
        how,
        start[first],
        end,
        np.full(count, scene.main, np.int64),
        pl.Series("name", [""] * count, dtype=pl.String),
        np.full(count, -1, np.int64),
    )
    kind = scene.kinds(found)
    calls = np.bincount(kind)
    events = scene.events(found)
    launches = past - first
    usual = calls[kind] >= cuts.CALLS
    # What came before the loop and what the end of the recording cut are no steps.
    ends = np.zeros(count, bool)
    ends[[0, -1]] = True
    keep = ~(ends & (calls[kind] == 1))
    long = np.median(launches) >= LAUNCHES or np.median(events) >= EVENTS
    good = long and events[usual].sum() >= cuts.HOLDS * scene.launched.total
    return found.only(keep) if good else None
