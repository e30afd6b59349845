"""What operators cost the CPU: time, tax, waits; what they put on the device; recursion counted once."""

from __future__ import annotations

import pytest

from analyzer.analyses.operators import analyze
from tests.micro import BUFFER, LOADING, annotation, call, kernel, launch, memcpy, op, overhead


@pytest.fixture
def operators(contract):
    return lambda events, **header: {o["name"]: o for o in contract(events, **header)["operators"]}


def figures(row, *keys):
    return tuple(row[f"{key}_us"] for key in keys)


def test_self_tax_includes_the_host_calls_made_directly_and_leaves_out_waits(operators):
    """
    aten::item [0, 100]:  cudaStreamSynchronize [10, 60], cudaLaunchKernel [70, 75].
    cpu 100; self 100 - 50 - 5 = 45; wait 50; tax 100 - 50 = 50; self tax 45 + 5 = 50.
    """
    micro = [op("aten::item", 0, 100), call("cudaStreamSynchronize", 10, 50), launch("cudaLaunchKernel", 70, 5, 1)]
    row = operators(micro)["aten::item"]
    assert figures(row, "cpu", "self_cpu", "wait", "tax", "self_tax") == (100, 45, 50, 50, 50)


def test_a_nested_operators_waits_leave_its_callers_tax_too(operators):
    """
    aten::to [0, 100] > aten::copy_ [10, 90] > cudaStreamSynchronize [20, 80].
    aten::to:    tax 100 - 60 = 40, self tax 100 - 80 = 20
    aten::copy_: tax  80 - 60 = 20, self tax 20
    """
    rows = operators([op("aten::to", 0, 100), op("aten::copy_", 10, 80), call("cudaStreamSynchronize", 20, 60)])
    assert figures(rows["aten::to"], "tax", "self_tax", "wait", "self_wait") == (40, 20, 60, 0)
    assert figures(rows["aten::copy_"], "tax", "self_tax", "wait", "self_wait") == (20, 20, 60, 60)


def test_the_profilers_time_leaves_the_tax_of_all_operators_that_span_it(operators):
    """
    aten::linear [0, 3000] > aten::mm [100, 2745] > Activity Buffer Request [150, 2688], 2,538 µs.
    aten::mm: tax 2645 - 2538 = 107; aten::linear: 3000 - 2538 = 462, self 355.
    """
    micro = [op("aten::linear", 0, 3000), op("aten::mm", 100, 2645), overhead(BUFFER, 150, 2538)]
    rows = operators(micro)
    assert figures(rows["aten::mm"], "cpu", "tax", "self_tax", "profiler") == (2645, 107, 107, 2538)
    assert figures(rows["aten::linear"], "cpu", "tax", "self_tax", "profiler") == (3000, 462, 355, 0)


def test_the_profilers_time_inside_a_wait_is_taken_out_once(operators):
    """Operator [0, 100], wait [10, 60], buffer [20, 40] in the wait: 100 - 50 = 50, not 30."""
    micro = [op("aten::item", 0, 100), call("cudaStreamSynchronize", 10, 50), overhead(BUFFER, 20, 20)]
    row = operators(micro)["aten::item"]
    assert figures(row, "tax", "self_tax", "wait", "profiler") == (50, 50, 50, 0)


def test_overlapping_events_of_the_profiler_are_taken_out_once(operators):
    """[10, 40] and [30, 50]: 40 µs."""
    micro = [op("aten::mm", 0, 100), overhead(BUFFER, 10, 30), overhead(BUFFER, 30, 20)]
    assert operators(micro)["aten::mm"]["tax_us"] == 60


def test_module_loading_is_the_runs_own_cost(operators):
    micro = [op("aten::mm", 0, 100), overhead(LOADING, 10, 60)]
    assert figures(operators(micro)["aten::mm"], "tax", "profiler") == (100, 0)


def test_the_profilers_event_belongs_to_the_innermost_event_that_spans_it_whole(operators):
    """[40, 60] sticks out of aten::t [30, 50]: it is aten::linear's."""
    micro = [op("aten::linear", 0, 100), op("aten::t", 30, 20), overhead(BUFFER, 40, 20)]
    rows = operators(micro)
    assert figures(rows["aten::linear"], "self_tax", "profiler") == (60, 20)
    assert figures(rows["aten::t"], "self_tax", "profiler") == (20, 0)


def test_an_event_that_ends_with_its_operator_lies_inside_it(operators):
    """[60, 100] in [0, 100]."""
    assert operators([op("aten::mm", 0, 100), overhead(BUFFER, 60, 40)])["aten::mm"]["profiler_us"] == 40


def test_of_several_threads_that_span_it_the_shortest_event_has_it(operators):
    micro = [op("outer", 0, 1000, tid=2), op("inner", 10, 100), overhead(BUFFER, 20, 40)]
    rows = operators(micro)
    assert (rows["inner"]["profiler_us"], rows["outer"]["profiler_us"]) == (40, 0)


def test_of_a_pageable_copy_the_time_until_it_is_done_is_a_wait(operators):
    """
    aten::copy_ [0, 100] > cudaMemcpyAsync [10, 80], which returns after the copy [30, 70] is done:
    the host took part from 10 to 70. Tax 100 - 60 = 40.
    """
    micro = [
        op("aten::copy_", 0, 100), call("cudaMemcpyAsync", 10, 70, corr=1),
        memcpy("DtoH (Device -> Pageable)", 30, 40, 1),
    ]  # fmt: skip
    assert figures(operators(micro)["aten::copy_"], "wait", "tax", "self_tax") == (60, 40, 40)


