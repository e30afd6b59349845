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


def find(host: Tree, call: Codes, silent: Mask, recorded: Mask, process: Ints) -> Captures:
    """silent, recorded: launch calls without and with a device record. process: of each thread, a small number.

    Of a capture that the recording cut, as much is taken as launched nothing that was recorded. What another
    thread of the process launches meanwhile without a record (autograd's, say) is captured too.
    """
    marks = np.nonzero((call == Call.BEGIN_CAPTURE) | (call == Call.END_CAPTURE))[0]
    begins = call[marks] == Call.BEGIN_CAPTURE
    working = np.nonzero(recorded)[0]
    spans: list[tuple[int, int, int, int]] = []  # thread, start, close, row of EndCapture or -1
    for position, mark in enumerate(marks.tolist()):
        thread = int(host.thread[mark])
        lo, hi = host.rows_of(thread)
        near = np.searchsorted(working, mark)
        follows = position + 1 < len(marks) and host.thread[marks[position + 1]] == thread
        follows_begin = position > 0 and host.thread[marks[position - 1]] == thread and begins[position - 1]
        if begins[position] and follows and not begins[position + 1]:
            ender = int(marks[position + 1])
            spans.append((thread, int(host.start[mark]), int(host.end[ender]), ender))
        elif begins[position]:
            border = int(marks[position + 1]) if follows else hi
            past = min(border, int(working[near])) if near < len(working) else border
            until = int(host.start[past]) if past < hi else int(host.end[lo:hi].max())
            spans.append((thread, int(host.start[mark]), until, -1))
        elif not follows_begin:
            last = int(working[near - 1]) if near else -1
            since = int(host.end[last]) if last >= lo else int(host.start[lo])
            spans.append((thread, min(since, int(host.start[mark])), int(host.end[mark]), mark))
    table = np.array(spans, np.int64).reshape(-1, 4)
    owner, start, close, row = (table[:, column] for column in range(4))
    captured = np.zeros(host.height, bool)
    for of, at, until in zip(process[owner], start, close, strict=True):
        captured |= silent & (host.start >= at) & (host.start < until) & (process[host.thread] == of)
    end = _instantiated(host, call, silent | recorded, row, close)
    return Captures(owner.astype(np.int32), start, close, end, captured)


def _instantiated(host: Tree, call: Codes, launches: Mask, row: Ints, close: Ints) -> Ints:
    """End of the instantiation that follows each capture on its thread before anything else is launched."""
    made = np.nonzero(call == Call.INSTANTIATE)[0]
    if not len(made) or not len(row):
        return close
    busy = np.nonzero(launches | (call == Call.BEGIN_CAPTURE))[0]
    slot = np.searchsorted(made, row, "right")
    maker = made[np.minimum(slot, len(made) - 1)]
    stop = np.append(busy, host.height)[np.searchsorted(busy, row, "right")]
    good = (row >= 0) & (slot < len(made)) & (maker < stop) & (host.thread[maker] == host.thread[np.maximum(row, 0)])
    ends: Ints = np.where(good, np.maximum(host.end[maker], close), close)
    return ends
