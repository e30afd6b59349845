"""What of the host's time the device had to wait for, and where in the code that was.

Host work costs a run time only while the device has nothing to do: the same tax behind a busy device is
hidden. These are the questions that judgements ask of the chains.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import intervals
from analyzer.index.activity import Cause
from analyzer.index.bound import LATENCY_LIMIT_NS
from analyzer.index.kernel_names import decode
from analyzer.index.vocabulary import matches

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.tree import Ints, Mask

#: A frame is where an interval passed if it was open for this share of it: what came and went in
#: the rest (a helper, a loop's body) would name an accident.
MOST = 0.9
#: Intervals looked at one by one, the costliest first: they make up nearly all of the time.
LOOKED_AT = 20


@dataclass(frozen=True, slots=True)
class Place:
    """A Python frame `file(line): function`, and how much of the time (ns, intervals) passed in it."""

    frame: str
    ns: int
    count: int


def devices(chains: Chains) -> int:
    return int(chains.device["device"].n_unique())


def whole(chains: Chains) -> int:
    """The window's device time: its length times the devices (ns). Shares are shares of this."""
    return chains.window.duration * max(1, devices(chains)) if chains.window else 0


def idle(chains: Chains) -> pl.DataFrame:
    """All idle time in the window by cause and owner (name id): lead-in, gaps and tail. Column `ns`."""
    pieces = pl.concat([chains.gap_pieces, chains.edge_pieces, chains.tail_pieces])
    return _usual(pieces).group_by("cause", "owner").agg(pl.col("ns").sum()).sort("ns", "owner", descending=True)


def _usual(pieces: pl.DataFrame) -> pl.DataFrame:
    """Pieces with launch latency cut to what a launch can explain, as the verdict judges it."""
    latency = pl.col("cause") == int(Cause.LAUNCH_LATENCY)
    return pieces.with_columns(
        ns=pl.when(latency).then(pl.col("ns").clip(upper_bound=LATENCY_LIMIT_NS)).otherwise("ns")
    )


def idle_ns(chains: Chains, causes: Collection[Cause], *, edges: bool = True) -> int:
    """Idle time of some causes (ns). edges: also before the first and after the last device work."""
    pieces = idle(chains) if edges else _usual(chains.gap_pieces)
    return int(pieces.filter(pl.col("cause").is_in([int(c) for c in causes]))["ns"].sum())


def owners(chains: Chains, causes: Collection[Cause], top: int = 3) -> list[tuple[str, int]]:
    """Who the device waited for: (operator, annotation or frame, ns), the most first; not whoever hardly mattered."""
    mine = idle(chains).filter(pl.col("cause").is_in([int(c) for c in causes]) & (pl.col("owner") >= 0))
    # Generated code carries a hash in its name; all of it is one place, as steps are.
    text = pl.col("owner").str.replace(r"(CompiledFxGraph) \S+", "$1")
    total = (
        mine.with_columns(owner=chains.places.gather(mine["owner"]))
        .group_by(text)
        .agg(pl.col("ns").sum())
        .sort(["ns", "owner"], descending=[True, False])
        .head(top)
        .filter(pl.col("ns") * 100 >= pl.col("ns").max())
    )
    return list(zip(total["owner"].to_list(), total["ns"].to_list(), strict=True))


def gaps_of(chains: Chains, causes: Collection[Cause]) -> pl.DataFrame:
    """Gaps with time of some causes, the most first: columns of `Chains.gaps`, and `ns` of these causes."""
    mine = (
        _usual(chains.gap_pieces)
        .filter(pl.col("cause").is_in([int(c) for c in causes]))
        .group_by("gap")
        .agg(pl.col("ns").sum())
    )
    gaps = chains.gaps.with_row_index("gap").with_columns(pl.col("gap").cast(pl.Int64))
    return gaps.join(mine, on="gap").sort("ns", "gap", descending=[True, False])


