"""Blocking waits, copies by kind, memory peaks, and what the recorder stamped."""

from __future__ import annotations

import pytest

from tests.micro import annotation, call, kernel, memcpy, memory, memset, op, step

# -- waits --------------------------------------------------------------------------------------------------


def test_a_wait_is_named_with_its_call_and_the_operators_above_it(contract):
    micro = [
        step(1, 0, 500), op("aten::item", 10, 100), op("aten::_local_scalar_dense", 15, 80),
        call("cudaStreamSynchronize", 20, 60), step(2, 500, 500), op("aten::item", 510, 100),
        op("aten::_local_scalar_dense", 515, 80), call("cudaStreamSynchronize", 520, 40),
    ]  # fmt: skip
    found = contract(micro)["waits"]
    assert (found["count"], found["total_us"], found["per_step"]) == (2, 100, 1)
    (row,) = found["by_operator"]
    assert (row["call"], row["operator"]) == ("cudaStreamSynchronize", "aten::_local_scalar_dense")
    assert row["path"] == ["ProfilerStep", "aten::item", "aten::_local_scalar_dense"]
    assert (row["count"], row["total_us"], row["median_us"], row["max_us"]) == (2, 100, 50, 60)


def test_the_same_call_from_another_operator_is_another_wait(contract):
    micro = [
        op("a", 0, 50),
        call("cudaStreamSynchronize", 10, 20),
        op("b", 100, 50),
        call("cudaStreamSynchronize", 110, 30),
    ]
    rows = {r["operator"]: r["total_us"] for r in contract(micro)["waits"]["by_operator"]}
    assert rows == {"a": 20, "b": 30}


def test_the_profilers_final_flush_is_not_a_wait_of_the_run(contract):
    micro = [op("a", 0, 50), kernel("k", 10, 30), call("cudaDeviceSynchronize", 60, 900)]
    assert contract(micro)["waits"]["count"] == 0


def test_a_pageable_copy_that_returns_when_it_is_done_is_a_wait(contract):
    """Call [10, 80], copy [30, 70]: the host was held from 10 to 70."""
    micro = [
        op("aten::copy_", 0, 100),
        call("cudaMemcpyAsync", 10, 70, corr=1),
        memcpy("DtoH (Device -> Pageable)", 30, 40, 1),
    ]
    (row,) = contract(micro)["waits"]["by_operator"]
    assert (row["call"], row["operator"], row["total_us"]) == ("cudaMemcpyAsync", "aten::copy_", 60)


def test_event_queries_and_records_wait_for_nothing(contract):
    micro = [
        call("cudaEventQuery", 0, 5),
        call("cudaEventRecord", 10, 5),
        call("cudaStreamWaitEvent", 20, 5),
        op("x", 40, 1),
    ]
    assert contract(micro)["waits"]["count"] == 0


# -- copies ---------------------------------------------------------------------------------------------------


def test_copies_of_a_kind_have_bytes_bandwidth_and_who_asked(contract):
    """1,000,000 bytes in 60 + 40 µs: 10 GB/s. The second one, of 1,000 bytes, is small."""
    micro = [
        op("aten::copy_", 0, 30), call("cudaMemcpyAsync", 10, 5, corr=1), op("aten::to", 50, 30),
        call("cudaMemcpyAsync", 60, 5, corr=2),
        memcpy("HtoD (Pinned -> Device)", 100, 60, 1, size=999_000),
        memcpy("HtoD (Pinned -> Device)", 200, 40, 2, size=1000),
    ]  # fmt: skip
    (row,) = contract(micro)["copies"]
    assert (row["kind"], row["count"], row["total_us"], row["median_us"], row["max_us"]) == (
        "Memcpy HtoD (Pinned -> Device)", 2, 100, 50, 60,
    )  # fmt: skip
    assert (row["bytes"], row["small"], row["gb_per_s"]) == (1_000_000, 1, 10)
    assert row["operators"] == [{"name": "aten::copy_", "count": 1}, {"name": "aten::to", "count": 1}]


def test_a_copy_of_no_time_has_no_bandwidth(contract):
    (row,) = contract([memcpy("DtoD", 10, 0, size=4096), ])["copies"]  # fmt: skip
    assert (row["total_us"], row["gb_per_s"]) == (0, None)


def test_bytes_that_were_not_recorded_are_not_zero(contract):
    (row,) = contract([memcpy("DtoD", 10, 5)])["copies"]
    assert (row["bytes"], row["gb_per_s"]) == (None, None)


def test_fills_are_listed_beside_copies_and_kernels_are_not(contract):
    found = contract([memcpy("DtoD", 0, 5), memset(10, 7), kernel("k", 20, 9)])["copies"]
    assert {row["kind"]: row["total_us"] for row in found} == {"Memset (Device)": 7, "Memcpy DtoD": 5}


# -- memory -----------------------------------------------------------------------------------------------------


def test_peaks_are_a_devices_own_and_the_cpus_are_apart(contract):
    """cuda:0: +1024, +2048, -1024: peak 3072 allocated, 4096 reserved, net +2048. CPU: peak 512."""
    micro = [
        op("x", 0, 30), memory(5, 1024, 1024, 4096), memory(10, 2048, 3072, 4096), memory(20, -1024, 2048, 4096),
        memory(12, 512, 512, 0, device_type=0, device=-1), memory(13, 64, 64, 128, device=1),
    ]  # fmt: skip
    rows = {m["device"]: m for m in contract(micro)["memory"]}
    gpu = rows[0]
    assert (gpu["peak_allocated_bytes"], gpu["peak_reserved_bytes"], gpu["net_change_bytes"], gpu["events"]) == (
        3072, 4096, 2048, 3,
    )  # fmt: skip
    assert rows["cpu"]["peak_allocated_bytes"] == 512
    assert rows[1]["peak_allocated_bytes"] == 64


def test_totals_that_were_not_recorded_are_not_zero(contract):
    (row,) = contract([op("x", 0, 30), memory(5, 1024)])["memory"]
    assert (row["peak_allocated_bytes"], row["peak_reserved_bytes"], row["net_change_bytes"]) == (None, None, 1024)


def test_instants_add_no_time(contract):
    found = contract([op("x", 0, 30), memory(50, 1024, 1024, 4096)])
    assert found["window"]["duration_us"] == 30
    assert found["devices"] == []


# -- the recorder's stamp ------------------------------------------------------------------------------------------


def stamped(contract, stamp):
    return contract([annotation("x", 0, 10)], tracecli_capture=stamp)["capture"]


def test_inflation_is_the_profiled_step_by_the_unprofiled_one(contract):
    found = stamped(contract, {"scenario": "decode", "unprofiled_step_us": 200.0, "profiled_step_us": 500.0})
    assert (found["scenario"], found["inflation"]) == ("decode", 2.5)


def test_a_trace_without_a_stamp_says_nothing(contract):
    assert contract([annotation("x", 0, 10)])["capture"] is None


@pytest.mark.parametrize(
    "stamp",
    [
        {"unprofiled_step_us": 0, "profiled_step_us": 500},
        {"unprofiled_step_us": "200", "profiled_step_us": 500},
        {"unprofiled_step_us": True, "profiled_step_us": 500},
        {"unprofiled_step_us": -1, "profiled_step_us": 500},
        {"profiled_step_us": 500},
    ],
)
def test_figures_that_are_no_figures_give_no_inflation(contract, stamp):
    assert stamped(contract, stamp)["inflation"] is None


@pytest.mark.parametrize("stamp", ["text", 7, [1], None])
def test_a_stamp_that_is_no_object_is_none(contract, stamp):
    assert stamped(contract, stamp) is None
