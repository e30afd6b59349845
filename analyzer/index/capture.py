"""Graph capture: between BeginCapture and EndCapture launches run nothing, they are recorded into a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.vocabulary import Call

if TYPE_CHECKING:
    from analyzer.index.activity import Codes
    from analyzer.index.tree import Ints, Mask, Rows, Tree


@dataclass(frozen=True)
class Captures:
    """One entry a capture, by thread and time; times in ns.

    start, close  of what is captured: from BeginCapture's start to EndCapture's end.
    end           of instantiation, where the thread goes on to it; else `close`.
    captured      host rows of the launches that ran nothing. Shape (rows of the host tree,).
    """

    thread: Rows
    start: Ints
    close: Ints
    end: Ints
    captured: Mask

    def intervals(self, threads: Mask) -> pl.DataFrame:
        """(ts, end) of the captures of some threads (by thread), with their instantiation."""
        mine = threads[self.thread]
        return pl.DataFrame({"ts": self.start[mine], "end": self.end[mine]}, schema={"ts": pl.Int64, "end": pl.Int64})


def find(host: Tree, call: Codes, silent: Mask, process: Ints) -> Captures:
    """silent: launch calls without a device record. process: of each thread, a small number.

    A capture that the recording cut reaches to its thread's first or last event. What another thread of the
    process launches meanwhile without a record (autograd's, say) is captured too.
    """
    marks = np.nonzero((call == Call.BEGIN_CAPTURE) | (call == Call.END_CAPTURE))[0]
    begins = call[marks] == Call.BEGIN_CAPTURE
    thread = host.thread[marks]
    after = np.append(thread[1:] == thread[:-1], False)  # the next mark is on the same thread
    before = np.append(False, after[:-1])
    # Each begin makes a capture, and each end that no begin precedes: that one was cut.
    ended = begins & after & ~np.append(begins[1:], False)
    orphan = ~begins & ~(before & np.append(False, begins[:-1]))
    mine = np.nonzero(begins | orphan)[0]
    closing = np.where(begins[mine], mine + 1, mine)
    closed = np.where(begins[mine], ended[mine], True)
    close_row = marks[np.minimum(closing, max(0, len(marks) - 1))] if len(marks) else marks
    lo = np.searchsorted(host.thread, thread[mine], "left")
    hi = np.searchsorted(host.thread, thread[mine], "right") - 1
    start = np.where(begins[mine], host.start[marks[mine]], host.start[lo]) if len(mine) else np.zeros(0, np.int64)
    following = np.where(after[mine], host.start[close_row], host.end[hi]) if len(mine) else start
    close = np.where(closed, host.end[close_row], following) if len(mine) else start
    end = _instantiated(host, call, silent, close_row, closed, close)
    captured = np.zeros(host.height, bool)
    of_thread = process[thread[mine]]
    for at, until, owner in zip(start, close, of_thread, strict=True):
        captured |= silent & (host.start >= at) & (host.start < until) & (process[host.thread] == owner)
    return Captures(thread[mine], start, close, end, captured)


def _instantiated(host: Tree, call: Codes, silent: Mask, close_row: Ints, closed: Mask, close: Ints) -> Ints:
    """End of the instantiation that follows each capture on its thread before anything else is launched."""
    made = np.nonzero(call == Call.INSTANTIATE)[0]
    if not len(made) or not len(close_row):
        return close
    busy = np.nonzero(np.isin(call, (Call.LAUNCH, Call.GRAPH, Call.BEGIN_CAPTURE)) | silent)[0]
    slot = np.searchsorted(made, close_row, "right")
    row = made[np.minimum(slot, len(made) - 1)]
    other = np.searchsorted(busy, close_row, "right")
    stop = np.append(busy, host.height)[other]
    good = closed & (slot < len(made)) & (row < stop) & (host.thread[row] == host.thread[close_row])
    ends: Ints = np.where(good, host.end[row], close)
    return ends
