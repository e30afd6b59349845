"""Where a run's steps are: the profiler's, an engine's, annotations or frames that recur, else the sequence.

The rules are tried in this order, each with a guard that keeps out what recurs and is no step (layers above
all). Durations play no part. What is found is a `Found`: intervals of host time, disjoint within a group of
threads (`launched.groups`) or within a process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import sequence, step_kinds
from analyzer.index.launched import groups, launched
from analyzer.index.vocabulary import Role
from analyzer.index.within import processes

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.engines import Engines
    from analyzer.index.launched import Launched
    from analyzer.index.tree import Ints, Mask, Tree

#: Shares of the linked device events that steps must hold to be believed, by what they were found by.
PROFILER_HOLDS, ANNOTATIONS_HOLD, FRAMES_HOLD, ENGINE_HOLDS = 0.5, 0.6, 0.8, 0.5
#: One call that holds this much is the whole run: what recurs in it are layers.
WHOLE = 0.8
#: The frame whose children are looked at holds this much.
AROUND = 0.9
#: A part that occurs exactly once between two calls of the heaviest one this often belongs to its iteration.
ONCE = 0.8
#: What lies inside profiler steps is believed where it recurs this often a step, holds this many events (median),
#: and lies within one profiler step this often.
INNER_CALLS, INNER_EVENTS, INNER_WITHIN = 3, 32, 0.9
#: A step launches this many calls, or this many events by graphs: less is an operator's benchmark.
LAUNCHES, EVENTS = 8, 100
#: Annotations within one another, as deep as anyone nests them.
_DEPTH = 16

#: Annotations that are no steps: libraries' own.
_NO_STEP = (
    r"^nccl:|^Optimizer\.|DataLoader|CompiledFxGraph|DistributedDataParallel|(?i:^fsdp|fullyshardeddataparallel)"
    r"|dynamo|^Torch-Compiled|^Compiled(?:Function|Autograd)|^capture_|^autograd::|^PyTorch Profiler"
)
_NO_STEP_ROLES = (
    Role.STEP, Role.REGION, Role.REGION_PART, Role.GUARDS, Role.PROLOGUE, Role.COMPILE, Role.INPUT, Role.COLLECTIVE,
)  # fmt: skip
_MODULE = "nn.Module: "


class How(Enum):
    """What steps were found by."""

    PROFILER = "profiler steps"
    ENGINE = "annotations of an engine"
    ANNOTATIONS = "annotations"
    ENGINE_FRAMES = "Python frames of an engine"
    MODULES = "calls of the outermost module"
    FRAMES = "Python frames that recur"
    READS = "waits for the device and copies to the host"
    PERIOD = "a sequence of launches that repeats"
    BACKWARD = "starts of the backward pass"
    INPUTS = "copies to the device"
    GRAPHS = "launches of graphs"


@dataclass(frozen=True)
class Found:
    """Steps, by group and start.

    start, end  host time (ns).
    group       of threads; of a process where `by_process`.
    name        as recorded; "" where the sequence alone shows them.
    frame       row of the frames' tree, -1: not found by a frame.
    """

    how: How
    start: Ints
    end: Ints
    group: Ints
    name: pl.Series
    frame: Ints
    by_process: bool = False

    @property
    def count(self) -> int:
        return len(self.start)

    def only(self, some: Mask | Ints) -> Found:
        return replace(
            self, start=self.start[some], end=self.end[some], group=self.group[some], name=self.name.gather(
                np.arange(self.count)[some]
            ), frame=self.frame[some],
        )  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """What the rules look at."""

    chains: Chains
    engines: Engines

    @cached_property
    def launched(self) -> Launched:
        return launched(self.chains)

    @cached_property
    def groups(self) -> Ints:
        return groups(self.chains)

    @cached_property
    def main(self) -> int:
        """The group that launches most; -1: none."""
        group, events = self.launched.group, self.launched.events
        return int(np.argmax(np.bincount(group, weights=events))) if len(group) else -1

    @cached_property
    def is_module(self) -> Mask:
        mine: Mask = self.chains.trace.names.str.starts_with(_MODULE).to_numpy()[self.chains.frames.name]
        return mine

    @cached_property
    def frame_events(self) -> Ints:
        """Device events launched while each frame of the main group's own thread is open; 0 on others."""
        frames, mine = self.chains.frames, self.launched.group == self.main
        start = self.launched.start[mine]
        total = np.concatenate(([0], np.cumsum(self.launched.events[mine])))
        inside = total[np.searchsorted(start, frames.end)] - total[np.searchsorted(start, frames.start)]
        out: Ints = np.where(frames.thread == self.main, inside, 0)
        return out

    def slots(self, found: Found) -> Ints:
        """Of each launch its step, -1: none."""
        by = self.launched.process if found.by_process else None
        return self.launched.slots(found.group, found.start, found.end, by)

    def events(self, found: Found) -> Ints:
        """Device events that each step launched."""
        slot = self.slots(found)
        held = slot >= 0
        return np.bincount(slot[held], weights=self.launched.events[held], minlength=found.count).astype(np.int64)

    def held(self, found: Found) -> float:
        """Share of the linked device events that the steps launched."""
        return float(self.events(found).sum()) / max(self.launched.total, 1)

    def work(self, found: Found) -> Ints:
        """Of each device row its step, -1: none."""
        step = np.full(self.chains.host.height + 1, -1, np.int64)
        step[self.launched.row] = self.slots(found)
        of_work: Ints = step[self.chains.device.frame["launch"].fill_null(-1).to_numpy()]
        return of_work

    def kinds(self, found: Found) -> Ints:
        """Kind of each step by its folded name, an optimizer's step in it, and what it launches."""
        by = self.chains.host.process if found.by_process else self.groups
        update = step_kinds.updates(self.chains, found.group, found.start, found.end, by)
        label = np.unique(folded(found.name).to_numpy().astype(str), return_inverse=True)[1].ravel() * 2 + update
        return step_kinds.kinds(self.chains, self.work(found), found.count, label)


