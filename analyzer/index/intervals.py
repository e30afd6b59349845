"""Unions, gaps and clipping of device work. Frames in, frames out; times in ns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.tree import Ints

#: Cutting an event can leave the one before it outlasting it: passes until nothing does. Real traces need
#: one; the bound keeps a made-up cascade from being quadratic.
_CLIP_PASSES = 64


def clip_overruns(work: pl.DataFrame) -> pl.DataFrame:
    """Cut events that outlast the end of the next one on their in-order stream, at its start.

    Takes and returns a frame of `schema.DEVICE`; adds `end` and `clipped` (ns cut, 0 for most).
    Neighbours of one launch (a graph's branches) may overlap and are left alone, as are lanes whose
    stream is unknown (-1).
    """
    lane = ["device", "stream"]
    out = work.with_columns(end=pl.col("ts") + pl.col("dur"), clipped=pl.lit(0, dtype=pl.Int64)).sort(
        [*lane, "ts", "end"], maintain_order=True
    )
    following = {f"next_{c}": pl.col(c).shift(-1).over(lane) for c in ("ts", "end", "correlation")}
    overruns = (
        (pl.col("next_end") < pl.col("end"))
        & (pl.col("stream") >= 0)
        & ((pl.col("correlation") == 0) | (pl.col("correlation") != pl.col("next_correlation")))
    )
    cut = pl.when(overruns).then(pl.col("end") - pl.col("next_ts")).otherwise(0)
    for _ in range(_CLIP_PASSES):
        marked = out.with_columns(**following).with_columns(cut=cut)
        if not marked["cut"].sum():
            break
        out = marked.with_columns(
            end=pl.col("end") - pl.col("cut"),
            dur=pl.col("dur") - pl.col("cut"),
            clipped=pl.col("clipped") + pl.col("cut"),
        ).select(out.columns)
    return out


def with_frontier(work: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Sort by `by` and start; add `frontier`: the latest end of all earlier events of the group.

    Null for the first of a group. A gap lies before an event exactly if `ts > frontier`.
    """
    return work.sort([*by, "ts", "end"], maintain_order=True).with_columns(
        frontier=pl.col("end").cum_max().shift(1).over(by)
    )


def union_length(intervals: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Length of the union of (`ts`, `end`) per group: columns of `by` and `length` (ns)."""
    fresh = pl.col("end") - pl.max_horizontal("ts", pl.col("frontier").fill_null(pl.col("ts")))
    only = intervals.select(*by, "ts", "end")
    return with_frontier(only, by).group_by(by, maintain_order=True).agg(length=fresh.clip(lower_bound=0).sum())


def length(work: pl.DataFrame) -> int:
    """Length of the unions of (`ts`, `end`) of each device, added up (ns). work: by device and start."""
    device, ts, end = (work[column].to_numpy() for column in ("device", "ts", "end"))
    if not len(ts):
        return 0
    # Each device's times are lifted beyond those of the one before: one running maximum serves all.
    lift = np.cumsum(np.append(0, device[1:] != device[:-1])) * (int(end.max()) - int(ts.min()) + 1)
    reached = np.maximum.accumulate(end + lift)
    before = np.append(ts[0], reached[:-1])
    return int(np.maximum(reached - np.maximum(ts + lift, before), 0).sum())


def merged(intervals: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """The union itself: disjoint maximal intervals, columns of `by`, `ts`, `end`. Touching ones merge."""
    ordered = with_frontier(intervals.select(*by, "ts", "end"), by)
    new = pl.col("frontier").is_null() | (pl.col("ts") > pl.col("frontier"))
    reached = pl.max_horizontal("end", "frontier")
    # A run begins with its earliest start, and its last row has reached the latest end.
    rows = ordered.select(*by, "ts", end=reached, new=new, last=new.shift(-1, fill_value=True))
    return rows.filter("new").select(*by, "ts").with_columns(rows.filter("last")["end"])


def spread(column: str) -> pl.Expr:
    """Robust standard deviation of a column in an aggregation: 1.4826 times the median absolute deviation."""
    return 1.4826 * (pl.col(column) - pl.col(column).median()).abs().median()


class Cover:
    """Disjoint sorted intervals [ts, te), for sums over many stretches: one binary search a border."""

    def __init__(self, ts: Ints, te: Ints) -> None:
        self._ts, self._te = ts, te
        self._total = np.concatenate(([0], np.cumsum(te - ts)))

    @property
    def total(self) -> int:
        return int(self._total[-1])

    def before(self, t: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Covered time before each instant, which may lie between two nanoseconds."""
        if not len(self._ts):
            return np.zeros(len(t), np.int64)
        k = np.searchsorted(self._ts, t, "right")
        over = np.where(k > 0, self._te[np.maximum(k, 1) - 1] - t, 0)
        out: npt.NDArray[Any] = self._total[k] - np.maximum(0, over)
        return out

    def within(self, start: Ints, end: Ints) -> Ints:
        """Covered time of each [start, end)."""
        out: Ints = self.before(end) - self.before(start)
        return out


def cover(intervals: pl.DataFrame) -> Cover:
    """The union of (`ts`, `end`), whatever else they belong to."""
    union = merged(intervals.select("ts", "end", all=pl.lit(0)), ["all"])
    return Cover(union["ts"].to_numpy(), union["end"].to_numpy())


def covers(intervals: pl.DataFrame) -> dict[int, Cover]:
    """The union of (`ts`, `end`) of each device."""
    union = merged(intervals, ["device"])
    return {
        int(device): Cover(one["ts"].to_numpy(), one["end"].to_numpy())
        for (device,), one in union.group_by("device", maintain_order=True)
    }
