"""Stream contention: queued work that starts late because another stream's work holds the device."""

from __future__ import annotations

import pytest

from analyzer.index import contention
from tests.micro import call, kernel, launch, memcpy, op


def lane(late: float = 0, *, told: bool = False):
    """Ten GEMMs of 100 µs on stream 7, all queued at once, 2 µs apart; the sixth starts `late` µs later."""
    micro, at = [op("x", 0, 1)], 500.0
    for i in range(10):
        if told and i == 5:
            micro.append(call("cudaStreamWaitEvent", 10 * i - 4, 2))
        micro.append(launch("cudaLaunchKernel", 10 * i, 4, i + 1))
        at += late if i == 5 else 0
        micro.append(kernel("gemm", at, 100, i + 1))
        at += 102
    return micro


def other(start: float, length: float, make=kernel, name="big"):
    return [launch("cudaLaunchKernel", 200, 4, 99), make(name, start, length, 99, stream=8)]


def late(built):
    return [(row["late_ns"] / 1000, built.trace.names[built.device.frame["name"][row["by"]]])
            for row in contention.find(built).iter_rows(named=True)]  # fmt: skip


def test_work_that_starts_late_while_another_streams_work_runs_contends_with_it(chains):
    """The fifth GEMM ends at 1008, the sixth would start at 1010 and does at 1210: `big` ran [1000, 1208]."""
    assert late(chains([*lane(200), *other(1000, 208)])) == [(200, "big")]


@pytest.mark.parametrize(
    ("micro", "why"),
    [
        ([*lane(200), *other(3000, 208)], "nothing ran meanwhile"),
        ([*lane(200), *other(1000, 100)], "it ran for less than half of the delay"),
        ([*lane(40), *other(1000, 50)], "40 µs: the hardware's own scheduling"),
        ([*lane(200, told=True), *other(1000, 208)], "the stream was told to wait: a dependency"),
        ([*lane(200), *other(1000, 208, memcpy, "HtoD (Pinned -> Device)")], "such a copy needs no processor"),
        ([*lane(), *other(1000, 208)], "both ran at once"),
    ],
)
def test_what_is_no_contention(chains, micro, why):
    assert late(chains(micro)) == [], why


def test_a_copy_in_the_devices_memory_holds_it(chains):
    micro = [*lane(200), *other(1000, 208, memcpy, "DtoD (Device -> Device)")]
    assert late(chains(micro)) == [(200, "Memcpy DtoD (Device -> Device)")]
