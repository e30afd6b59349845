"""What of the host's time the device had to wait for, and where in the code that was.

Host work costs a run time only while the device has nothing to do: the same tax behind a busy device is
hidden. These are the questions that judgements ask of the chains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import intervals, parts
from analyzer.index.activity import Cause
from analyzer.index.sums import sums
from analyzer.index.vocabulary import matches

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.build import Chains
    from analyzer.index.tree import Ints, Mask

#: A frame is where an interval passed if it was open for this share of it: what came and went in
#: the rest (a helper, a loop's body) would name an accident.
MOST = 0.9
#: Intervals looked at one by one, the costliest first: they make up nearly all of the time.
LOOKED_AT = 20

#: Below this a copy's time is its set-up, not its bytes: PCIe moves 64 KiB in about 2 µs.
SMALL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """A Python frame `file(line): function`, and how many of the intervals passed in it."""

    frame: str
    count: int


def idle(chains: Chains) -> pl.DataFrame:
    """All idle time in the window by cause, owner (name id) and whether it is pause. Column `ns`.

    Launch latency and dependencies are cut to what they can explain, as the verdict judges them.
    """
    pieces = parts.usual(chains.idle.pieces)
    owned = sums(pieces, {"cause": len(Cause), "owner": len(chains.trace.names), "pause": 2})
    return owned.sort("ns", "owner", "pause", descending=True)


def gaps_of(chains: Chains, causes: Collection[Cause]) -> pl.DataFrame:
    """Gaps with time of some causes: columns of `Idle.spans`, `gap`, and `ns` of these causes together."""
    mine = chains.idle.by_cause.filter(pl.col("cause").is_in([int(c) for c in causes]))
    return mine.group_by("gap").agg(pl.exclude("ns", "cause").first(), pl.col("ns").sum())


def waited_during(chains: Chains, start: Ints, end: Ints) -> Ints:
    """Inside each host interval, the time that devices waited for a launch that came late (ns, all devices).

    Idle time between work that was queued in time (the device's own turnaround, a graph's inside, a
    dependency) is no part of it: no host could have shortened it.
    """
    return _sum(chains.idle.late.values(), start, end)


def busy_during(chains: Chains, start: Ints, end: Ints) -> Ints:
    """Device-busy time inside each host interval (ns, all devices)."""
    return _sum(chains.device.busy.values(), start, end)


def _sum(covers: Iterable[intervals.Cover], start: Ints, end: Ints) -> Ints:
    """Time inside each interval that the devices' covers take together."""
    total = np.zeros(len(start), np.int64)
    for one in covers:
        total += one.within(start, end)
    return total


def waited(chains: Chains, rows: Ints, most: Ints | float | None = None) -> int:
    """Time that devices waited for a late launch inside some host rows (ns), each moment once.

    most  of each row no more than this (ns): what of its time is in question.
    """
    start, end = chains.host.start[rows], chains.host.end[rows]
    each: npt.NDArray[np.float64] | Ints = waited_during(chains, start, end)
    if most is not None:
        each = np.minimum(each, most)
    # Rows of several threads may be open at once, and would count the same gap twice.
    once = intervals.merged(pl.DataFrame({"all": np.zeros(len(rows), np.int8), "ts": start, "end": end}), ["all"])
    together = waited_during(chains, once["ts"].to_numpy(), once["end"].to_numpy())
    return int(min(each.sum(), together.sum()))


def once(work: pl.DataFrame, by: Sequence[str] = ("device",)) -> pl.Series:
    """Of each row of device work, the time (ns) in which it ran and no earlier one of its group did.

    work  rows of `Device.frame`, in its order. The sum is the length of their union: what a figure claims of the
    window counts each moment of a device once, however many streams it ran on.
    """
    reach = pl.col("end").cum_max().shift(1).over(by)
    fresh = pl.col("end") - pl.max_horizontal("ts", reach.fill_null(pl.col("ts")))
    return work.select(fresh.clip(lower_bound=0).alias("once")).to_series()


def alone(work: pl.DataFrame, mine: Mask) -> int:
    """Device-busy time in which nothing but some rows of device work ran (ns, all devices). mine: shape (rows,)."""
    return busy(work) - busy(work.filter(pl.Series(~mine))) if mine.any() else 0


def busy(work: pl.DataFrame) -> int:
    """Time in which any of some device work ran (ns, all devices). work: rows of `Device.frame`, in its order."""
    return intervals.length(work)


def operators(chains: Chains, pattern: str) -> Mask:
    """Host rows of operators whose name matches the pattern."""
    mine: Mask = (chains.host.cat == Cat.OP) & matches(chains.trace.names, pattern)[chains.host.name]
    return mine


def own_tax_ns(chains: Chains) -> Ints:
    """Per operator, its self time and that of the host calls that it makes, less waits and the profiler's (ns)."""
    spared = chains.host.by_holder(chains.waits.ns) + chains.host.by_holder(chains.profiler_ns)
    tax: Ints = np.maximum(chains.host.own_ns - spared, 0)
    return tax


def place(chains: Chains, gaps: pl.DataFrame) -> Place | None:
    """The deepest Python frame in a file that covers most of the idle time; None without stacks.

    gaps  rows as `Idle.by_cause` has them, the costliest first.
    Each of the costliest gaps votes with its length for the deepest frame that was open for MOST of it.
    `<built-in ...>` frames name no place in a file, and have no vote.
    """
    if not chains.frames.height or not gaps.height:
        return None
    votes: dict[str, list[int]] = {}
    for row in gaps.filter(pl.col("launch").is_not_null()).head(LOOKED_AT).iter_rows(named=True):
        frame = _frame_during(chains, row)
        if frame is not None:
            votes.setdefault(frame, []).append(row["end"] - row["start"])
    if not votes:
        return None
    best = max(votes, key=lambda name: sum(votes[name]))
    return Place(best, len(votes[best]))


def _frame_during(chains: Chains, gap: dict[str, Any]) -> str | None:
    start, end = gap["start"], min(gap["end"], int(chains.host.end[gap["launch"]]))
    tree = chains.frames
    # What covers most of an interval is open in its middle, and the path is innermost first.
    middle = (start + end) // 2
    for row in tree.path_at(chains.threads.speaker(int(chains.host.thread[gap["launch"]]), middle), middle):
        open_ns = min(int(tree.end[row]), end) - max(int(tree.start[row]), start)
        if open_ns >= MOST * (end - start):
            name = str(chains.trace.names[int(tree.name[row])])
            if not name.startswith("<"):
                return name
    return None