def find(scene: Scene) -> Found | None:
    """The run's steps; None where nothing recorded separates them."""
    if not scene.launched.total:
        return None
    steps = _profiler(scene)
    if steps is not None:
        inner = _inner(scene, steps)
        return inner if inner is not None else steps
    for rule in (_engine, _annotations, _engine_frames):
        found = rule(scene)
        if found is not None:
            return found
    if _one_module(scene):
        return None
    for rule in (_modules, _frames, _sequence):
        found = rule(scene)
        if found is not None:
            return found
    return None


def folded(names: pl.Series) -> pl.Series:
    """Names with every number as `#`."""
    return names.str.replace_all(r"\d+(?:\.\d+)?", "#")


def _of_rows(scene: Scene, how: How, tree: Tree, rows: Ints, *, frames: bool, by_process: bool = False) -> Found:
    group = processes(scene.chains)[rows] if by_process else scene.groups[tree.thread[rows]]
    order = np.lexsort((tree.start[rows], group))
    rows = rows[order]
    names = scene.chains.trace.names.gather(tree.name[rows])
    where = rows.astype(np.int64) if frames else np.full(len(rows), -1, np.int64)
    return Found(how, tree.start[rows], tree.end[rows], group[order], names, where, by_process)


def _profiler(scene: Scene) -> Found | None:
    rows = scene.chains.host.steps
    if len(rows) < 2:
        return None
    found = _of_rows(scene, How.PROFILER, scene.chains.host, rows, frames=False, by_process=True)
    return found if scene.held(found) >= PROFILER_HOLDS else None


def _inner(scene: Scene, steps: Found) -> Found | None:
    """Model calls inside profiler steps, where those are the steps that an engineer would speak of."""
    for rule in (_engine, _engine_frames, _modules, _frames, _reads):
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


# -- annotations -----------------------------------------------------------------------------------


def _engine(scene: Scene) -> Found | None:
    chains = scene.chains
    said = scene.engines.said(chains.trace.names, "annotation")["engine"].is_not_null().to_numpy()
    mine = said[chains.host.name] & (chains.host.cat == Cat.ANNOTATION)
    rows = np.nonzero(mine & (chains.host.enclosing(mine) < 0))[0]
    if not len(rows):
        return None
    found = _of_rows(scene, How.ENGINE, chains.host, rows, frames=False)
    found = found.only(scene.events(found) > 0)
    return found if found.count else None


def _annotations(scene: Scene) -> Found | None:
    chains, host = scene.chains, scene.chains.host
    no_step = chains.trace.names.str.contains(_NO_STEP).to_numpy()[host.name]
    open_ = (chains.host.cat == Cat.ANNOTATION) & ~no_step & ~np.isin(chains.host.role, _NO_STEP_ROLES)
    if not open_.any():
        return None
    fold = folded(chains.trace.names).rank("dense").to_numpy()[host.name]
    holds = host.below(open_.astype(np.int64)) > 1  # another one in it
    for _ in range(_DEPTH):
        top = open_ & (host.enclosing(open_) < 0)
        once = np.bincount(fold[top], minlength=int(fold.max()) + 1) == 1
        opened = top & once[fold] & holds
        if not opened.any():
            break
        open_ &= ~opened
    found = _of_rows(scene, How.ANNOTATIONS, host, np.nonzero(top)[0], frames=False)
    found = found.only(scene.events(found) > 0)
    return found if _recurring(scene, found) >= ANNOTATIONS_HOLD else None


