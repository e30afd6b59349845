"""The window that the verdict speaks of: the run, less what the profiler and bystanders do at its edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyzer.index.vocabulary import Call

if TYPE_CHECKING:
    import polars as pl

    from analyzer.index.activity import Codes
    from analyzer.index.tree import Ints, Mask, Tree


@dataclass(frozen=True, slots=True)
class Window:
    """[start, end) in ns. steps: it was found by the profiler's steps."""

    start: int
    end: int
    steps: bool = False

    @property
    def duration(self) -> int:
        return self.end - self.start


def find(
    host: Tree,
    call: Codes,
    launching: Mask,
    steps: Ints,
    device: pl.DataFrame,
    asked: tuple[int, int] | None = None,
) -> Window | None:
    """None where there is no event at all.

    asked      the window of a part of a trace, which was asked for.

    launching  host rows that launch device work, by a record or by name.
    steps      host rows of the profiler's steps. With them: from the first one's start to the last one's
               end, or to the end of the device work launched in between, whichever is later. Without: from
               the first event to the last.
    device     columns ts, end (ns), launch (host row, null: unlinked).
    """
    if asked is not None:
        return Window(*asked, steps=len(steps) > 0)
    if len(steps):
        return _of_steps(host, steps, device)
    own = _of_launching_threads(host, launching)
    starts, ends = host.start[own], host.end[own]
    # The profiler ends with a synchronize of its own: at the top level and followed by nothing.
    flush = ((call == Call.WAIT) & (host.parent < 0))[own]
    lasting = ends[~flush] if not flush.all() else ends
    first = [int(x.min()) for x in (starts, device["ts"].to_numpy()) if len(x)]
    last = [int(x.max()) for x in (lasting, device["end"].to_numpy()) if len(x)]
    return Window(min(first), max(last)) if first else None


def _of_steps(host: Tree, steps: Ints, device: pl.DataFrame) -> Window:
    start, end = int(host.start[steps].min()), int(host.end[steps].max())
    launch = device["launch"].fill_null(-1).to_numpy()
    mine = launch >= 0
    called = host.start[launch[mine]]
    done = device["end"].to_numpy()[mine][(called >= start) & (called < end)]
    return Window(start, max(end, int(done.max()) if len(done) else end), steps=True)


def _of_launching_threads(host: Tree, launching: Mask) -> Mask:
    """Rows of threads that launch anything: others (a watchdog that polls) stretch nobody's run."""
    if not launching.any():
        return np.ones(host.height, bool)
    of_thread = np.zeros(int(host.thread.max()) + 1, bool)
    of_thread[host.thread[launching]] = True
    rows: Mask = of_thread[host.thread]
    return rows