def waited_during(chains: Chains, start: Ints, end: Ints) -> Ints:
    """Inside each host interval, the time that devices waited for a launch that came late (ns, all devices).

    Idle time between work that was queued in time (the device's own turnaround, a graph's inside, a
    dependency) is no part of it: no host could have shortened it.
    """
    total = np.zeros(len(start), np.int64)
    late = pl.concat([chains.gaps, chains.edges.select(chains.gaps.columns)]).filter(pl.col("launch").is_not_null())
    if not late.height:
        return total
    returned = chains.host.end[late["launch"].to_numpy()]
    late = late.with_columns(end=pl.min_horizontal("end", pl.Series(returned))).filter(pl.col("end") > pl.col("start"))
    for _, one in late.sort("device", "start").group_by("device", maintain_order=True):
        ts, te = one["start"].to_numpy(), one["end"].to_numpy()
        total += _running(ts, te, end) - _running(ts, te, start)
    return total


def busy_during(chains: Chains, start: Ints, end: Ints) -> Ints:
    """Device-busy time inside each host interval (ns, all devices)."""
    total = np.zeros(len(start), np.int64)
    busy = intervals.merged(chains.device.select("device", "ts", "end"), ["device"])
    for _, one in busy.group_by("device"):
        ts, te = one["ts"].to_numpy(), one["end"].to_numpy()
        total += _running(ts, te, end) - _running(ts, te, start)
    return total


def _running(ts: Ints, te: Ints, t: Ints) -> Ints:
    """Time covered before each instant; `ts`, `te` disjoint and sorted."""
    total = np.concatenate(([0], np.cumsum(te - ts)))
    k = np.searchsorted(ts, t, "right")
    over = np.where(k > 0, te[np.maximum(k, 1) - 1] - t, 0) if len(te) else np.zeros(len(t), np.int64)
    running: Ints = total[k] - np.maximum(0, over)
    return running


def operators(chains: Chains, pattern: str) -> Mask:
    """Host rows of operators whose name matches the pattern."""
    mine: Mask = (chains.cat == Cat.OP) & matches(chains.trace.names, pattern)[chains.host.name]
    return mine


def launched_ns(chains: Chains, wanted: Mask | None = None) -> Ints:
    """Per host row, the device time that it launched itself; wanted: of these device rows only."""
    work = chains.device.select("launch", "dur")
    if wanted is not None:
        work = work.filter(pl.Series(wanted))
    work = work.drop_nulls("launch")
    return np.bincount(
        work["launch"].to_numpy(), weights=work["dur"].to_numpy().astype(np.float64), minlength=chains.host.height
    ).astype(np.int64)


def kinds(chains: Chains) -> pl.Series:
    """Kind of each device row, as `kernel_names.KINDS`, "copy" or "memset"."""
    work = chains.device.select("name", "cat")
    names = work.filter(pl.col("cat") == int(Cat.KERNEL))["name"].unique()
    table = pl.DataFrame(
        {"name": names, "kind": [decode(text).kind for text in chains.text(names)]},
        schema={"name": pl.Int32, "kind": pl.String},
    )
    joined = work.join(table, on="name", how="left", maintain_order="left")
    return joined.select(
        pl.when(pl.col("cat") == int(Cat.MEMCPY))
        .then(pl.lit("copy"))
        .when(pl.col("cat") == int(Cat.MEMSET))
        .then(pl.lit("memset"))
        .otherwise(pl.col("kind"))
        .alias("kind")
    ).to_series()


def place(chains: Chains, gaps: pl.DataFrame) -> Place | None:
    """The deepest Python frame in a file that covers most of the idle time; None without stacks.

    gaps  rows as `gaps_of` or `Chains.edges` has them, the costliest first.
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
    return Place(best, sum(votes[best]), len(votes[best]))


def _frame_during(chains: Chains, gap: dict[str, Any]) -> str | None:
    start, end = gap["start"], min(gap["end"], int(chains.host.end[gap["launch"]]))
    tree = chains.frames
    # What covers most of an interval is open in its middle, and the path is innermost first.
    for row in tree.path_at(int(chains.host.thread[gap["launch"]]), (start + end) // 2):
        open_ns = min(int(tree.end[row]), end) - max(int(tree.start[row]), start)
        if open_ns >= MOST * (end - start):
            name = str(chains.trace.names[int(tree.name[row])])
            if not name.startswith("<"):
                return name
    return None
