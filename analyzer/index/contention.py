"""Stream contention: work that was queued on one stream starts late because another stream holds the device.

Told by how long the stream stood still before it, against the usual of the same neighbours, while another stream's
work ran. A stream that was told to wait for another (`cudaStreamWaitEvent`) depends on it, and does not contend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import vocabulary
from analyzer.index.intervals import Cover, cover

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.tree import Ints, Mask, Tree

#: Neighbours of one kind need so many members for a usual, and are late from here on: shorter delays are the
#: hardware's own scheduling.
MEMBERS, LATE_NS = 5, 50_000
#: Another stream's work must have run for this share of the delay.
HELD = 0.8

#: Copies inside one device.
_INSIDE = r"(?i)DtoD|DeviceToDevice|Device -> Device"

SCHEMA = {
    "row": pl.Int64,  # device row that started late
    "late_ns": pl.Int64,  # beyond the usual
    "by": pl.Int64,  # device row of another stream that ran longest meanwhile
}


def find(chains: Chains) -> pl.DataFrame:
    """Rows of SCHEMA, the latest first."""
    host, device, names = chains.host, chains.device.frame, chains.trace.names
    waits = host.is_call & names.str.contains(vocabulary.STREAM_WAIT).to_numpy()[host.name]
    known = host.is_call & names.str.contains(vocabulary.HAS_STREAM_WAIT).to_numpy()[host.name]
    # Kernels, and what moves in the device's own memory, need its processors; other copies a link, by direction.
    linking = (pl.col("cat") == int(Cat.MEMCPY)) & ~names.str.contains(_INSIDE).gather(device["name"])
    device = device.with_columns(needs=pl.when(linking).then("name").otherwise(-1))
    work = (
        device.with_row_index("row")
        .filter(pl.col("stream") >= 0)
        .with_columns(
            before=pl.col("name").shift(1).over("device", "stream", order_by="ts"),
            by=pl.col("launch").shift(1).over("device", "stream", order_by="ts"),
        )
        .filter(pl.col("launch").is_not_null() & pl.col("by").is_not_null() & (pl.col("launch") != pl.col("by")))
    )
    if not work.height or device["stream"].n_unique() < 2:
        return pl.DataFrame(schema=SCHEMA)
    # Elsewhere nobody knows how one stream is told to wait for another.
    work = work.filter(pl.Series(known[work["launch"].to_numpy()]))
    launch, previous = work["launch"].to_numpy(), work["by"].to_numpy()
    queued = pl.Series(host.end[launch] <= work["stream_frontier"].to_numpy())
    told = pl.Series(_told(host, launch, previous, waits))
    delay = pl.col("ts") - pl.col("stream_frontier")
    lane = ["device", "stream", "before", "name"]
    late = (
        work.filter(queued & ~told)
        .with_columns(delay=delay)
        .with_columns(usual=pl.col("delay").median().over(lane), members=pl.len().over(lane))
        .with_columns(late=pl.col("delay") - pl.col("usual").cast(pl.Int64).clip(lower_bound=0))
        .filter((pl.col("members") >= MEMBERS) & (pl.col("late") >= LATE_NS) & (pl.col("delay") > 2 * pl.col("usual")))
    )
    rows = [_held(device, one) for one in late.iter_rows(named=True)]
    found = [row for row in rows if row is not None]
    return pl.DataFrame(found, schema=SCHEMA, orient="row").sort("late_ns", descending=True)


def _told(host: Tree, launch: Ints, previous: Ints, waits: Mask) -> Mask:
    """Whether a stream was told to wait between two launches of a thread; from two threads nothing is known."""
    told = np.concatenate(([0], np.cumsum(waits)))
    apart = host.thread[launch] != host.thread[previous]
    asked: Mask = apart | (told[launch] > told[np.minimum(previous, launch)])
    return asked


def _held(device: pl.DataFrame, late: dict[str, int]) -> tuple[int, int, int] | None:
    """The late work, by how much, and what of another stream ran longest meanwhile; None where nothing did."""
    start, end = late["stream_frontier"], late["ts"]
    others = device.with_row_index("row").filter(
        (pl.col("device") == late["device"]) & (pl.col("stream") != late["stream"])
        & (pl.col("needs") == late["needs"]) & (pl.col("end") > start) & (pl.col("ts") < end)
    )  # fmt: skip
    if not others.height:
        return None
    ran: Cover = cover(others)
    if int(ran.within(np.array([start]), np.array([end]))[0]) < HELD * (end - start):
        return None
    overlap = pl.min_horizontal("end", end) - pl.max_horizontal("ts", start)
    longest = others.sort(overlap, descending=True, maintain_order=True)["row"][0]
    return late["row"], late["late"], int(longest)
