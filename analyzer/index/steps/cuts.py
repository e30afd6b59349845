"""Steps from the sequence of launches alone: where nothing that was recorded names them.

Every rule gives the launches at which a step begins, as positions in the sequence of one thread with its
autograd threads; None: it has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index.vocabulary import Call

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.launched import Launched
    from analyzer.index.tree import Ints, Mask

#: Kinds with this many calls must hold this share of the device events.
CALLS, HOLDS = 3, 0.6
#: A segment shorter than this share of the median is a tail of the one before it.
TAIL = 0.25
#: A sequence repeats where this share of launches equals that of one period before, for this many periods.
EQUAL, REPEATS, SHORTEST = 0.995, 3, 8
#: Launches by which a place in the sequence is known again, and how many places and repeats are looked at.
_KNOWN, _PLACES, _NEXT = 8, 8, 64
#: A graph of fewer kernels is a piece of a model: a layer.
GRAPH = 100

_TO_HOST = r"DtoH|Device -> (?:Pageable|Pinned|Host)|D2H"
_TO_DEVICE = r"HtoD|(?:Pageable|Pinned|Host) -> Device|H2D"


@dataclass(frozen=True)
class Line:
    """The launches of one group: `mine` are their positions in `launched`, in time order."""

    chains: Chains
    launched: Launched
    mine: Ints

    @property
    def start(self) -> Ints:
        return self.launched.start[self.mine]

    def copies(self, pattern: str) -> Mask:
        """Which of the launches are copies whose name matches."""
        device = self.chains.device.frame
        of_name = self.chains.trace.names.str.contains(pattern).to_numpy()
        copy = (device["cat"].to_numpy() == Cat.MEMCPY) & of_name[device["name"].to_numpy()]
        rows = device["launch"].filter(pl.Series(copy)).drop_nulls().to_numpy()
        return np.isin(self.launched.row[self.mine], rows)


Rule = Callable[[Line], "Ints | None"]


def reads(line: Line) -> Ints | None:
    """After every wait for the device and every copy to the host, together."""
    chains = line.chains
    start = line.start
    if not len(start):
        return None
    threads = np.unique(chains.host.thread[line.launched.row[line.mine]])
    waits = np.nonzero((chains.host.call == Call.WAIT) & np.isin(chains.host.thread, threads))[0]
    after = np.searchsorted(start, chains.host.start[waits])
    copies = np.nonzero(line.copies(_TO_HOST))[0] + 1
    cuts = np.unique(np.concatenate([[0], after, copies]))
    cuts = cuts[cuts < len(start)]
    return cuts if len(cuts) > CALLS else None


def period(line: Line) -> Ints | None:
    """Repeats of one exact sequence."""
    token = line.launched.token[line.mine]
    count = len(token)
    if count < REPEATS * SHORTEST:
        return None
    known = np.zeros(count - _KNOWN + 1, np.uint64)
    weights = np.cumprod(np.full(_KNOWN, 0x9E3779B97F4A7C15, np.uint64))
    for i, weight in enumerate(weights):
        known += token[i : count - _KNOWN + 1 + i].astype(np.uint64) * weight
    lags: list[Ints] = []
    for place in np.linspace(0, len(known) // 2, _PLACES, dtype=np.int64):
        again = np.nonzero(known[place + 1 :] == known[place])[0][:_NEXT] + 1
        lags.append(again)
    for lag in np.unique(np.concatenate(lags)):
        if count < REPEATS * lag:
            return None
        if np.mean(token[lag:] == token[:-lag]) >= EQUAL:
            # One kernel over and over repeats at every lag: the shortest is what counts.
            return np.arange(0, count, lag) if lag >= SHORTEST else None
    return None


def backward(line: Line) -> Ints | None:
    """At the start of each backward pass."""
    engine = line.chains.host.engine[line.chains.host.thread[line.launched.row[line.mine]]]
    begins = np.nonzero(engine & ~np.append(False, engine[:-1]))[0]
    return np.unique(np.append(0, begins)) if len(begins) >= CALLS else None


def inputs(line: Line) -> Ints | None:
    """At the first of each run of copies to the device."""
    copies = line.copies(_TO_DEVICE)
    begins = np.nonzero(copies & ~np.append(False, copies[:-1]))[0]
    return np.unique(np.append(0, begins)) if len(begins) >= CALLS else None


def graphs(line: Line) -> Ints | None:
    """At each launch of a graph that is large enough to be a step."""
    large = line.launched.graph[line.mine] & (line.launched.events[line.mine] >= GRAPH)
    begins = np.nonzero(large)[0]
    return np.unique(np.append(0, begins)) if len(begins) >= CALLS else None


def joined(first: Ints, count: int) -> Ints:
    """Cuts without those that begin a segment under a quarter of the median: it belongs to the one before."""
    length = np.diff(np.append(first, count))
    short = length < TAIL * np.median(length)
    short[0] = False
    kept: Ints = first[~short]
    return kept
