"""Sums of time by small whole numbers: counted into cells, where grouping by hash would cost ten times as much."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import polars as pl

#: Cells that are worth their memory; with more, rows are grouped.
CELLS = 1 << 23


def sums(rows: pl.DataFrame, below: Mapping[str, int]) -> pl.DataFrame:
    """Sum of `ns` for each combination of some columns that there is, in their order.

    below  column of whole numbers from -1 on, or of bools -> what all of its values are below.
    """
    shape = [most + 1 for most in below.values()]
    types = {column: rows.schema[column] for column in below}
    if prod(shape) > CELLS:
        return rows.group_by(list(below)).agg(pl.col("ns").sum()).sort(list(below))
    key = np.zeros(rows.height, np.int64)
    for column, size in zip(below, shape, strict=True):
        key = key * size + rows[column].to_numpy() + 1
    found = np.flatnonzero(np.bincount(key))
    # Exact in doubles: no trace lasts the 104 days that 2^53 ns are.
    total = np.bincount(key, rows["ns"].to_numpy())[found].astype(np.int64)
    values = np.unravel_index(found, shape)
    columns = {column: pl.Series(value - 1).cast(types[column]) for column, value in zip(below, values, strict=True)}
    return pl.DataFrame({**columns, "ns": total})