def test_a_wait_inside_a_wait_is_not_counted_again(operators):
    """
    cudaMemcpyAsync [10, 80] waits for its copy until 70: 60 µs; the synchronize [20, 75] inside it is part of
    that. Tax 100 - 60 = 40.
    """
    micro = [
        op("aten::copy_", 0, 100), call("cudaMemcpyAsync", 10, 70, corr=1), call("cudaStreamSynchronize", 20, 55),
        memcpy("DtoH (Device -> Pageable)", 30, 40, 1),
    ]  # fmt: skip
    assert figures(operators(micro)["aten::copy_"], "wait", "tax") == (60, 40)


def test_a_pinned_copy_waits_for_nothing(operators):
    micro = [
        op("aten::copy_", 0, 100),
        call("cudaMemcpyAsync", 10, 70, corr=1),
        memcpy("DtoH (Device -> Pinned)", 30, 40, 1),
    ]
    assert figures(operators(micro)["aten::copy_"], "wait", "tax") == (0, 100)


def test_a_pageable_copy_whose_call_returns_before_it_is_done_did_not_wait(operators):
    micro = [
        op("aten::copy_", 0, 100),
        call("cudaMemcpyAsync", 10, 20, corr=1),
        memcpy("HtoD (Pageable -> Device)", 35, 40, 1),
    ]
    assert operators(micro)["aten::copy_"]["wait_us"] == 0


# -- the device ---------------------------------------------------------------------------------------------


def test_wrappers_count_once_and_a_recursion_counts_its_outermost_call(operators):
    """
    stage [0, 100] > aten::linear [10, 90] > aten::t [12, 20], aten::addmm [22, 82] > aten::addmm [27, 77]
    > cudaLaunchKernel [40, 50] > kernel of 40 µs.
    aten::addmm: 2 calls, 60 µs inclusive (not 110), self 10 + 40 = 50.
    """
    micro = [
        annotation("stage", 0, 100), op("aten::linear", 10, 80), op("aten::t", 12, 8), op("aten::addmm", 22, 60),
        op("aten::addmm", 27, 50), launch("cudaLaunchKernel", 40, 10, 1), kernel("gemm", 60, 40, 1),
    ]  # fmt: skip
    rows = operators(micro)
    addmm, linear = rows["aten::addmm"], rows["aten::linear"]
    assert addmm["calls"] == 2
    assert figures(addmm, "cpu", "self_cpu", "device", "self_device") == (60, 50, 40, 40)
    assert figures(linear, "cpu", "self_cpu", "device", "self_device") == (80, 12, 40, 0)
    assert figures(rows["aten::t"], "cpu", "self_cpu", "device") == (8, 8, 0)
    assert (addmm["device_events"], linear["device_events"]) == (1, 1)


def test_a_recursion_with_another_operator_between_is_one_too(operators):
    """a [0, 90] > b [10, 80] > a [20, 60]: a's inclusive time is 90."""
    rows = operators([op("a", 0, 90), op("b", 10, 70), op("a", 20, 40)])
    assert figures(rows["a"], "cpu", "self_cpu", "tax") == (90, 20 + 40, 90)


def test_calls_beside_each_other_add_up(operators):
    row = operators([op("a", 0, 10), op("a", 20, 30), op("a", 60, 50)])["a"]
    assert (row["calls"], *figures(row, "cpu", "self_tax", "self_tax_median", "self_tax_max")) == (3, 90, 90, 30, 50)


def test_annotations_and_calls_are_no_operators(operators):
    assert list(operators([annotation("f", 0, 100), op("aten::mm", 10, 20), call("cudaMalloc", 12, 5)])) == ["aten::mm"]


def test_the_tax_ratio_is_host_time_by_device_time_and_unknown_without_any(operators):
    """30 µs of host for 60 µs of device: 0.5."""
    micro = [
        op("aten::mm", 0, 30),
        launch("cudaLaunchKernel", 10, 5, 1),
        kernel("k", 40, 60, 1),
        op("aten::view", 50, 3),
    ]
    rows = operators(micro)
    assert rows["aten::mm"]["tax_ratio"] == 0.5
    assert rows["aten::view"]["tax_ratio"] is None


def test_self_times_of_operators_annotations_and_calls_are_torchs_own(operators):
    """As `key_averages` has it: host calls are children, so self time leaves them out."""
    rows = operators([op("aten::empty", 0, 50), call("cudaMalloc", 10, 30)])
    assert figures(rows["aten::empty"], "self_cpu", "self_tax") == (20, 50)


def test_a_call_inside_a_synchronize_does_not_shorten_the_wait(operators):
    """cudaStreamSynchronize [10, 89] with a launch [80, 84] inside holds the host for all of its 79 µs."""
    micro = [op("aten::item", 0, 100), call("cudaStreamSynchronize", 10, 79), call("cudaLaunchKernel", 80, 4)]
    assert figures(operators(micro)["aten::item"], "wait", "tax") == (79, 21)


def test_the_share_of_the_tax_is_of_all_operators_however_many_are_shown(chains):
    """30, 60 and 10 µs of 100."""
    found = analyze(chains([op("a", 0, 30), op("b", 100, 60), op("c", 200, 10)]))
    (table,) = found.blocks()
    share = [c.column.title for c in table.columns].index("of tax")
    assert [row[share] for row in table.shown(2)] == [0.6, 0.3]
