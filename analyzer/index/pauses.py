"""Pauses: idle time in which the host did something else than launching.

Host time before a launch comes in two kinds that need different remedies. Cadence: each launch takes its time.
Pause: the host's part of one gap in Python, unrecorded, or in an operator that took many times its usual, is many
times what goes from launch to launch. A pause has a place, and a kind: named work, nothing recorded, or
interference (the thread waits for the interpreter's lock, which another takes a quantum at a time).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl

from analyzer.index.activity import Cause
from analyzer.index.causes import Threads
from analyzer.index.tree import take

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Mask, Tree

#: A pause is this long, and this many times the median from launch to launch; a millisecond is one in any case, and
#: asked for where a gap of a few hundred µs is usual: between threads, at borders of steps, at the window's edges.
LEAST_NS, TIMES, ALWAYS_NS = 200_000, 10, 1_000_000
#: An operator that took so many times the lower quartile of its calls, of which there are so many.
SLOW_TIMES, SLOW_CALLS = 10, 4

#: Python of optimizers and of autograd prepares launches: it is cadence, however long a gap is.
CADENCE = r"^Optimizer\.|(?:^|/)torch/optim/|clip_grad|(?:^|/)torch/autograd/|(?:^|/)torch/_tensor\.py|run_backward"

#: Python hands its lock on after 5 ms (`sys.getswitchinterval`): host parts that lie this close (a share of it) to
#: multiples of one quantum, and so many of them, are waits for it. Others were 0.13 and more away.
QUANTUM_NS, QUANTA, NEAR, GAPS = (4_900_000, 5_400_000), (4_000_000, 40_000_000), 0.07, 15

#: Places are looked for one by one, the longest pauses first: they make up nearly all of the time.
LOOKED_AT = 256
#: A place holds this share of its pause.
MOST = 0.5
#: A stack shows the outermost and innermost entries of a deep one.
STACK_DEPTH = 24


Kind = Literal["named", "unrecorded", "interference"]


@dataclass(frozen=True, slots=True)
class Pause:
    """All pauses of one place and kind, times in ns.

    place   the frame, operator or annotation that most of each passed in; None: nothing was recorded.
    kind    "named", "unrecorded" or "interference".
    within  the function that called it, `file(line): function`; None: not recorded.
    stack   of the longest, outermost first. starts: of each, in time order.
    """

    place: str | None
    kind: Kind
    count: int
    total_ns: int
    median_ns: float
    max_ns: int
    within: str | None
    stack: tuple[str, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Pauses:
    """pieces: for each row of idle pieces, whether it is pause. rows: by place, the longest total first."""

    pieces: Mask
    rows: tuple[Pause, ...]


def find(
    pieces: pl.DataFrame, gaps: pl.DataFrame, threads: Threads, names: pl.Series, own: Ints, launches: Ints, steps: Ints
) -> Pauses:
    """pieces    idle time in the window: PIECES, where `gap` is a row of `gaps`.
    gaps      columns start, end (ns), thread (that launched what ends it, -1: unknown), handed (bool: another
              thread launched the work before it), edge (bool: the window's lead-in or tail-out).
    own       of each host row, its own time (ns). launches: start of every launch in the window, sorted.
    steps     start and end of every step.
    """
    moved = np.zeros(pieces.height, bool)
    floor = _floor(gaps, launches, steps)
    long = (gaps["end"] - gaps["start"]).to_numpy() >= floor
    rows = np.nonzero(long[pieces["gap"].to_numpy()])[0]
    if not len(rows):
        return Pauses(moved, ())
    everything, pieces = pieces, pieces[rows]
    moved[rows] = _moved(pieces, floor, threads, names, own)
    if not moved.any():
        return Pauses(moved, ())
    cause, gap, ns = (everything[column].to_numpy() for column in ("cause", "gap", "ns"))
    host = np.isin(cause, (Cause.PYTHON, Cause.NO_HOST_EVENT, Cause.DISPATCH, Cause.COMPILED_OVERHEAD))
    locked = _interference(_sum(gap, ns * host, len(floor)))
    return Pauses(moved, _rows(everything.filter(pl.Series(moved)), gaps, threads, names, locked))


def _moved(pieces: pl.DataFrame, floor: Ints, threads: Threads, names: pl.Series, own: Ints) -> Mask:
    """Whether each piece is pause. floor: by gap."""
    moved = np.zeros(pieces.height, bool)
    cause, gap, ns = (pieces[column].to_numpy() for column in ("cause", "gap", "ns"))
    cadence = names.str.contains(CADENCE).to_numpy()
    owner = pieces["owner"].to_numpy()
    python = np.isin(cause, (Cause.PYTHON, Cause.NO_HOST_EVENT)) & ~(take(cadence, owner) & (owner >= 0))
    moved |= python & (_sum(gap, ns * python, len(floor))[gap] >= floor[gap])
    # An operator that launches nothing computes on the CPU.
    working = np.isin(cause, (Cause.DISPATCH, Cause.COMPILED_OVERHEAD)) & (owner >= 0)
    quiet = working & pieces["quiet"].to_numpy()
    moved |= quiet & (_sum(gap, ns * quiet, len(floor))[gap] >= ALWAYS_NS)
    moved |= working & ~quiet & _slow(gap, owner, ns, working & ~quiet, threads.host, own, cadence)
    return moved


def _floor(gaps: pl.DataFrame, launches: Ints, steps: Ints) -> Ints:
    """The least length of a pause in each gap (ns)."""
    pace = int(np.median(np.diff(launches))) if len(launches) > 1 else 0
    usual = min(ALWAYS_NS, max(LEAST_NS, TIMES * pace))
    start, end = gaps["start"].to_numpy(), gaps["end"].to_numpy()
    borders = np.sort(steps)
    crossed = np.searchsorted(borders, end, "right") > np.searchsorted(borders, start, "left")
    strict = gaps["handed"].to_numpy() | gaps["edge"].to_numpy() | crossed
    return np.where(strict, ALWAYS_NS, usual)


def _sum(gap: Ints, ns: Ints, count: int) -> Ints:
    return np.bincount(gap, weights=ns.astype(np.float64), minlength=count).astype(np.int64)


def _slow(gap: Ints, owner: Ints, ns: Ints, mine: Mask, host: Tree, own: Ints, cadence: Mask) -> Mask:
    """Pieces of an operator that in one gap took a millisecond and many times its usual."""
    out = np.zeros(len(gap), bool)
    mine = mine & ~take(cadence, owner)
    if not mine.any():
        return out
    rows = np.nonzero(mine & (_sum(gap, ns * mine, 0)[gap] >= ALWAYS_NS))[0]
    frame = pl.DataFrame({"row": rows, "gap": gap[rows], "owner": owner[rows], "ns": ns[rows]})
    long = frame.group_by("gap", "owner").agg(pl.col("ns").sum()).filter(pl.col("ns") >= ALWAYS_NS)
    if not long.height:
        return out
    wanted = np.zeros(len(cadence), bool)
    wanted[long["owner"].to_numpy()] = True
    of = np.nonzero(wanted[host.name] & (own > 0))[0]
    usual = (
        pl.DataFrame({"owner": host.name[of], "own": own[of]})
        .group_by("owner")
        .agg(quarter=pl.col("own").quantile(0.25), calls=pl.len())
        .filter(pl.col("calls") >= SLOW_CALLS)
    )
    slow = long.join(usual, on="owner").filter(pl.col("ns") >= SLOW_TIMES * pl.col("quarter"))
    out[frame.join(slow, on=["gap", "owner"], how="semi")["row"].to_numpy()] = True
    return out


def _interference(host_ns: Ints) -> Mask:
    """Gaps whose host part is a whole number of turns of the interpreter's lock, where most of them are."""
    mine = (host_ns >= QUANTA[0]) & (host_ns <= QUANTA[1])
    parts = host_ns[mine].astype(np.float64)
    if len(parts) < GAPS:
        return np.zeros(len(host_ns), bool)
    quanta = np.linspace(*QUANTUM_NS, 51)[:, None]
    away = np.abs(parts / quanta - np.round(parts / quanta))
    return mine if np.median(away, axis=1).min() <= NEAR else np.zeros(len(host_ns), bool)


# -- where -----------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    name: str | None
    within: str | None
    named: bool
    stack: tuple[str, ...]


def _rows(
    pieces: pl.DataFrame, gaps: pl.DataFrame, threads: Threads, names: pl.Series, locked: Mask
) -> tuple[Pause, ...]:
    pauses = (
        pieces.group_by("gap")
        .agg(
            ns=pl.col("ns").sum(),
            start=pl.col("begin").min(),
            end=(pl.col("begin") + pl.col("ns")).max(),
            owner=pl.col("owner").sort_by("ns").last(),
        )
        .sort(["ns", "gap"], descending=[True, False])
    )
    finder = _Finder(threads, names)
    thread = gaps["thread"].to_numpy()
    found: dict[tuple[str | None, Kind], list[tuple[int, int, _Place]]] = {}
    by_owner: dict[int, _Place] = {}
    for number, (gap, ns, start, end, owner) in enumerate(pauses.iter_rows()):
        if number < LOOKED_AT and thread[gap] >= 0:
            place = finder.place(int(thread[gap]), start, end)
            by_owner.setdefault(owner, place)
        else:
            place = by_owner.get(owner) or _Place(str(names[owner]) if owner >= 0 else None, None, owner >= 0, ())
        kind: Kind = "interference" if locked[gap] else "named" if place.named else "unrecorded"
        found.setdefault((place.name, kind), []).append((ns, start, place))
    rows = []
    for (name, kind), some in found.items():
        lengths = [ns for ns, _, _ in some]
        first = some[0][2]
        rows.append(
            Pause(
                place=name,
                kind=kind,
                count=len(some),
                total_ns=sum(lengths),
                median_ns=float(np.median(lengths)),
                max_ns=max(lengths),
                within=first.within,
                stack=first.stack,
                starts=tuple(sorted(start for _, start, _ in some)),
            )
        )
    return tuple(sorted(rows, key=lambda p: (-p.total_ns, p.place or "")))


class _Finder:
    """Names the place of a stretch of host time."""

    def __init__(self, threads: Threads, names: pl.Series) -> None:
        self._threads, self._names = threads, names
        self._total: dict[int, int] = {}
        self._steps = names.str.contains(r"^ProfilerStep").to_numpy()

    def place(self, thread: int, start: int, end: int) -> _Place:
        """Of all that holds half of it by name, what is rarest in the run; nothing, where only a step is open."""
        speaker = self._threads.speaker(thread, (start + end) // 2)
        host, frames = self._threads.host, self._threads.frames
        candidates: list[tuple[int, int, bool, Tree, int]] = []
        for tree in (frames, host):
            for row, ns in self._inside(tree, speaker, start, end):
                name = int(tree.name[row])
                if 2 * ns >= end - start and not self._steps[name]:
                    works = tree is frames or not self._annotates(row)
                    candidates.append((self._of_run(tree, name), -int(tree.start[row]), works, tree, row))
        stack = self._stack(speaker, (start + end) // 2)
        if not candidates:
            return _Place(None, None, False, stack)
        _, _, named, tree, row = min(candidates, key=lambda c: c[:2])
        return _Place(str(self._names[int(tree.name[row])]), self._within(tree, speaker, row), named, stack)

    def _annotates(self, row: int) -> bool:
        """An annotation says for what, and not what the host did."""
        return int(self._threads.host_activity.cause[row]) == Cause.PYTHON

    def _inside(self, tree: Tree, thread: int, start: int, end: int) -> list[tuple[int, int]]:
        """(a row, time inside [start, end)) of each name that is open for some of it."""
        lo, hi = tree.rows_of(thread)
        open_ = tree.path_at(thread, start)
        first, past = lo + np.searchsorted(tree.start[lo:hi], [start + 1, end], "left")
        rows = np.concatenate([np.array(open_[::-1], np.int64), np.arange(first, past)])
        if not len(rows):
            return []
        overlap = np.minimum(tree.end[rows], end) - np.maximum(tree.start[rows], start)
        name, where = np.unique(tree.name[rows], return_inverse=True)
        total = np.bincount(where, weights=overlap.astype(np.float64))
        longest = np.zeros(len(name), np.int64)
        order = np.argsort(overlap, kind="stable")
        longest[where[order]] = rows[order]
        return [(int(r), int(t)) for r, t in zip(longest, total, strict=True)]

    def _of_run(self, tree: Tree, name: int) -> int:
        """Total time of a name in the run (ns)."""
        if name not in self._total:
            rows = np.nonzero(tree.name == name)[0]
            self._total[name] = int((tree.end[rows] - tree.start[rows]).sum())
        return self._total[name]

    def _within(self, tree: Tree, thread: int, row: int) -> str | None:
        """The Python function in a file around a row, else the annotation around it."""
        if tree is self._threads.frames:
            up = int(tree.parent[row])
            while up >= 0:
                name = str(self._names[int(tree.name[up])])
                if not name.startswith("<"):
                    return name
                up = int(tree.parent[up])
            return None
        for up in self._threads.frames.path_at(thread, int(tree.start[row])):
            name = str(self._names[int(self._threads.frames.name[up])])
            if not name.startswith("<"):
                return name
        up = int(tree.parent[row])
        return str(self._names[int(tree.name[up])]) if up >= 0 else None

    def _stack(self, thread: int, at: int) -> tuple[str, ...]:
        entries = []
        for tree in (self._threads.frames, self._threads.host):
            entries += [
                (int(tree.start[r]), -int(tree.end[r]), str(self._names[int(tree.name[r])]))
                for r in tree.path_at(thread, at)
            ]
        path = [name for _, _, name in sorted(entries, key=lambda e: e[:2])]
        return tuple(path if len(path) <= STACK_DEPTH else [*path[:4], "…", *path[5 - STACK_DEPTH :]])
