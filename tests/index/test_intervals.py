"""Busy, idle, span and gaps of a device; unions; what is clipped on a stream."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.index import intervals
from tests.micro import kernel, memcpy, op


def device_of(chains):
    """(span, busy, idle, [gaps]) of device 0 in µs."""
    work = chains.device.frame
    span = work["end"].max() - work["ts"].min()
    busy = intervals.union_length(work, ["device"])["length"].sum()
    gaps = (chains.idle.gaps["end"] - chains.idle.gaps["start"]).to_list()
    return span / 1000, busy / 1000, (span - busy) / 1000, [g / 1000 for g in gaps]


def test_idle_is_the_span_less_the_union_of_all_streams(chains):
    """
    stream 7   0....10      30....40
    stream 8        8..15        38....55
    union      [0, 15] + [30, 55] = 15 + 25 = 40; span 55; idle 15, in one gap.
    """
    micro = [
        kernel("a", 0, 10, stream=7), kernel("b", 8, 7, stream=8),
        kernel("c", 30, 10, stream=7), kernel("d", 38, 17, stream=8),
    ]  # fmt: skip
    assert device_of(chains(micro)) == (55, 40, 15, [15])


def test_work_of_another_stream_ends_a_gap(chains):
    """Stream 7 is idle from 10 to 50, but stream 8 works from 20 to 40: two gaps of 10, not one of 40."""
    micro = [kernel("a", 0, 10), kernel("b", 20, 20, stream=8), kernel("c", 50, 10)]
    assert device_of(chains(micro)) == (60, 40, 20, [10, 10])


def test_touching_work_leaves_no_gap(chains):
    assert device_of(chains([kernel("a", 0, 10), kernel("b", 10, 10)])) == (20, 20, 0, [])


def test_a_short_kernel_under_a_long_one_does_not_move_the_frontier(chains):
    """Stream 8 works until 50; what ends at 20 on stream 7 opens no gap at 20."""
    micro = [kernel("long", 0, 50, stream=8), kernel("short", 10, 10), kernel("next", 60, 10)]
    assert device_of(chains(micro)) == (70, 60, 10, [10])


def test_devices_have_their_own_idle_time(chains):
    """Device 0: 0-10, 30-40: idle 20. Device 1 is busy all through its span: idle 0."""
    micro = [kernel("a", 0, 10), kernel("b", 30, 10), kernel("c", 0, 40, device=1)]
    built = chains(micro)
    assert built.idle.gaps.select("device", "start", "end").rows() == [(0, 10_000, 30_000)]


def test_nanoseconds_of_epoch_timestamps_are_exact(chains):
    """19 digits: doubles have a step of 256 ns there. Two kernels of 376 ns, one a µs: one gap of 624 ns."""
    base = 1_760_000_000_000_752
    micro = [kernel("a", base + 0.125, 0.376), kernel("b", base + 1.125, 0.376)]
    assert device_of(chains(micro)) == (1.376, 0.752, 0.624, [0.624])


# -- clipping --------------------------------------------------------------------------------------


def test_a_cut_is_held_against_the_event_before_as_well(chains):
    """
    A [0, 50], B [10, 90], C [20, 30] on one stream: B outlasts C and is cut to [10, 20]; then A outlasts B and
    is cut to [0, 10]: 40 + 70 = 110 µs cut.
    """
    micro = [kernel("a", 0, 50, 0), kernel("b", 10, 80, 0), kernel("c", 20, 10, 0)]
    built = chains(micro)
    assert built.device.frame.sort("ts")["dur"].to_list() == [10_000, 10_000, 10_000]
    assert built.device.frame["clipped"].sum() == 110_000


def test_an_event_that_outlasts_the_end_of_the_next_one_on_its_stream_is_cut_at_its_start(chains):
    """Stream 7 is in order: [0, 50] over [10, 20] cannot be. [0, 50] becomes [0, 10]: 40 µs cut."""
    built = chains([kernel("a", 0, 50), kernel("b", 10, 10), kernel("c", 60, 10)])
    assert built.device.frame.select("ts", "end", "dur", "clipped").rows() == [
        (0, 10_000, 10_000, 40_000),
        (10_000, 20_000, 10_000, 0),
        (60_000, 70_000, 10_000, 0),
    ]
    (warning,) = built.warnings
    assert (warning.code, warning.count) == ("stream-overrun", 1)
    assert "40.000 µs" in warning.message


def test_neighbours_that_overlap_a_little_are_kept(chains):
    """Programmatic dependent launch: the next one starts before the last one ends, and ends after it."""
    built = chains([kernel("a", 0, 12), kernel("b", 10, 10)])
    assert built.device.frame["clipped"].to_list() == [0, 0]
    assert built.warnings == ()


def test_branches_of_one_graph_launch_are_not_cut(chains):
    built = chains([kernel("a", 0, 50, corr=5), kernel("b", 10, 10, corr=5)])
    assert built.device.frame["clipped"].to_list() == [0, 0]


def test_work_of_different_streams_is_not_cut(chains):
    built = chains([kernel("a", 0, 50, stream=7), kernel("b", 10, 10, stream=8)])
    assert built.device.frame["clipped"].to_list() == [0, 0]


def test_lanes_without_a_stream_number_are_no_in_order_stream(chains):
    """Where a lane's name says no stream, nothing is known of its order."""
    micro = [{**kernel("a", 0, 50), "tid": "work"}, {**kernel("b", 10, 10), "tid": "work"}]
    for event in micro:
        del event["args"]["stream"]
    assert chains(micro).device.frame["clipped"].to_list() == [0, 0]


