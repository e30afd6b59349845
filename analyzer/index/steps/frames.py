"""Steps that Python frames show: an engine's, calls of the outermost module, or frames that recur."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.steps.scene import EVENTS, LAUNCHES, WHOLE, Found, How, Scene, of_rows

if TYPE_CHECKING:
    from analyzer.index.tree import Ints

#: Shares of the linked device events that steps must hold to be believed: an engine's, other frames, and of these
#: what recurs.
ENGINE_HOLDS, HOLD, RECURS = 0.5, 0.8, 0.5
#: The frame whose children are looked at holds this much.
AROUND = 0.9
#: A part that occurs exactly once between two calls of the heaviest one this often belongs to its iteration.
ONCE = 0.8


def engine(scene: Scene) -> Found | None:
    chains, frames = scene.chains, scene.chains.frames
    if not frames.height:
        return None
    said = scene.engines.said(chains.trace.names, "frame")["engine"].is_not_null().to_numpy()
    mine = said[frames.name]
    rows = np.nonzero(mine & (frames.enclosing(mine) < 0))[0]
    found = of_rows(scene, How.ENGINE_FRAMES, frames, rows, frames=True)
    found = found.only(scene.events(found) > 0)
    return found if found.count >= 2 and scene.held(found) >= ENGINE_HOLDS else None


def _outermost_modules(scene: Scene) -> Ints:
    frames = scene.chains.frames
    top = scene.is_module & (frames.enclosing(scene.is_module) < 0)
    rows: Ints = np.nonzero(top & (scene.frame_events > 0))[0]
    return rows


def one_module(scene: Scene) -> bool:
    """Whether one call of an outermost module is nearly the whole run: what recurs in it are its layers."""
    if not scene.chains.frames.height:
        return False
    events = scene.frame_events[_outermost_modules(scene)]
    return bool(len(events) and events.max() >= WHOLE * scene.launched.total)


def modules(scene: Scene) -> Found | None:
    if not scene.chains.frames.height:
        return None
    found = of_rows(scene, How.MODULES, scene.chains.frames, _outermost_modules(scene), frames=True)
    return _iterations(scene, found)


def recurring(scene: Scene) -> Found | None:
    """Children of the deepest frame that holds nearly all."""
    frames = scene.chains.frames
    if not frames.height:
        return None
    inside_module = scene.is_module | (frames.enclosing(scene.is_module) >= 0)
    around = np.nonzero((scene.frame_events >= AROUND * scene.launched.total) & ~inside_module)[0]
    parent = int(around[-1]) if len(around) else -1
    rows = np.nonzero((frames.parent == parent) & (scene.frame_events > 0))[0]
    if not len(rows) or scene.frame_events[rows].max() >= WHOLE * scene.launched.total:
        return None
    return _iterations(scene, of_rows(scene, How.FRAMES, frames, rows, frames=True))


def _iterations(scene: Scene, found: Found) -> Found | None:
    """Calls that hold the work together and recur, parts of one iteration made one."""
    if not found.count or scene.held(found) < HOLD or scene.recurring(found) < RECURS:
        return None
    found = _merged(scene, found)
    slot = scene.slots(found)
    launches = np.bincount(slot[slot >= 0], minlength=found.count)
    long = (launches >= LAUNCHES) | (scene.events(found) >= EVENTS)
    found = found.only(long)
    enough = found.count >= 2 and scene.held(found) >= HOLD and scene.recurring(found) >= RECURS
    return found if enough else None


def _merged(scene: Scene, found: Found) -> Found:
    """Make one step of what occurs exactly once between two calls of the heaviest part."""
    names, part = np.unique(found.name.to_numpy().astype(str), return_inverse=True)
    part = part.ravel()
    if len(names) < 2:
        return found
    heavy = int(np.argmax(np.bincount(part, weights=scene.events(found))))
    calls = np.nonzero(part == heavy)[0]
    if len(calls) < 2:
        return found
    between = np.searchsorted(calls, np.arange(found.count), "right") - 1  # after which call of the heaviest
    whole = (between >= 0) & (between < len(calls) - 1)
    table = np.zeros((len(calls) - 1, len(names)), np.int64)
    np.add.at(table, (between[whole], part[whole]), 1)
    members = np.nonzero((table == 1).mean(0) >= ONCE)[0]
    if len(members) < 2:
        return found
    mine = np.isin(part, members)
    first = int(part[np.nonzero(mine)[0][0]])  # an iteration begins with the part that came first
    begins = np.nonzero(part == first)[0]
    number = np.searchsorted(begins, np.arange(found.count), "right") - 1
    last = np.zeros(len(begins), np.int64)
    np.maximum.at(last, number[mine & (number >= 0)], found.end[mine & (number >= 0)])
    steps = found.only(begins)
    steps = replace(steps, end=np.maximum(last, steps.end))
    heaviest = pl.Series(steps.name.name, [names[heavy]] * len(begins), dtype=pl.String)
    # What belongs to no iteration stays what it is, unless it lies inside one.
    rest = found.only(np.nonzero(~mine)[0])
    slot = np.maximum(np.searchsorted(steps.start, rest.start, "right") - 1, 0)
    rest = rest.only((rest.start < steps.start[slot]) | (rest.start >= steps.end[slot]))
    order = np.argsort(np.concatenate([steps.start, rest.start]), kind="stable")
    both = Found(
        found.how,
        np.concatenate([steps.start, rest.start]),
        np.concatenate([steps.end, rest.end]),
        np.concatenate([steps.group, rest.group]),
        pl.concat([heaviest, rest.name.rename(heaviest.name)]),
        np.concatenate([steps.frame, rest.frame]),
    )
    return both.only(order)
