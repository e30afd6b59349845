"""The window over time: cells of equal length, and how each divides into parts. What strips and pages draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index import parts
from analyzer.index.intervals import Cover, cover
from analyzer.index.parts import Part

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.window import Window


@dataclass(frozen=True)
class Cells:
    """One device: cell k spans [start + k * cell, start + (k + 1) * cell) ns, the last one ends with the window.

    shares  by part; shape (cells, parts); those of a cell add up to 1.
    """

    device: int
    start: int
    cell: float
    shares: npt.NDArray[np.float64]


def find(window: Window, work: pl.DataFrame, spans: pl.DataFrame, pieces: pl.DataFrame, count: int) -> list[Cells]:
    """work, spans, pieces: of the window, as `Account` and `Idle` have them."""
    # Rounded from the window's start on: a part of a trace counts from elsewhere.
    edges = window.start + np.linspace(0, window.duration, count + 1).round().astype(np.int64)
    start, end = edges[:-1], edges[1:]
    length = np.maximum(end - start, 1)
    device = spans["device"].to_numpy()[pieces["gap"].to_numpy()]
    part = parts.of_pieces(pieces)
    begin, ns = pieces["begin"].to_numpy(), pieces["ns"].to_numpy()
    kind = work.select(parts.kind_of_work(work).alias("kind"))["kind"].to_numpy()
    out = []
    for one in work["device"].unique().sort().to_list():
        shares = np.zeros((count, len(Part)))
        told = np.zeros(count, np.int64)
        mine = work["device"].to_numpy() == one
        for position, busy in enumerate(parts.BUSY):
            some = mine & np.isin(kind, parts.BUSY[: position + 1])
            if (mine & (kind == busy)).any():
                covered = cover(work.filter(pl.Series(some))).within(start, end)
                shares[:, busy] += (covered - told) / length
                told = covered
        mine = device == one
        for idle in np.unique(part[mine]):
            rows = np.nonzero(mine & (part == idle))[0]
            rows = rows[np.argsort(begin[rows], kind="stable")]
            shares[:, idle] += Cover(begin[rows], begin[rows] + ns[rows]).within(start, end) / length
        out.append(Cells(int(one), window.start, window.duration / count, shares))
    return out
