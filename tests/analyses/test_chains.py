"""Chains: the path from step to kernel; those with the same path of names are one pattern."""

from __future__ import annotations

import pytest

from analyzer.analyses.chains import MOST, analyze
from tests.micro import annotation, call, kernel, launch, op, step


def chains_of(contract, events):
    return contract(events)["chains"]


def test_a_chain_is_the_whole_way_from_the_step_to_the_kernel(contract):
    """
    aten::linear > aten::addmm [10, 40]: its own 30 µs with the calls that it makes; latency 50 - 25; device 20.
    """
    micro = [
        step(7, 0, 100), annotation("forward", 5, 90), op("aten::linear", 8, 40), op("aten::addmm", 10, 30),
        call("cudaFuncGetAttributes", 15, 2), call("cudaOccupancyMaxActiveClusters", 20, 2),
        call("cuLaunchKernelEx", 25, 5, corr=1, cat="cuda_driver"), kernel("gemm", 50, 20, 1),
    ]  # fmt: skip
    (row,) = chains_of(contract, micro)
    assert row["path"] == ["ProfilerStep", "forward", "aten::linear", "aten::addmm"]
    assert row["host_calls"] == ["cudaFuncGetAttributes", "cudaOccupancyMaxActiveClusters"]
    assert row["host_call_kinds"] == ["attribute", "occupancy"]
    assert (row["launch"], row["device_work"], row["count"]) == ("cuLaunchKernelEx", "gemm", 1)
    assert (row["cpu_us_median"], row["latency_us_median"], row["device_us_median"]) == (30, 25, 20)


def test_the_same_path_in_every_step_is_one_pattern_with_median_and_max(contract):
    """Three steps, device times 10, 20, 60: median 20, max 60, total 90."""
    micro = []
    for i, dur in enumerate((10, 60, 20)):
        at = 1000 * i
        micro += [step(i, at, 500), op("aten::mm", at, 30), launch("cudaLaunchKernel", at + 5, 5, i + 1),
                  kernel("gemm", at + 20, dur, i + 1)]  # fmt: skip
    (row,) = chains_of(contract, micro)
    assert row["count"] == 3
    assert (row["device_us_median"], row["device_us_max"], row["device_us_total"]) == (20, 60, 90)


@pytest.mark.parametrize(
    "query",
    [
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        "cudaOccupancyMaxActiveClusters",
        "cuOccupancyMaxActiveClusters",
        "hipOccupancyMaxActiveBlocksPerMultiprocessor",
    ],
)
def test_an_occupancy_query_before_the_launch_is_part_of_the_chain(contract, query):
    """With the query and without it are two patterns."""
    micro = [
        op("aten::mm", 0, 30), call(query, 2, 3), launch("cudaLaunchKernel", 10, 5, 1), kernel("gemm", 20, 5, 1),
        op("aten::mm", 100, 30), launch("cudaLaunchKernel", 110, 5, 2), kernel("gemm", 120, 5, 2),
    ]  # fmt: skip
    assert sorted(tuple(row["host_calls"]) for row in chains_of(contract, micro)) == [(), (query,)]


def test_a_call_belongs_to_the_launch_after_it_in_the_same_operator(contract):
    """query, launch a, launch b, query, query, launch c."""
    micro = [
        op("aten::x", 0, 100),
        call("cudaOccupancyQuery", 1, 1), launch("cudaLaunchKernel", 5, 1, 1), kernel("a", 10, 5, 1),
        launch("cudaLaunchKernel", 20, 1, 2), kernel("b", 25, 5, 2),
        call("cudaOccupancyQuery", 30, 1), call("cudaOccupancyQuery", 32, 1),
        launch("cudaLaunchKernel", 40, 1, 3), kernel("c", 45, 5, 3),
    ]  # fmt: skip
    rows = {row["device_work"]: row["host_calls"] for row in chains_of(contract, micro)}
    assert rows == {"a": ["cudaOccupancyQuery"], "b": [], "c": ["cudaOccupancyQuery", "cudaOccupancyQuery"]}


