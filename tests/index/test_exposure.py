"""What of the host's time devices waited for, and device time with each moment counted once."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analyzer.index import exposure, intervals
from tests.micro import chain, kernel, op

WORK = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 30)), max_size=30)


def frame(rows):
    """Device work as `Device.frame` has it: in order of device and start."""
    data = [(device, ts, ts + dur) for device, ts, dur in rows]
    schema = {"device": pl.Int32, "ts": pl.Int64, "end": pl.Int64}
    return pl.DataFrame(data, schema, orient="row").sort("device", "ts", "end", maintain_order=True)


@given(WORK)
def test_what_each_adds_makes_the_union_and_nobody_adds_more_than_it_took(rows):
    work = frame(rows)
    once = exposure.once(work)
    assert once.sum() == intervals.union_length(work, ["device"])["length"].sum()
    assert ((once >= 0) & (once <= work["end"] - work["ts"])).all()


def test_the_first_to_run_has_the_time_that_two_share():
    """[0, 10], [5, 20] and [7, 9] on one device, [5, 20] on another."""
    work = frame([(0, 0, 10), (0, 5, 15), (0, 7, 2), (1, 5, 15)])
    assert exposure.once(work).to_list() == [10, 10, 0, 15]


def idle_until(chains):
    """The launch call returns at 97, the kernel starts at 100: until then the device waited for it."""
    return chains([op("a", 0, 60), op("b", 20, 60, tid=2), *chain("aten::mm", 90, 1, 100, 10)])


def test_a_late_launch_is_waited_for_in_whatever_is_open(chains):
    start, end = np.array([0, 50_000, 96_000]), np.array([60_000, 90_000, 99_000])
    assert exposure.waited_during(idle_until(chains), start, end).tolist() == [60_000, 40_000, 1_000]


def test_what_two_threads_have_open_is_waited_for_once(chains):
    """`a` [0, 60] and `b` [20, 80]: 80 in all; at most 30 of each: 60."""
    index = idle_until(chains)
    rows = np.nonzero(exposure.operators(index, "^[ab]$"))[0]
    assert exposure.waited(index, rows) == 80_000
    assert exposure.waited(index, rows, 30_000) == 60_000
    assert exposure.waited(index, rows[:0]) == 0


def test_a_launch_that_came_in_time_was_not_waited_for(chains):
    """The gap [110, 200] is the device's own: its work was queued at 20."""
    index = chains([*chain("a", 0, 1, 10, 100), *chain("b", 10, 2, 200, 10), op("c", 100, 90), kernel("x", 205, 1)])
    rows = np.nonzero(exposure.operators(index, "^c$"))[0]
    assert exposure.waited(index, rows) == 0
