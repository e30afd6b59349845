"""What blocking waits cost: how long they hold the host, and the idle time that follows on the device.

A wait is rarely idle time itself; its price is the head start that the host loses. Of a gap that follows a wait it
is the part that a host with a head start would not leave, and never more than the wait took.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Chains
from analyzer.report.columns import Count, Ns, Row, column
from analyzer.report.results import Result

ORDER = 47

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
#: A wait returns a few µs after the work that it waited for; the gap begins with that work's end, and where
#: clocks differ by a tick or two it may seem to begin just after.
DRY_NS = 2_000


class WaitPrice(Row, frozen=True, kw_only=True):
    """A synchronize at the top with no launch after it only ends the recording, and is left out."""

    IDENTITY: ClassVar[str] = "count"

    count: Annotated[Count, column("waits", "blocking waits that somebody had to wait for")]
    held_ns: Annotated[Ns, column("held", "host time in them, all threads")]
    followed: Annotated[Count, column("followed", "of them, those that a launch came after")]
    followed_held_ns: Annotated[Ns, column("held", "host time in these")]
    followed_busy_ns: Annotated[Ns, column("busy", "device-busy time during each of these, all devices")]
    idle_ns: Annotated[Ns, column("idle after", "idle time that followed for want of a head start")]


class WaitCost(Result, frozen=True, kw_only=True):
    wait_cost: WaitPrice


def analyze(chains: Chains) -> WaitCost:
    host, wait = chains.host, chains.waits.ns
    rows = chains.waits.rows
    launches = np.nonzero(chains.launching.recorded)[0]
    last = int(host.start[launches].max()) if len(launches) else -1
    needed = host.start[rows] < last
    followed = rows[needed]
    mine = rows[(needed | (host.parent[rows] >= 0)) & (last >= 0)]
    return WaitCost(
        wait_cost=WaitPrice(
            count=len(mine),
            held_ns=int(wait[mine].sum()),
            followed=len(followed),
            followed_held_ns=int(wait[followed].sum()),
            followed_busy_ns=int(exposure.busy_during(chains, host.start[followed], host.end[followed]).sum()),
            idle_ns=_idle_after(chains),
        )
    )


def _idle_after(chains: Chains) -> int:
    """Per gap, the lesser of the wait before its launch, on whichever thread, and its time in LOST causes."""
    host, wait = chains.host, chains.waits.ns
    gaps = exposure.gaps_of(chains, LOST).filter(pl.col("launch").is_not_null())
    waits = chains.waits.rows
    if not gaps.height or not len(waits):
        return 0
    # The last wait that ended before the launch: it ran dry for this one only if the gap was open then, or began
    # just after.
    waits = waits[np.argsort(host.end[waits], kind="stable")]
    launched = host.start[gaps["launch"].to_numpy()]
    slot = np.searchsorted(host.end[waits], launched, "right") - 1
    last = waits[np.maximum(slot, 0)]
    ended = host.end[last]
    start, end = gaps["start"].to_numpy(), gaps["end"].to_numpy()
    inside = (slot >= 0) & (ended >= start - DRY_NS) & (ended <= end)
    lost = np.minimum(gaps["ns"].to_numpy(), wait[last])
    return int(np.where(inside, lost, 0).sum())
