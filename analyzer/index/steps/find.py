"""Where a run's steps are: the profiler's, an engine's, annotations or frames that recur, else the sequence.

The rules are tried in this order, each with a guard that keeps out what recurs and is no step (layers above
all). Durations play no part. What is found is a `Found`: intervals of host time, disjoint within a group of
threads (`launched.groups`) or within a process.
"""

from __future__ import annotations

import numpy as np

from analyzer.index.steps import frames, marks, sequence
from analyzer.index.steps.scene import WHOLE, Found, How, Scene, of_rows

#: The profiler's steps must hold this share of the linked device events to be believed.
PROFILER_HOLDS = 0.5
#: What lies inside profiler steps is believed where it recurs this often a step, holds this many events (median),
#: and lies within one profiler step this often.
INNER_CALLS, INNER_EVENTS, INNER_WITHIN = 3, 32, 0.9


def find(scene: Scene) -> Found | None:
    """The run's steps; None where nothing recorded separates them."""
    if not scene.launched.total:
        return None
    steps = _profiler(scene)
    if steps is not None:
        inner = _inner(scene, steps)
        return inner if inner is not None else steps
    for rule in (marks.engine, marks.recurring, frames.engine):
        found = rule(scene)
        if found is not None:
            return found
    if frames.one_module(scene):
        return None
    for rule in (frames.modules, frames.recurring, sequence.find):
        found = rule(scene)
        if found is not None:
            return found
    return None


def _profiler(scene: Scene) -> Found | None:
    rows = scene.chains.host.steps
    if len(rows) < 2:
        return None
    found = of_rows(scene, How.PROFILER, scene.chains.host, rows, frames=False, by_process=True)
    return found if scene.held(found) >= PROFILER_HOLDS else None


def _inner(scene: Scene, steps: Found) -> Found | None:
    """Model calls inside profiler steps, where those are the steps that an engineer would speak of."""
    for rule in (marks.engine, frames.engine, frames.modules, frames.recurring, sequence.reads):
        found = rule(scene)
        if found is None:
            continue
        events = scene.events(found)
        kind = scene.kinds(found)
        recurring = np.bincount(kind)[kind] >= INNER_CALLS * steps.count
        starts, ends = np.sort(steps.start), np.sort(steps.end)
        slot = np.maximum(np.searchsorted(starts, found.start, "right") - 1, 0)
        within = (found.start >= starts[slot]) & (found.end <= ends[slot])
        if (
            events[recurring].sum() >= WHOLE * scene.launched.total
            and np.median(events) >= INNER_EVENTS
            and within.mean() >= INNER_WITHIN
        ):
            return found
    return None
