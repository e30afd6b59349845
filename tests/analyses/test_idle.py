"""Idle time as the host sees it: by cause, by whom, and where; the pace of launches; kernels too small to keep up."""

from __future__ import annotations

import pytest

from tests.micro import annotation, call, chain, frame, kernel, launch, memcpy, op

SMALL = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def by_cause(contract):
    return {row["cause"]: row for row in contract["idle"]["by_cause"]}


def test_lead_in_gaps_and_tail_out_add_up_by_cause_and_owner(contract):
    """Kernels [8, 10] and [108, 110]; launch calls [3, 7] and [103, 107]; a long tail of Python from 120 to 150.

    Lead-in [0, 8]: 7 of dispatch, 1 of latency. Gap [10, 108]: dispatch in `slow` [10, 107], latency 1.
    Tail [110, 150]: dispatch until 112, unrecorded to 120, Python in `log` to 150.
    """
    micro = [
        *chain("aten::mm", 0, 1, 8, 2),
        op("slow", 10, 102), launch("cudaLaunchKernel", 103, 4, 2), kernel("k", 108, 2, 2),
        annotation("log", 120, 30),
    ]  # fmt: skip
    found = by_cause(contract(micro))
    assert {cause: (row["us"], row["gaps_us"]) for cause, row in found.items()} == {
        "dispatch": (7 + 97 + 2, 97),
        "launch_latency": (1 + 1, 1),
        "no_host_event": (8, 0),
        "python": (30, 0),
    }
    assert [(o["name"], o["us"]) for o in found["dispatch"]["owners"]] == [("slow", 99), ("aten::mm", 7)]
    assert [(o["name"], o["us"]) for o in found["python"]["owners"]] == [("log", 30)]


def test_the_gaps_that_a_cause_fills_are_told_with_what_ended_them(contract):
    """Gaps [10, 108] and [110, 208], all dispatch but for 1 µs, ended by `k` and `j`: of equals the first by name."""
    micro = [
        *chain("aten::mm", 0, 1, 8, 2),
        op("slow", 10, 98), launch("cudaLaunchKernel", 103, 4, 2), kernel("k", 108, 2, 2),
        op("slow", 110, 98), launch("cudaLaunchKernel", 203, 4, 3), kernel("j", 208, 2, 3),
    ]  # fmt: skip
    found = by_cause(contract(micro))["dispatch"]
    assert found["mostly"] == {"count": 2, "total_us": 196, "median_us": 98, "max_us": 98}
    assert found["ended_by"] == {"name": "j", "count": 1}
    assert by_cause(contract(micro))["launch_latency"]["mostly"] is None


def test_generated_code_is_one_place_whatever_its_hash(contract):
    """Idle in the two: [0, 84] before the first kernel, [86, 90] and [100, 184], and [186, 190] after the last."""
    micro = []
    for i, code in enumerate(("fabc", "fxyz")):
        t = 100 * i
        micro += [op(f"## Call CompiledFxGraph {code} ##", t, 90), call("cuLaunchKernel", t + 80, 4, corr=i + 1),
                  kernel("k", t + 85, 1, i + 1)]  # fmt: skip
    (owner,) = by_cause(contract(micro))["compiled_overhead"]["owners"]
    assert owner["us"] == 84 + 4 + 84 + 4


def test_the_place_is_the_deepest_frame_in_a_file_that_was_open_throughout(contract):
    """The gap is [10, 108]; `step` is open for 90 of 97 µs, `inner` for 30; `<built-in>` names no place."""
    micro = [
        *chain("aten::mm", 0, 1, 8, 2),
        frame("train.py(1): main", 0, 200), frame("train.py(7): step", 12, 90), frame("train.py(9): inner", 20, 30),
        frame("<built-in function sleep>", 55, 40),
        op("aten::mm", 100, 8), launch("cudaLaunchKernel", 103, 4, 2), kernel("k", 108, 2, 2),
    ]  # fmt: skip
    place = by_cause(contract(micro))["python"]["place"]
    assert place == {"frame": "train.py(7): step", "count": 1}


