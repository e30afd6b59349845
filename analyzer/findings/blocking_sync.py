"""The host stands still for the device, and the device then waits for the host.

What it means
    A synchronize, `.item()`, `nonzero()`, `bool(tensor)`, `.cpu()` or a pageable copy holds the host until all
    queued work is done. While it waits it queues nothing, so that the device has nothing to do when it
    ends. A wait is rarely idle time itself: its price is the head start that the host loses.

How it is computed
    Time inside synchronize calls, and the blocking part of pageable copies. What a wait costs is the idle gap
    that follows on the device, as far as dispatch, Python or the wait itself is its cause, and never more than
    the wait took: without it the host would be ahead by just that. "Up to" adds this up. It fires when the
    verdict is sync-bound, or the cost is at least a hundredth of the window; and as a note when three waits or more
    hold the host for a quarter of the window but the device worked meanwhile. A final synchronize that only flushes
    the profiler is not counted.

What to try
    Keep values on the device: `torch.where(mask, a, b)` in place of `if mask.any():`, accumulate the loss in a
    tensor and call `.item()` every hundred steps, `torch.nonzero` only where its size is needed. Constants:
    `torch.tensor(x, device="cuda")` copies from pageable memory each call; make it once, outside the loop.
    Inputs: `pin_memory=True` and `.to("cuda", non_blocking=True)`. To find them all:
        torch.cuda.set_sync_debug_mode("warn")

When it is wrong
    Some waits are needed (a result must be read, a stopping rule decided): then move them to where the
    device has other work queued. The gain is an upper bound: other host work may take the wait's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer import units
from analyzer.analyses.overview import Overview
from analyzer.analyses.waits import Wait, Waits
from analyzer.findings import HOLDS, SEEN, WORTH, finding, share_of, take
from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

if TYPE_CHECKING:
    from analyzer.index.tree import Rows

NAME = "blocking-sync"
#: Idle time after a wait that a host with a head start would not leave. The input pipeline, first use
#: and the rest would be there all the same.
LOST = (
    Cause.DISPATCH,
    Cause.COMPILED_OVERHEAD,
    Cause.PYTHON,
    Cause.LAUNCH_LATENCY,
    Cause.BLOCKING_SYNC,
    Cause.PAGEABLE_COPY,
    Cause.NO_HOST_EVENT,
)
#: Waits are listed by operator, the longest in total first.
LISTED = 4
#: A wait or two is the end of a step; what comes back keeps the host from running ahead.
REPEATED = 3


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    waits = take(results, Waits)
    rows = np.nonzero(chains.wait_ns > 0)[0].astype(np.int32)
    launches = np.nonzero(chains.is_launch)[0]
    if chains.window is None or not len(rows) or not len(launches):
        return
    # A synchronize with no launch after it only ends the recording: nobody waits for the host any more.
    needed = chains.host.start[rows] < chains.host.start[launches].max()
    followed = rows[needed]
    rows = rows[needed | (chains.host.parent[rows] >= 0)]
    if not len(rows):
        return
    lost = cost(chains)
    share = share_of(chains, lost)
    by_verdict = take(results, Overview).verdict.bound == "sync-bound"
    hidden = share < SEEN and not by_verdict
    held = int(chains.wait_ns[rows].sum())
    if hidden and not _hidden(chains, followed):
        return
    per_step = f", {units.count(round(len(rows) / waits.steps, 1))} a step" if waits.steps else ""
    title = f"{plural(len(rows), 'wait holds', 'waits hold')} the host for {units.duration(held)}{per_step}"
    if hidden:
        yield finding(
            NAME,
            Severity.NOTE,
            f"{title}, hidden: the device had work queued meanwhile",
            _lines(waits),
            "The waits themselves cost little, but the host could prepare the next work meanwhile: queue it first, "
            "then wait.",
            None,
            chains,
        )
        return
    yield finding(
        NAME,
        Severity.ERROR if by_verdict or share >= HOLDS else Severity.WARNING if share >= WORTH else Severity.NOTE,
        title,
        _lines(waits),
        _advice(waits),
        lost,
        chains,
    )


def _hidden(chains: Chains, rows: Rows) -> bool:
    """Whether waits hold the host for a good part of the window, again and again, while the device works."""
    held = int(chains.wait_ns[rows].sum())
    window = chains.window.duration if chains.window else 0
    # More than the window: several threads wait for the same work, and the sum says nothing.
    if len(rows) < REPEATED or not HOLDS * window <= held <= window:
        return False
    busy = exposure.busy_during(chains, chains.host.start[rows], chains.host.end[rows])
    return int(busy.sum()) >= held // 2


def cost(chains: Chains) -> int:
    """Per gap, the lesser of the wait before its launch on the same thread and its time in LOST causes."""
    host = chains.host
    gaps = exposure.gaps_of(chains, LOST).filter(pl.col("launch").is_not_null())
    waits = np.nonzero(chains.wait_ns > 0)[0]
    if not gaps.height or not len(waits):
        return 0
    launch = gaps["launch"].to_numpy()
    # The last wait of the thread that ended before the launch; rows of a thread are in order of start.
    slot = np.searchsorted(waits, launch, "left") - 1
    wait = waits[np.maximum(slot, 0)]
    ended = host.end[wait]
    mine = (slot >= 0) & (host.thread[wait] == host.thread[launch]) & (ended <= host.start[launch])
    # It ran dry for this wait only if the gap was open when the wait ended, or began just after.
    inside = mine & (ended >= gaps["start"].to_numpy() - _DRY_NS) & (ended <= gaps["end"].to_numpy())
    lost = np.minimum(gaps["ns"].to_numpy(), chains.wait_ns[wait])
    return int(np.where(inside, lost, 0).sum())


#: A wait returns a few µs after the work that it waited for; the gap begins with that work's end, and where
#: clocks differ by a tick or two it may seem to begin just after.
_DRY_NS = 2_000


def _lines(waits: Waits) -> list[str]:
    """One line for each place: call, operator, count and spread."""
    listed = [w for w in waits.rows if w.path or w.count > 1]
    rows = listed[:LISTED]
    lines = [
        f"{w.count:,} × {w.call} in {' > '.join(w.path[-3:]) or 'no operator'}: total {units.duration(w.total_ns)}, "
        f"median {units.duration(w.median_ns)}, max {units.duration(w.max_ns)}{_meaning(w)}"
        for w in rows
    ]
    rest = len(listed) - len(rows)
    return [*lines, f"and {plural(rest, 'other place', 'other places')}"] if rest > 0 else lines


def _meaning(wait: Wait) -> str:
    """The Python that usually stands behind an operator path."""
    operators = set(wait.path)
    if "aten::is_nonzero" in operators:
        return " (bool() of a tensor)"
    if operators & {"aten::item", "aten::_local_scalar_dense"}:
        return " (.item() or a comparison)"
    if "aten::nonzero" in operators:
        return " (nonzero: the host needs its size)"
    if "aten::copy_" in operators:
        return " (a copy that blocks: pageable memory, or .cpu())"
    return ""


def _advice(waits: Waits) -> str:
    operators = {name for w in waits.rows for name in w.path}
    said = []
    if operators & {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"}:
        said.append("keep values on the device (torch.where for `if tensor:`; .item() only every N steps)")
    if "aten::nonzero" in operators:
        said.append("replace nonzero and boolean indexing by masks of fixed size")
    if "aten::copy_" in operators:
        said.append("make constants once outside the loop, and pin inputs: .to(device, non_blocking=True)")
    if not said:
        said.append("drop synchronizes that only time or log, or queue the next work before them")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}. torch.cuda.set_sync_debug_mode('warn') names each line."
