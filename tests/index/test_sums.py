"""Sums by small whole numbers, against a plain loop; and both ways of making them."""

from __future__ import annotations

from collections import Counter

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analyzer.index import sums

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4), st.booleans(), st.integers(0, 1 << 52)), max_size=20)
SCHEMA = {"gap": pl.Int64, "owner": pl.Int32, "pause": pl.Boolean, "ns": pl.Int64}


@given(ROWS, st.sampled_from([1, sums.CELLS]))
def test_each_combination_that_there_is_has_its_sum(rows, cells):
    expected: Counter[tuple[int, int, bool]] = Counter()
    for *key, ns in rows:
        expected[tuple(key)] += ns % (1 << 48)
    frame = pl.DataFrame([(*key, ns % (1 << 48)) for *key, ns in rows], schema=SCHEMA, orient="row")
    before, sums.CELLS = sums.CELLS, cells
    try:
        found = sums.sums(frame, {"gap": 4, "owner": 5, "pause": 2})
    finally:
        sums.CELLS = before
    assert found.schema == SCHEMA
    assert found.rows() == [(*key, ns) for key, ns in sorted(expected.items())]
