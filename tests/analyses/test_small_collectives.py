"""Collectives with small messages: sizes from recorded elements and formats, what they take, what they make wait."""

from __future__ import annotations

import pytest

from tests.micro import kernel, launch

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def reduced(ts, dur, corr, elements, dtype, **where):
    event = kernel(ALL_REDUCE, ts, dur, corr, **where)
    said = {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "dtype": dtype}
    return [launch("cudaLaunchKernel", ts - 10, 4, corr), {**event, "args": {**event["args"], **said}}]


def small(contract, *events):
    return contract([e for some in events for e in some])["small_collectives"]


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("Float", 4), ("float32", 4), ("Int", 4), ("int32", 4), ("Half", 2), ("float16", 2), ("BFloat16", 2), ("Long", 8),
     ("int64", 8), ("Double", 8), ("float64", 8), ("Byte", 1), ("Char", 1), ("Bool", 1), ("uint8", 1), ("int8", 1),
     ("Float8_e4m3fn", 1), ("Float8_e5m2", 1)],
)  # fmt: skip
def test_a_message_is_its_elements_in_their_format(contract, dtype, size):
    (row,) = small(contract, reduced(20, 5, 1, 1000, dtype))["names"]
    assert (row["name"], row["bytes_median"]) == ("allreduce", 1000 * size)


def test_small_is_less_than_a_mebibyte(contract):
    assert small(contract, reduced(20, 5, 1, (1 << 18) - 1, "Float"))["count"] == 1
    assert small(contract, reduced(20, 5, 1, 1 << 18, "Float"))["count"] == 0


def test_a_format_that_nobody_knows_has_no_size(contract):
    assert small(contract, reduced(20, 5, 1, 10, "Complex"))["count"] == 0


def test_exposed_is_when_nothing_else_runs_and_idle_is_the_wait_for_a_late_launch(contract):
    """Products [0, 30] and [50, 60], collectives [20, 40] and [70, 75]: 10 and 5 µs alone; idle 40..50 is not theirs,
    60..70 is."""
    products = [launch("cudaLaunchKernel", 0, 2, 8), kernel("gemm", 2, 28, 8),
                launch("cudaLaunchKernel", 44, 2, 9), kernel("gemm", 50, 10, 9)]  # fmt: skip
    found = small(
        contract, products, reduced(20, 20, 1, 10, "Float", stream=9), reduced(70, 5, 2, 10, "Float", stream=9)
    )
    assert (found["count"], found["exposed_us"], found["idle_us"]) == (2, 15, 10)
