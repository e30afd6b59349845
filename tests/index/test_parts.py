"""Where the window went: the parts add up to it, on every trace."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.events.schema import Cat
from analyzer.index.activity import Cause
from analyzer.index.bound import judge
from analyzer.index.build import build
from analyzer.index.intervals import union_length
from analyzer.index.parts import OF_CAUSE, Part
from analyzer.sources.kineto.read import read
from tests.index.test_cause_oracle import traces
from tests.micro import annotation, kernel, launch, memcpy, memset, op, write


def parts(built):
    return {part.key: ns / 1000 for part, ns in built.account.parts.items() if ns}


def test_every_cause_has_a_part():
    assert set(OF_CAUSE) == set(Cause)


def test_busy_time_is_told_in_order_where_kinds_overlap(chains):
    """Compute [0, 30]; all-reduce [20, 70]; copy [60, 90]; fill [80, 95]: 30, 40, 25 of the window's 95."""
    micro = [kernel("gemm", 0, 30), kernel("ncclDevKernel_AllReduce", 20, 50, stream=8),
             memcpy("HtoD (Pinned -> Device)", 60, 30, stream=9), memset(80, 15, stream=10)]  # fmt: skip
    assert parts(chains(micro)) == {"compute": 30, "communication": 40, "copies": 25}


def test_work_that_autotuning_launched_is_startup(chains):
    """[10, 510] tried by the compiler, [600, 700] the run's own. The compiler's host time: [0, 9] and [510, 520]."""
    micro = [
        annotation("CachingAutotuner.benchmark_all_configs (dynamo_timed)", 0, 520),
        launch("cuLaunchKernel", 5, 4, 1), kernel("triton_mm", 10, 500, 1),
        launch("cuLaunchKernel", 530, 4, 2), kernel("triton_mm", 600, 100, 2),
    ]  # fmt: skip
    assert parts(chains(micro)) == {"compute": 100, "startup": 9 + 500 + 10, "dispatch": 81}


def test_several_devices_are_averaged(chains):
    """Window [0, 100]: device 0 busy 100, device 1 busy 40 and then nothing more is launched for 60."""
    micro = [op("aten::mm", 0, 100), launch("cudaLaunchKernel", 0, 1, 1), launch("cudaLaunchKernel", 0, 1, 2),
             kernel("a", 0, 100, 1), kernel("b", 0, 40, 2, device=1)]  # fmt: skip
    assert parts(chains(micro)) == {"compute": 70, "dispatch": 30}


def test_launch_latency_and_dependencies_beyond_a_millisecond_are_unknown(chains):
    """Much work first. Then b launched at 2100 starts at 9000: 6.9 ms, of which one is the launch path's."""
    micro = [launch("cudaLaunchKernel", 0, 1, 1), kernel("a", 1, 1999, 1),
             launch("cudaLaunchKernel", 2095, 5, 2), kernel("b", 9000, 1000, 2)]  # fmt: skip
    assert parts(chains(micro)) == {"compute": 2999, "dispatch": 1 + 1000 + 100, "unknown": 5900}


def judged(**ns):
    return judge({part: ns.get(part.key, 0) for part in Part})


@pytest.mark.parametrize(
    ("bound", "ns"),
    [
        ("compute-bound", {"compute": 50, "dispatch": 50}),  # half is enough, and the device comes first
        ("compute-bound", {"compute": 30, "device": 25, "dispatch": 45}),
        ("copy-bound", {"copies": 60, "compute": 40}),
        ("pause-bound", {"pauses": 42, "dispatch": 27, "compute": 27, "waits": 4}),  # 40%, and 1.5 times the next
        ("mixed", {"pauses": 42, "dispatch": 29, "compute": 29}),
        ("mixed", {"pauses": 39, "dispatch": 21, "compute": 20, "waits": 20}),
        ("mixed", {"unknown": 60, "compute": 40}),
        ("mixed", {"pauses": 45, "unknown": 31, "compute": 24}),  # unknown included
        ("sync-bound", {"waits": 30, "compute": 20, "profiler": 200, "earlier_work": 20}),
        ("nothing-to-judge", {"not_recorded": 60, "compute": 40}),
        ("nothing-to-judge", {"earlier_work": 5e6, "compute": 9e5}),
        ("compute-bound", {"earlier_work": 5e6, "compute": 11e5}),
        ("nothing-to-judge", {"profiler": 60}),
        ("nothing-to-judge", {}),
    ],
)
def test_the_bound_is_the_largest_part_that_has_one(bound, ns):
    assert judged(**ns).bound == bound