def test_calls_of_a_nested_operator_are_not_those_of_its_caller(contract):
    micro = [
        op("outer", 0, 100), op("inner", 10, 20), call("cudaMalloc", 12, 5),
        launch("cudaLaunchKernel", 50, 1, 1), kernel("k", 60, 5, 1),
    ]  # fmt: skip
    (row,) = chains_of(contract, micro)
    assert (row["path"], row["host_calls"]) == (["outer"], [])


def test_the_same_operator_under_another_path_is_another_pattern(contract):
    micro = [
        annotation("a", 0, 50), op("aten::mm", 5, 30), launch("cudaLaunchKernel", 10, 5, 1), kernel("gemm", 20, 5, 1),
        annotation("b", 100, 50), op("aten::mm", 105, 30), launch("cudaLaunchKernel", 110, 5, 2),
        kernel("gemm", 120, 5, 2),
    ]  # fmt: skip
    assert sorted(row["path"][0] for row in chains_of(contract, micro)) == ["a", "b"]


def test_a_graph_launch_has_a_pattern_for_each_of_its_kernels(contract):
    micro = [
        annotation("decode", 0, 50),
        call("cudaGraphLaunch", 10, 5, corr=1),
        kernel("a", 20, 5, 1),
        kernel("b", 30, 5, 1),
    ]
    rows = {row["device_work"]: (row["launch"], row["path"]) for row in chains_of(contract, micro)}
    assert rows == {"a": ("cudaGraphLaunch", ["decode"]), "b": ("cudaGraphLaunch", ["decode"])}


def test_unlinked_work_has_no_path_no_launch_and_no_latency(contract):
    (row,) = chains_of(contract, [op("aten::mm", 0, 30), kernel("before", 10, 5, 77)])
    assert (row["path"], row["launch"], row["latency_us_median"], row["cpu_us_median"]) == ([], None, None, None)


def test_clock_skew_is_left_out_of_a_patterns_latency(contract):
    """-3 and +6: the median is 6."""
    micro = [op("start", 0, 1)]
    for corr, skew in ((1, -3), (2, 6)):
        micro += [launch("cudaLaunchKernel", 20 * corr, 2, corr), kernel("k", 20 * corr + skew, 5, corr)]
    (row,) = chains_of(contract, micro)
    assert (row["count"], row["latency_us_median"]) == (2, 6)


def test_the_counts_of_all_patterns_add_up_to_the_device_work(contract):
    micro = [op("aten::x", 0, 100), kernel("before", 3, 1, 77)]
    for corr in range(1, 8):
        micro += [launch("cudaLaunchKernel", 10 * corr, 1, corr), kernel(f"k{corr % 3}", 10 * corr + 4, 2, corr)]
    assert sum(row["count"] for row in chains_of(contract, micro)) == 8


def test_patterns_beyond_the_listed_ones_are_counted_and_said(chains):
    """Each kernel has a name of its own: MOST + 5 patterns, of which the 5 shortest are not listed."""
    found = analyze(chains([kernel(f"k{i}", 1000 * i, 10 + i) for i in range(MOST + 5)]))
    assert (len(found.chains), found.chain_patterns) == (MOST, MOST + 5)
    assert min(p.device_ns_total for p in found.chains) == 15_000
    (table,) = found.blocks()
    assert table.note.endswith("5 patterns with less device time are not listed")


def test_what_was_called_before_another_operators_launch_is_none_of_this_ones(contract):
    """Both operators launch the same; a query stands before the first launch, and after the second's."""
    micro = [
        op("aten::mm", 0, 30), call("cudaFuncGetAttributes", 2, 2), launch("cudaLaunchKernel", 10, 5, 1),
        kernel("gemm", 20, 5, 1), call("cudaStreamIsCapturing", 22, 2),
        op("aten::mm", 100, 30), call("cudaFuncGetAttributes", 102, 2), launch("cudaLaunchKernel", 110, 5, 2),
        kernel("gemm", 120, 5, 2), launch("cudaLaunchKernel", 125, 3, 3), kernel("gemm", 140, 5, 3),
    ]  # fmt: skip
    found = {tuple(row["host_calls"]): row["count"] for row in chains_of(contract, micro)}
    assert found == {("cudaFuncGetAttributes",): 2, (): 1}
