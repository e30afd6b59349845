"""The sequence of launches as the host made it, and what of it lies in some intervals of host time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.vocabulary import Call

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.build import Chains
    from analyzer.index.tree import Ints, Mask, Rows


@dataclass(frozen=True)
class Launched:
    """Calls that launched recorded device work, by group and start. One entry a call.

    row      host row of the call.
    start    its start (ns).
    group    a thread, together with the autograd threads that work for it (number of the thread).
    events   device events that it launched.
    token    a number that is equal where the same work was launched: the same kernels, copies or fills.
    graph    whether it launched a graph.
    process  of the thread.
    """

    row: Rows
    start: Ints
    group: Ints
    events: Ints
    token: Ints
    graph: Mask
    process: Ints

    @property
    def total(self) -> int:
        """Device events that are linked to a launch."""
        return int(self.events.sum())

    def slots(self, group: Ints, start: Ints, end: Ints, by: Ints | None = None) -> Ints:
        """Of each launch, the interval [start, end) that it lies in, -1: none. Intervals of a group are disjoint.

        by  group of each launch, where it is not its own (the process, say).
        """
        mine = self.group if by is None else by
        out = np.full(len(self.row), -1, np.int64)
        for one in np.unique(group):
            rows = np.nonzero(group == one)[0]
            rows = rows[np.argsort(start[rows], kind="stable")]
            launches = np.nonzero(mine == one)[0]
            slot = np.searchsorted(start[rows], self.start[launches], "right") - 1
            inside = slot >= 0
            inside &= self.start[launches] < end[rows][np.maximum(slot, 0)]
            out[launches[inside]] = rows[slot[inside]]
        return out


def launched(chains: Chains) -> Launched:
    host = chains.host
    row = chains.device.launches["launch"].to_numpy()
    events = chains.device.launches["events"].to_numpy()
    group = groups(chains)[host.thread[row]]
    start = host.start[row]
    token = _tokens(chains)
    order = np.lexsort((start, group))
    process = chains.host.process[host.thread[row]]
    graph = chains.host.call[row] == Call.GRAPH
    return Launched(row[order], start[order], group[order], events[order], token[order], graph[order], process[order])


def groups(chains: Chains) -> Ints:
    """Of each thread the group that it launches for. Shape (threads,)."""
    threads = chains.trace.threads
    own = np.arange(threads.height, dtype=np.int64)
    engine = chains.host.engine
    if not engine.any():
        return own
    launch = chains.device.launches["launch"].to_numpy()
    many = np.bincount(chains.host.thread[launch], minlength=threads.height)
    process = chains.host.process
    for one in np.unique(process[engine]):
        callers = np.nonzero((process == one) & ~engine)[0]
        if len(callers):
            own[(process == one) & engine] = callers[np.argmax(many[callers])]
    return own


def _tokens(chains: Chains) -> npt.NDArray[np.int64]:
    """Per row of `launches`: a sum over what it launched, which is the same for the same work in any order."""
    work = chains.device.frame.filter(pl.col("launch").is_not_null())
    sums = work.group_by("launch").agg(token=pl.col("name").hash(seed=1).sum().reinterpret(signed=True))
    return (
        chains.device.launches.select("launch")
        .join(sums, on="launch", how="left", maintain_order="left")["token"]
        .to_numpy()
    )