# -- the building blocks, against plain loops ----------------------------------------------------------

SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 25)), max_size=14)


def plain_union(spans):
    """{group: set of whole ns that are covered}."""
    covered = {}
    for group, start, length in spans:
        covered.setdefault(group, set()).update(range(start, start + length))
    return covered


def framed(spans):
    schema = {"group": pl.Int32, "ts": pl.Int64, "end": pl.Int64}
    return pl.DataFrame([(g, s, s + n) for g, s, n in spans], schema=schema, orient="row")


@given(SPANS)
def test_the_length_of_a_union_is_the_number_of_covered_nanoseconds(spans):
    lengths = dict(intervals.union_length(framed(spans), ["group"]).iter_rows())
    assert lengths == {group: len(ns) for group, ns in plain_union(spans).items()}


@given(SPANS)
def test_the_lengths_of_the_devices_unions_add_up(spans):
    work = framed(spans).rename({"group": "device"}).sort("device", "ts")
    assert intervals.length(work) == sum(map(len, plain_union(spans).values()))


@given(SPANS, st.lists(st.integers(-5, 90), min_size=1))
def test_a_cover_counts_what_lies_before_an_instant(spans, instants):
    covers = intervals.covers(framed(spans).rename({"group": "device"}))
    assert covers.keys() == plain_union(spans).keys()
    for device, ns in plain_union(spans).items():
        assert covers[device].before(np.array(instants)).tolist() == [sum(t < i for t in ns) for i in instants]


@given(SPANS)
def test_a_union_covers_exactly_what_its_parts_cover_in_disjoint_sorted_pieces(spans):
    merged = intervals.merged(framed(spans), ["group"])
    for group, ns in plain_union(spans).items():
        pieces = [(s, e) for g, s, e in merged.iter_rows() if g == group]
        assert {t for s, e in pieces for t in range(s, e)} == ns
        assert all(end < start for (_, end), (start, _) in pairwise(pieces))


@given(SPANS)
def test_busy_and_idle_add_up_to_the_span(spans):
    """Gaps as the chains find them: where an event starts after all earlier ones have ended."""
    found = intervals.with_frontier(framed(spans), ["group"])
    gaps = found.filter(pl.col("ts") > pl.col("frontier"))
    for group in plain_union(spans):
        mine = framed(spans).filter(pl.col("group") == group)
        of_group = gaps.filter(pl.col("group") == group)
        idle = (of_group["ts"] - of_group["frontier"]).sum()
        busy = intervals.union_length(mine, ["group"])["length"].item()
        assert busy + idle == mine["end"].max() - mine["ts"].min()


@pytest.mark.parametrize("copy_first", [True, False])
def test_the_order_of_the_file_does_not_matter(chains, copy_first):
    micro = [kernel("a", 0, 10), memcpy("HtoD", 20, 10), op("x", 0, 1)]
    assert device_of(chains(micro if copy_first else micro[::-1])) == (30, 20, 10, [10])