def test_the_sentence_has_the_largest_parts_own_words_and_figure():
    found = judged(pauses=700_000, dispatch=200_000, compute=100_000)
    assert found.reason == "the host stops launching, and the device stands still: 700 µs of 1.00 ms (70%)"
    mixed = judged(unknown=450_000, copies=300_000, compute=250_000)
    assert mixed.reason == (
        "no part holds half of the time: waiting that the trace does not explain 450 µs of 1.00 ms (45%), "
        "copies that no kernel overlaps 300 µs (30%)"
    )


def test_one_rank_of_several_cannot_tell_transfer_from_waiting(chains):
    micro = [kernel("ncclDevKernel_AllReduce", 0, 50)]
    assert "unknown" not in chains(micro).verdict.reason
    assert (
        "wait for other ranks is unknown" in chains(micro, distributedInfo={"rank": 0, "world_size": 8}).verdict.reason
    )


# -- properties ------------------------------------------------------------------------------------------------


def holds(built):
    """Parts and idle tables add up to the window, on each device."""
    window = built.window
    if not built.device.frame.height:
        assert built.account.parts == {}
        return
    devices = built.device.frame["device"].unique().to_list()
    assert sum(built.account.parts.values()) == window.duration
    assert all(ns >= 0 for ns in built.account.parts.values())
    spans, pieces = built.idle.spans, built.idle.pieces
    of = spans["device"].to_numpy()[pieces["gap"].to_numpy()]
    work = built.account.work
    for device in devices:
        mine = work.filter(pl.col("device") == device)
        busy = union_length(mine, ["device"])["length"].sum()
        assert busy + int(pieces["ns"].to_numpy()[of == device].sum()) == window.duration
    # DESIGN: idle in the window = sum of (total - outside + edge).
    total = built.idle.gap_pieces["ns"].sum()
    outside = total - pieces.filter(pl.col("gap") < built.idle.gaps.height)["ns"].sum()
    edge = built.idle.edge_pieces["ns"].sum() + built.idle.tail_pieces["ns"].sum()
    assert total - outside + edge == pieces["ns"].sum()
    for cells in built.account.timeline(37):
        assert np.allclose(cells.shares.sum(axis=1), 1)


@settings(max_examples=100)
@given(traces())
def test_parts_and_idle_tables_of_random_traces_add_up(tmp_path_factory, events):
    path = write(tmp_path_factory.getbasetemp() / "parts.json", events)
    holds(build(read(path, jobs=1)))


def test_parts_and_idle_tables_of_every_fixture_add_up():
    from tests.test_fixtures import FIXTURES

    for path in sorted(FIXTURES.glob("*.json.gz")):
        holds(build(read(path, jobs=1)))


PAIRS = st.sampled_from([("gemm", "my_kernel_7"), ("at::native::add", "at::native::mul"), ("abc", "xyz")])


@settings(max_examples=25)
@given(traces(), PAIRS)
def test_renaming_kernels_without_meaning_leaves_kinds_and_parts_alone(tmp_path_factory, events, pair):
    path = tmp_path_factory.getbasetemp() / "names.json"
    found = []
    for name in pair:
        renamed = [{**e, "name": name} if e["cat"] == "kernel" else e for e in events]
        built = build(read(write(path, renamed), jobs=1))
        found.append(
            (
                built.device.frame.filter(pl.col("cat") == int(Cat.KERNEL))["communication"].to_list(),
                built.account.parts,
            )
        )
    assert found[0] == found[1]


@settings(max_examples=25)
@given(st.integers(2, 9), st.data())
def test_scaling_all_times_leaves_shares_alone(tmp_path_factory, factor, data):
    """Where no threshold bites: no call of 50 µs, no gap of queued work, no pause."""
    micro, at = [op("start", 0, 1)], 1
    for number in range(1, 8):
        host, device = data.draw(st.integers(2, 9)), data.draw(st.integers(1, 9))
        micro += [op("aten::mm", at, host + 3), launch("cudaLaunchKernel", at + host, 2, number),
                  kernel("k", at + host + 3, device, number)]  # fmt: skip
        at += host + 3 + device + 1
    path = tmp_path_factory.getbasetemp() / "scaled.json"
    small = build(read(write(path, micro), jobs=1)).account.parts
    scaled = [{**e, "ts": e["ts"] * factor, "dur": e["dur"] * factor} for e in micro]
    large = build(read(write(path, scaled), jobs=1)).account.parts
    assert {part: ns * factor for part, ns in small.items()} == large
