"""Earlier work: what the device still works through that was launched before the window began.

A profiler attached to a running server, the steps that a schedule skipped, a host that ran ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.bound import LATENCY_LIMIT_NS

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Mask, Rows, Tree
    from analyzer.index.window import Window

#: So many of the first recorded works may be strays, if they are this small a share of what follows them.
STRAYS, STRAY_SHARE = 4, 0.01

SCHEMA = {"device": pl.Int32, "start": pl.Int64, "end": pl.Int64}


@dataclass(frozen=True)
class EarlierWork:
    """recorded    device rows of earlier work.
    unrecorded  device, start, end (ns): when a device worked on what was not recorded, at most one each.
    unlinked    whether some of the recorded kind was launched before the recording began.
    """

    recorded: Mask
    unrecorded: pl.DataFrame
    unlinked: bool


def find(host: Tree, device: pl.DataFrame, waits: Rows, window: Window | None, *, part: bool = False) -> EarlierWork:
    """device: rows as in `Device.frame`. waits: host rows that wait for a device.

    part  of a recording, whose launches before the window were recorded and are known.
    """
    none = np.zeros(device.height, bool)
    launch = device["launch"].fill_null(-1).to_numpy()
    linked = launch >= 0
    if window is None or not linked.any():
        return EarlierWork(none, pl.DataFrame(schema=SCHEMA), False)
    called = np.where(linked, host.start[launch], 0)
    inside = linked if part else linked & (called >= window.start)
    if not inside.any():
        return EarlierWork(none, pl.DataFrame(schema=SCHEMA), False)
    first_call = int(called[inside].min())
    lane = device.select("device", "stream", "ts").with_columns(inside=pl.Series(inside))
    begun = pl.col("ts").filter(pl.col("inside")).min().over("device", "stream")
    starts = lane.select(begun.fill_null(first_call))["ts"].to_numpy()
    unlinked = ~linked & (device["ts"].to_numpy() < starts)
    recorded = unlinked | (linked & (called < first_call))
    return EarlierWork(
        recorded,
        _unrecorded(host, device, launch, inside, waits, window),
        bool((unlinked & (device["end"].to_numpy() > window.start)).any()),
    )


def _unrecorded(
    host: Tree, device: pl.DataFrame, launch: Rows, inside: Mask, waits: Rows, window: Window
) -> pl.DataFrame:
    rows: list[tuple[int, int, int]] = []
    number = device["device"].to_numpy()
    ts, end = device["ts"].to_numpy(), device["end"].to_numpy()
    first_work = int(ts.min())
    for one in np.unique(number):
        mine = np.nonzero(number == one)[0]  # by start
        if not inside[mine].any():
            continue
        # A stray kernel or a few may have been recorded before: of other streams, or of what came before.
        found = None
        for position in np.nonzero(inside[mine])[0][:STRAYS]:
            found = found or _late_start(host, launch, ts, end, mine, int(position), window.start)
        if found is None:
            found = _waited(host, waits, int(ts[mine].min()), first_work, window.start)
        if found is not None and found[1] > found[0]:
            rows.append((int(one), *found))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _late_start(
    host: Tree, launch: Rows, ts: Ints, end: Ints, mine: Ints, position: int, since: int
) -> tuple[int, int] | None:
    """From the return of a work's call to its start, if that is long and nothing was recorded in between."""
    row = mine[position]
    before = mine[:position]
    begun, start = max(since, int(host.end[launch[row]])), int(ts[row])
    begun = max(begun, int(end[before].max())) if position else begun
    strays = int((end[before] - np.maximum(ts[before], since)).clip(0).sum())
    return (begun, start) if start - begun > max(LATENCY_LIMIT_NS, strays / STRAY_SHARE) else None


def _waited(host: Tree, waits: Rows, start: int, first_work: int, since: int) -> tuple[int, int] | None:
    """A wait that begins before any device's first recorded work waits for something unrecorded."""
    early = waits[(host.start[waits] >= since) & (host.start[waits] < first_work)]
    early = early[host.end[early] - host.start[early] > LATENCY_LIMIT_NS]
    if not len(early):
        return None
    return int(host.start[early].min()), min(start, int(host.end[early].max()))