def _recurring(scene: Scene, found: Found) -> float:
    """Share of the device events in steps whose name occurs twice or more."""
    if not found.count:
        return 0.0
    fold = folded(found.name).rank("dense").to_numpy()
    return float(scene.events(found)[np.bincount(fold)[fold] > 1].sum()) / scene.launched.total


# -- stacks ----------------------------------------------------------------------------------------


def _engine_frames(scene: Scene) -> Found | None:
    chains, frames = scene.chains, scene.chains.frames
    if not frames.height:
        return None
    said = scene.engines.said(chains.trace.names, "frame")["engine"].is_not_null().to_numpy()
    mine = said[frames.name]
    rows = np.nonzero(mine & (frames.enclosing(mine) < 0))[0]
    found = _of_rows(scene, How.ENGINE_FRAMES, frames, rows, frames=True)
    found = found.only(scene.events(found) > 0)
    return found if found.count >= 2 and scene.held(found) >= ENGINE_HOLDS else None


def _outermost_modules(scene: Scene) -> Ints:
    frames = scene.chains.frames
    top = scene.is_module & (frames.enclosing(scene.is_module) < 0)
    rows: Ints = np.nonzero(top & (scene.frame_events > 0))[0]
    return rows


def _one_module(scene: Scene) -> bool:
    """Whether one call of an outermost module is nearly the whole run: what recurs in it are its layers."""
    if not scene.chains.frames.height:
        return False
    events = scene.frame_events[_outermost_modules(scene)]
    return bool(len(events) and events.max() >= WHOLE * scene.launched.total)


def _modules(scene: Scene) -> Found | None:
    if not scene.chains.frames.height:
        return None
    found = _of_rows(scene, How.MODULES, scene.chains.frames, _outermost_modules(scene), frames=True)
    return _iterations(scene, found)


def _frames(scene: Scene) -> Found | None:
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
    return _iterations(scene, _of_rows(scene, How.FRAMES, frames, rows, frames=True))


def _iterations(scene: Scene, found: Found) -> Found | None:
    """Calls that hold the work together and recur, parts of one iteration made one."""
    if not found.count or scene.held(found) < FRAMES_HOLD or _recurring(scene, found) < PROFILER_HOLDS:
        return None
    found = _merged(scene, found)
    slot = scene.slots(found)
    launches = np.bincount(slot[slot >= 0], minlength=found.count)
    long = (launches >= LAUNCHES) | (scene.events(found) >= EVENTS)
    found = found.only(long)
    enough = found.count >= 2 and scene.held(found) >= FRAMES_HOLD and _recurring(scene, found) >= PROFILER_HOLDS
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


# -- the sequence ----------------------------------------------------------------------------------


def _reads(scene: Scene) -> Found | None:
    return _of_cuts(scene, How.READS, sequence.reads)


def _sequence(scene: Scene) -> Found | None:
    """Steps that the sequence of launches alone shows."""
    found = _of_cuts(scene, How.READS, sequence.reads)
    period = _of_cuts(scene, How.PERIOD, sequence.period)
    if found is not None and period is not None:
        # A period of two or three reads is the iteration, and so is one of which one read holds most (the others
        # are small); one that is finer by half lies inside what is read.
        ratio = found.count / period.count
        kind, events = scene.kinds(found), scene.events(found)
        calls = np.bincount(kind)[kind]
        once = events[np.abs(calls - period.count) <= 1].sum() >= PROFILER_HOLDS * events.sum()
        return period if 1.5 <= ratio < 3.5 or ratio <= 0.5 or (ratio > 1.5 and once) else found
    if found is not None or period is not None:
        return found if found is not None else period
    for how, cuts in (
        (How.BACKWARD, sequence.backward),
        (How.INPUTS, sequence.inputs),
        (How.GRAPHS, sequence.graphs),
    ):
        found = _of_cuts(scene, how, cuts)
        if found is not None:
            return found
    return None


def _of_cuts(scene: Scene, how: How, cuts: sequence.Rule) -> Found | None:
    """Steps between cuts of the main group's sequence, if they are any; see `sequence`."""
    mine = np.nonzero(scene.launched.group == scene.main)[0]
    line = sequence.Line(scene.chains, scene.launched, mine)
    first = cuts(line)
    if first is None or len(first) < 2:
        return None
    first = sequence.joined(first, len(mine))
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
    usual = calls[kind] >= sequence.CALLS
    # What came before the loop and what the end of the recording cut are no steps.
    ends = np.zeros(count, bool)
    ends[[0, -1]] = True
    keep = ~(ends & (calls[kind] == 1))
    long = np.median(launches) >= LAUNCHES or np.median(events) >= EVENTS
    good = long and events[usual].sum() >= sequence.HOLDS * scene.launched.total
    return found.only(keep) if good else None
