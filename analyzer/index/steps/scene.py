"""What the rules that look for steps look at, and what they find."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.launched import groups, launched
from analyzer.index.steps import kinds
from analyzer.index.within import processes

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.engines import Engines
    from analyzer.index.launched import Launched
    from analyzer.index.tree import Ints, Mask, Tree

#: One call that holds this share of the linked device events is the whole run: what recurs in it are layers.
WHOLE = 0.8
#: A step launches this many calls, or this many events by graphs: less is an operator's benchmark.
LAUNCHES, EVENTS = 8, 100
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

    @property
    def engines(self) -> Engines:
        return self.chains.engines

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
        update = kinds.updates(self.chains, found.group, found.start, found.end, by)
        label = np.unique(folded(found.name).to_numpy().astype(str), return_inverse=True)[1].ravel() * 2 + update
        return kinds.kinds(self.chains, self.work(found), found.count, label)

    def recurring(self, found: Found) -> float:
        """Share of the device events in steps whose name occurs twice or more."""
        if not found.count:
            return 0.0
        fold = folded(found.name).rank("dense").to_numpy()
        return float(self.events(found)[np.bincount(fold)[fold] > 1].sum()) / self.launched.total


def folded(names: pl.Series) -> pl.Series:
    """Names with every number as `#`."""
    return names.str.replace_all(r"\d+(?:\.\d+)?", "#")


def of_rows(scene: Scene, how: How, tree: Tree, rows: Ints, *, frames: bool, by_process: bool = False) -> Found:
    group = processes(scene.chains)[rows] if by_process else scene.groups[tree.thread[rows]]
    order = np.lexsort((tree.start[rows], group))
    rows = rows[order]
    names = scene.chains.trace.names.gather(tree.name[rows])
    where = rows.astype(np.int64) if frames else np.full(len(rows), -1, np.int64)
    return Found(how, tree.start[rows], tree.end[rows], group[order], names, where, by_process)
