"""First calls taken apart, and memory fetched from the driver after them."""

from __future__ import annotations

import pytest

from tests.micro import BUFFER, LOADING, call, kernel, launch, op, overhead


def cold(*inside, took=1000):
    """aten::mm takes `took` µs, then three times 10."""
    events = [op("aten::mm", 0, took), launch("cudaLaunchKernel", took - 10, 4, 1), kernel("gemm", took - 5, 1, 1)]
    for i in range(3):
        t = took + 10 * i
        events += [op("aten::mm", t, 10), launch("cudaLaunchKernel", t + 3, 4, 2 + i), kernel("gemm", t + 8, 1, 2 + i)]
    return [*events, *inside]


def test_a_first_call_is_told_by_what_is_inside_it(contract):
    """1,000 µs: allocation 400, two queries of 50, a launch of 4, the profiler 100: 396 are left."""
    micro = cold(
        call("cudaMalloc", 100, 400), call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", 600, 50),
        call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", 650, 50), overhead(BUFFER, 750, 100),
    )  # fmt: skip
    (first,) = contract(micro)["first_use"]["calls"]
    assert (first["name"], first["us"], first["later_us_median"]) == ("aten::mm", 1000, 10)
    assert [(part["what"], part["count"], part["us"]) for part in first["inside"]] == [
        ("allocation", 1, 400),
        ("inside the operator and its libraries, unrecorded", None, 396),
        ("occupancy queries", 2, 100),
        ("the profiler's buffer request", None, 100),
        ("launch calls", 1, 4),
    ]


@pytest.mark.parametrize(
    ("inside", "started"),
    [
        ([overhead(BUFFER, 100, 800)], True),
        ([overhead(BUFFER, 100, 800), call("cudaMalloc", 50, 20)], False),
        ([overhead(BUFFER, 100, 800), overhead(LOADING, 950, 10)], False),
        ([], False),
    ],
)
def test_it_was_the_profilers_start_where_nothing_was_loaded_or_allocated(contract, inside, started):
    assert contract(cold(*inside))["first_use"]["profiler_started"] is started


def test_loading_is_counted_wherever_it_happened(contract):
    found = contract(cold(overhead(LOADING, 100, 30), overhead(LOADING, 5000, 12)))["first_use"]
    assert (found["loading_events"], found["loading_us"]) == (2, 42)


def test_a_warm_run_has_no_first_calls(contract):
    found = contract(cold(took=25))["first_use"]
    assert (found["calls"], found["loading_events"], found["loading_us"]) == ([], 0, 0)


# -- allocations --------------------------------------------------------------------------------------------


def test_allocations_of_first_calls_fill_the_cache_and_are_left_out(contract):
    found = contract(cold(call("cudaMalloc", 100, 400)))["allocations"]
    assert (found["allocating"], found["freeing"], found["late_share"], found["exposed_us"]) == (None, None, None, 0)


def test_traffic_with_the_driver_by_direction_time_and_operator(contract):
    """The window is [0, 409]. cudaFree 30 at 10, cudaMalloc 50 at 60 in `a`; 20 at 310 in `b`: of 100 20 late.

    The device is idle in all three: before its first work at 205, and in the gap [206, 408].
    """
    micro = [
        op("a", 0, 150), call("cudaFree", 10, 30), call("cudaMalloc", 60, 50),
        op("k", 195, 10), launch("cudaLaunchKernel", 200, 4, 1), kernel("k", 205, 1, 1),
        op("b", 300, 50), call("cudaMalloc", 310, 20),
        op("k", 395, 14), launch("cudaLaunchKernel", 400, 4, 2), kernel("k", 408, 1, 2),
    ]  # fmt: skip
    found = contract(micro)["allocations"]
    assert found["allocating"] == {"count": 2, "total_us": 70, "median_us": 35, "max_us": 50}
    assert found["freeing"] == {"count": 1, "total_us": 30, "median_us": 30, "max_us": 30}
    assert (found["late_share"], found["exposed_us"]) == (0.2, 100)
    assert found["operators"] == [{"name": "a", "calls": 2}, {"name": "b", "calls": 1}]


def test_two_threads_that_allocate_at_once_are_waited_for_once(contract):
    """[10, 60] and [30, 80] on another thread: the device waits 70 µs, not 100."""
    micro = [op("a", 0, 90), call("cudaMalloc", 10, 50), op("b", 0, 90, tid=2), call("cudaMalloc", 30, 50, tid=2),
             op("k", 95, 10), launch("cudaLaunchKernel", 100, 4, 1), kernel("k", 105, 1, 1)]  # fmt: skip
    found = contract(micro)["allocations"]
    assert (found["allocating"]["total_us"], found["exposed_us"]) == (100, 70)
