"""Hand-over: which thread worked for another while that one did nothing.

The autograd engine's threads work for the thread that called backward; before and after, that thread works for
itself, and the engine waits for it. A thread is *weak* at an instant where it has no host event but steps and
annotations, and no Python frame but that of `backward`: then whom it waits for may know more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Mask, Tree


@dataclass(frozen=True)
class Partners:
    """asks: the threads that a weak thread asks, in order. engine: by thread, whether it is autograd's."""

    asks: Mapping[int, tuple[int, ...]]
    engine: Mask


def find(host: Tree, engine: Mask, steps: Ints, launching: Mask, process: Ints) -> Partners:
    """process: of each thread, a small number.

    An engine's thread asks the thread with the profiler's steps, else the one that ran most of its forward operators,
    else the busiest one that launches, else the busiest; that one asks the engines.
    """
    asks: dict[int, tuple[int, ...]] = {}
    events = np.bincount(host.thread, minlength=len(engine))
    launches = np.bincount(host.thread[launching], minlength=len(engine))
    stepping = np.bincount(host.thread[steps], minlength=len(engine))
    for one in np.unique(process[engine]):
        mine = np.nonzero(process == one)[0]
        others = mine[~engine[mine] & (events[mine] > 0)]
        if not len(others):
            continue
        forward = _forward(host, engine, process == one)
        caller = int(max(others, key=lambda t: (stepping[t], forward[t], launches[t] > 0, events[t])))
        engines = [int(t) for t in mine[engine[mine]]]
        asks[caller] = tuple(sorted(engines, key=lambda t: -events[t]))
        asks.update(dict.fromkeys(engines, (caller,)))
    return Partners(asks, engine)


def _forward(host: Tree, engine: Mask, mine: Mask) -> Ints:
    """Of each thread, how many operators have the sequence number of one that an engine of the process ran."""
    seq = host.frame["seq"]
    numbered = np.nonzero(seq.is_not_null().to_numpy() & mine[host.thread])[0]
    value, thread = seq.gather(numbered).to_numpy(), host.thread[numbered]
    backward = engine[thread]
    shared = np.isin(value, np.unique(value[backward])) & ~backward
    return np.bincount(thread[shared], minlength=len(engine))
