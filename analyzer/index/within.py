"""Device work that belongs to a host interval: launched inside it, on its thread or for it by autograd.

Backward passes run on threads of the autograd engine while the thread that called `backward()` waits:
what they launch belongs to whatever that thread has open. Other threads' launches stay their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.events.schema import Cat

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.tree import Ints, Mask


@dataclass(frozen=True)
class Work:
    """Per interval: device time (sum, ns), device events, of them kernels, copies, fills, and launches."""

    device_ns: Ints
    events: Ints
    kernels: Ints
    copies: Ints
    fills: Ints
    launches: Ints


def engine_threads(chains: Chains) -> Mask:
    """Threads of the autograd engine. Shape (threads,)."""
    return chains.host.engine


def processes(chains: Chains) -> Ints:
    """Process of each host row, as a small number: what one does, it does for itself alone."""
    return chains.host.process[chains.host.thread]


def work_of(chains: Chains, rows: Ints, *, any_thread: bool = False) -> Work:
    """Device work of annotations (host rows).

    any_thread  count what any thread of the process launches while the interval is open: right for
                steps, which mark a time and not a call tree.
    """
    host = chains.host
    columns = _columns(chains)
    engine = engine_threads(chains)
    if any_thread:
        sums = [np.zeros(len(rows), np.int64) for _ in columns]
        others = np.nonzero(chains.launching.recorded)[0]
    else:
        sums = []
        for values in columns:
            total = np.concatenate(([0], np.cumsum(values)))
            sums.append(total[host.last[rows]] - total[rows])
        others = np.nonzero(chains.launching.recorded & engine[host.thread])[0]
    others = others[np.argsort(host.start[others], kind="stable")]
    process = processes(chains)
    for one in np.unique(process[rows]):
        mine = np.nonzero(process[rows] == one)[0]
        theirs = others[process[others] == one]
        first = np.searchsorted(host.start[theirs], host.start[rows[mine]], "left")
        past = np.searchsorted(host.start[theirs], host.end[rows[mine]], "left")
        if not any_thread:
            own = engine[host.thread[rows[mine]]]
            past = np.where(own, first, past)
        for i, values in enumerate(columns):
            total = np.concatenate(([0], np.cumsum(values[theirs])))
            sums[i][mine] += total[past] - total[first]
    return Work(*sums)


def launched_in(chains: Chains, rows: Ints) -> Mask:
    """Which device rows were launched inside any of the annotations. Shape (device rows,)."""
    host = chains.host
    launch = chains.device.frame["launch"].fill_null(-1).to_numpy()
    if not len(rows) or not len(launch):
        return np.zeros(len(launch), bool)
    rows = np.sort(rows)
    slot = np.searchsorted(rows, launch, "right") - 1
    nested = (slot >= 0) & (launch < np.maximum.accumulate(host.last[rows])[np.maximum(slot, 0)])
    thread = host.thread
    by_engine = (launch >= 0) & engine_threads(chains)[thread[launch]]
    when = host.start[launch]
    process = processes(chains)
    open_ = np.zeros(len(launch), bool)
    for one in np.unique(process[rows]):
        own = rows[process[rows] == one]
        begun = np.searchsorted(np.sort(host.start[own]), when, "right")
        ended = np.searchsorted(np.sort(host.end[own]), when, "right")
        open_ |= (process[launch] == one) & (begun > ended)
    mine: Mask = (launch >= 0) & (nested | (by_engine & open_))
    return mine


def _columns(chains: Chains) -> tuple[Ints, ...]:
    """Per host row, what its own launch put on the device: ns, events, kernels, copies, fills, 1."""
    kinds = (
        chains.device.frame.filter(pl.col("launch").is_not_null())
        .group_by("launch")
        .agg(
            kernels=(pl.col("cat") == int(Cat.KERNEL)).sum(),
            copies=(pl.col("cat") == int(Cat.MEMCPY)).sum(),
            fills=(pl.col("cat") == int(Cat.MEMSET)).sum(),
        )
    )
    at = kinds["launch"].to_numpy()
    by_kind = []
    for column in ("kernels", "copies", "fills"):
        values = np.zeros(chains.host.height, np.int64)
        values[at] = kinds[column].to_numpy()
        by_kind.append(values)
    return (
        chains.device.launched_ns,
        chains.device.launched_events,
        *by_kind,
        chains.launching.recorded.astype(np.int64),
    )