def test_a_lead_in_has_a_place_where_there_are_no_gaps(contract):
    micro = [op("start", 0, 1), frame("train.py(7): load", 0, 98), op("aten::mm", 98, 10),
             launch("cudaLaunchKernel", 103, 4, 1), kernel("k", 108, 2, 1)]  # fmt: skip
    found = by_cause(contract(micro))
    assert found["python"]["place"] == {"frame": "train.py(7): load", "count": 1}
    assert found["python"]["gaps_us"] == 0


def test_without_device_work_nothing_is_idle(contract):
    assert contract([op("aten::mm", 0, 10)])["idle"] == {"by_cause": []}


# -- the pace -----------------------------------------------------------------------------------------------


def test_the_pace_is_from_launch_to_launch_against_what_each_launched(contract):
    """Launch calls start at 3, 103 and 303: 100 and 200 apart."""
    micro = [*chain("a", 0, 1, 8, 2), *chain("a", 100, 2, 108, 4), *chain("a", 300, 3, 308, 9)]
    assert contract(micro)["pace"] == {
        "device_work": {"count": 3, "total_us": 15, "median_us": 4, "max_us": 9},
        "between_launches": {"count": 2, "total_us": 300, "median_us": 150, "max_us": 200},
    }


def test_two_launches_have_no_pace(contract):
    micro = [*chain("a", 0, 1, 8, 2), *chain("a", 100, 2, 108, 4)]
    assert contract(micro)["pace"]["between_launches"] is None
    assert contract([op("a", 0, 1)])["pace"] == {"device_work": None, "between_launches": None}


# -- small kernels ------------------------------------------------------------------------------------------


def test_small_kernels_are_those_that_fuse_and_are_shorter_than_a_launch_call(contract):
    """Launch calls take 4 µs. Small: two of 1 and 3 µs. Not: one of 4, a product, a copy by the engine, a graph's."""
    micro = [
        *chain("aten::add", 0, 1, 10, 1, kernel_name=SMALL),
        *chain("aten::mul", 20, 2, 30, 3, kernel_name=SMALL),
        *chain("aten::mul", 40, 3, 50, 4, kernel_name=SMALL),
        *chain("aten::mm", 60, 4, 70, 1, kernel_name="ampere_sgemm_128x64_tn"),
        op("aten::copy_", 80, 10), launch("cudaMemcpyAsync", 83, 4, 5), memcpy("DtoD", 90, 1, 5),
        launch("cudaGraphLaunch", 100, 4, 6), kernel(SMALL, 110, 1, 6),
    ]  # fmt: skip
    found = contract(micro)["small_kernels"]
    assert found["launch_call_us_median"] == 4
    assert found["kernels"] == {"count": 2, "total_us": 4, "median_us": 2, "max_us": 3}
    assert sorted(o["name"] for o in found["operators"]) == ["aten::add", "aten::mul"]
    assert [o["count"] for o in found["operators"]] == [1, 1]
    assert found["kinds"] == [{"kind": "elementwise", "us": 4}]
    # Gap [11, 30]: nothing recorded until 20, then 7 µs of dispatch and 3 of latency. The lead-in is no gap.
    assert found["idle_us"] == 10


def test_without_launches_no_kernel_is_small(contract):
    found = contract([kernel(SMALL, 0, 1)])["small_kernels"]
    assert (found["launch_call_us_median"], found["kernels"], found["idle_us"]) == (None, None, 0)
    assert found["operators"] == found["kinds"] == []


@pytest.mark.parametrize("devices", [1, 2])
def test_idle_time_of_all_devices_is_added_up(contract, devices):
    """Each device idles through the same gap [10, 108]."""
    micro = []
    for device in range(devices):
        for ts, corr in ((0, 1), (100, 2)):
            c = corr + 10 * device
            tid = device + 1
            micro += [op("aten::mm", ts, 10, tid=tid), launch("cudaLaunchKernel", ts + 3, 4, c, tid=tid),
                      kernel("k", ts + 8, 2, c, device=device)]  # fmt: skip
    total = sum(row["gaps_us"] for row in contract(micro)["idle"]["by_cause"])
    assert total == 98 * devices
