"""Steps and their kinds: what a run consists of, told by what it launches.

    Steps   found by `steps.find`; each with its host interval, its wall time and the device work that it launched.
    phases  kinds of steps, most wall time first; named by the engine's words where it gives them.

The wall of a step runs from the later of its host's start and the end of the previous step's device work, to the
later of its own device work's end and its host's end (the next step's start where they adjoin). Walls of one group
of threads are disjoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.steps import kinds
from analyzer.index.steps.find import find
from analyzer.index.steps.scene import Found, How, Scene, folded

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.launched import Launched
    from analyzer.index.tree import Ints, Mask

#: What only the sequence of launches shows.
SEQUENCES = (How.READS, How.PERIOD, How.BACKWARD, How.INPUTS, How.GRAPHS)

#: Steps adjoin where no more than this share of a step lies between them, and nothing is launched there.
ADJOINS = 0.1

#: The phase of a step that the recording cut, or that launched nothing: it is in no median.
CUT = -1


@dataclass(frozen=True)
class Phases:
    """The steps of a run by group and start, and their kinds.

    found        where they are, and by what they were found; None: nothing separates them (all else is empty).
    phase        of each step; CUT: cut by the recording or without device work, and in no median.
    names        of each phase, all different; kind: what tells it ("decode", "update", "kind 2").
    begin, end   the wall of each step (ns).
    step         of each device row the step that launched it, -1: none.
    slot         of each launch of `launched` the same.
    batch, tokens  of each step, -1: the name does not say.
    """

    found: Found | None
    launched: Launched
    phase: Ints
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    begin: Ints
    end: Ints
    step: Ints
    slot: Ints
    batch: Ints
    tokens: Ints

    @property
    def count(self) -> int:
        return len(self.phase)


def phases(chains: Chains) -> Phases:
    scene = Scene(chains)
    found = find(scene)
    none = np.zeros(0, np.int64)
    if found is None:
        step = np.full(chains.device.frame.height, -1, np.int64)
        slot = np.full(len(scene.launched.row), -1, np.int64)
        return Phases(None, scene.launched, none, (), (), none, none, step, slot, none, none)
    step, slot = scene.work(found), scene.slots(found)
    begin, end = _walls(chains, scene, found, step, slot)
    said = _said(scene, found)
    phase, names, kinds = _name(chains, scene, found, said, end - begin)
    number = {key: said[key].fill_null(-1).to_numpy() for key in ("batch", "tokens")}
    return Phases(found, scene.launched, phase, names, kinds, begin, end, step, slot, number["batch"], number["tokens"])


def _walls(chains: Chains, scene: Scene, found: Found, step: Ints, slot: Ints) -> tuple[Ints, Ints]:
    """From and to (ns) of each step."""
    done = np.full(found.count, np.iinfo(np.int64).min, np.int64)
    mine = step >= 0
    np.maximum.at(done, step[mine], chains.device.frame["end"].to_numpy()[mine])
    begin, end = found.start.copy(), found.end.copy()
    between = _launches_between(scene.launched, found, slot)
    for one in np.unique(found.group):
        rows = np.nonzero(found.group == one)[0]
        reach = np.maximum.accumulate(done[rows])
        begin[rows[1:]] = np.maximum(begin[rows[1:]], reach[:-1])
        follows = found.start[rows[1:]]
        gap = follows - found.end[rows[:-1]]
        adjoins = ~between[rows[:-1]] & (gap <= ADJOINS * (found.end[rows[:-1]] - found.start[rows[:-1]]))
        end[rows[:-1]] = np.where(adjoins, follows, end[rows[:-1]])
        end[rows] = np.maximum(end[rows], reach)
    return begin, np.maximum(end, begin)


def _launches_between(launched: Launched, found: Found, slot: Ints) -> Mask:
    """Whether the step's threads launch something after it and before the next one."""
    own = launched.process if found.by_process else launched.group
    out = np.zeros(found.count, bool)
    for one in np.unique(found.group):
        rows = np.nonzero(found.group == one)[0]
        outside = launched.start[(own == one) & (slot < 0)]
        after = np.searchsorted(found.start[rows], outside, "right") - 1
        out[rows[after[after >= 0]]] = True
    return out


def _said(scene: Scene, found: Found) -> pl.DataFrame:
    """What the engine's words say of each step: `engines.SAID`."""
    what = "annotation" if found.how is How.ENGINE else "frame" if found.how is How.ENGINE_FRAMES else None
    if what is not None:
        return scene.engines.said(found.name, what)
    null = scene.engines.said(pl.Series([""], dtype=pl.String), "frame")
    said = pl.concat([null] * found.count) if found.count else null.clear()
    frames = scene.chains.frames
    if not frames.height or (found.frame < 0).all():
        return said
    phase = np.full(found.count, "", dtype=object)
    engine = np.full(found.count, "", dtype=object)
    rows = np.maximum(found.frame, 0)
    for row in reversed(scene.engines.inside()):
        open_ = scene.chains.trace.names.str.contains(row.pattern).to_numpy()[frames.name]
        inside = (found.frame >= 0) & (frames.nearest(open_)[rows] >= 0)
        if row.step is not None:
            inside &= found.name.str.contains(row.step).to_numpy()
        phase[inside], engine[inside] = row.phase, row.engine
    words = pl.DataFrame({"phase": phase.astype(str), "engine": engine.astype(str)})
    return said.with_columns(
        phase=pl.when(words["phase"] == "").then(None).otherwise(words["phase"]),
        engine=pl.when(words["engine"] == "").then(None).otherwise(words["engine"]),
    )


def _name(
    chains: Chains, scene: Scene, found: Found, said: pl.DataFrame, wall: Ints
) -> tuple[Ints, tuple[str, ...], tuple[str, ...]]:
    """Phase of each step, most wall time first; the phases' names and kinds."""
    by = chains.host.process if found.by_process else scene.groups
    update = kinds.updates(chains, found.group, found.start, found.end, by)
    kind = scene.kinds(found)
    counted = (scene.events(found) > 0) & ~_cut(chains, found)
    word = said["phase"].fill_null("").to_numpy().astype(str)
    # An engine's word is the phase, whatever the batch; where it gives none, what the step launches tells.
    plain = found.name.to_frame("name").with_columns(
        fold=folded(found.name),
        word=pl.Series(word),
        kind=pl.Series(np.where(word == "", kind, -1)),
        update=pl.Series(update & (word == "")),
        wall=pl.Series(wall),
    )
    one_name = pl.when(pl.col("name").n_unique() == 1).then(pl.col("name").first()).otherwise(pl.col("fold").first())
    groups = (
        plain.with_row_index("step")
        .filter(pl.Series(counted))
        .with_columns(fold=pl.when(pl.col("word") != "").then(pl.lit("")).otherwise("fold"))
        .group_by("word", "kind", "update", "fold", maintain_order=True)
        .agg(steps="step", wall=pl.col("wall").sum(), shown=one_name)
        .sort("wall", descending=True, maintain_order=True)
    )
    phase = np.full(found.count, CUT, np.int64)
    labels: list[tuple[str, str]] = []
    updating = bool(update[counted].any() and not update[counted].all())
    for number, (word_, _, updates_, _, steps, _, shown) in enumerate(groups.iter_rows()):
        phase[np.asarray(steps)] = number
        kind_ = word_ or (("update" if updates_ else "accumulate") if updating else "")
        labels.append((_plain(found.how, word_ or shown), kind_))
    return phase, *_distinct(labels)


def _cut(chains: Chains, found: Found) -> Mask:
    """The first step of a recording that began in its middle: nothing marked its start, and work came before."""
    out = np.zeros(found.count, bool)
    early = chains.device.frame.select((pl.col("launch").is_null() & pl.col("frontier").is_null()).any()).item()
    if found.how in SEQUENCES and found.count > 1 and early:
        out[0] = True
    return out


def _plain(how: How, name: str) -> str:
    """A step's name as a phase is called."""
    if how is How.PROFILER:
        return "step"
    if how in SEQUENCES:
        return "iteration"
    text = pl.Series([name]).str.replace(r"^nn\.Module: (.+?)_(?:\d+|#)$", "$1")
    return str(text[0])


def _distinct(labels: list[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and kinds, such that no two names are the same: where no word tells them, `kind 1`, `kind 2`."""
    full = [name if not kind or kind == name else f"{name}, {kind}" for name, kind in labels]
    names, kinds = [], []
    for position, (text, (_, kind)) in enumerate(zip(full, labels, strict=True)):
        twins = [i for i, other in enumerate(full) if other == text]
        if len(twins) > 1:
            number = f"kind {twins.index(position) + 1}"
            names.append(f"{text}, {number}")
            kinds.append(f"{kind}, {number}" if kind else number)
        else:
            names.append(text)
            kinds.append(kind or "step")
    return tuple(names), tuple(kinds)


__all__ = ["CUT", "How", "Phases", "phases"]
