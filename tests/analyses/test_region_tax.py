"""What compiled regions and library plans cost the host beyond the work itself."""

from __future__ import annotations

from tests.micro import kernel, launch, memcpy, op

REGION, LOOKUP = "Torch-Compiled Region: 0/0", "TorchDynamo Cache Lookup"


def compiled(calls, *, guard=10, dur=80, device=1):
    """Calls of a region of `dur` µs with an operator of 30 in it, each after its lookup."""
    events = []
    for i in range(calls):
        t = 100 * i
        events += [op(LOOKUP, t, guard), op(REGION, t + 10, dur), op("aten::mm", t + 40, 30)]
        events += [launch("cudaLaunchKernel", t + 50, 4, i + 1), kernel("gemm", t + 55, device, i + 1)]
    return events


def test_the_tax_is_what_operators_do_not_take(contract):
    """A region of 80 less an operator of 30: 50 a call. The last call's wait ends with its launch at 54: 44."""
    tax = contract(compiled(3))["region_tax"]
    assert tax["calls"] == {"count": 3, "total_us": 150, "median_us": 50, "max_us": 50}
    assert tax["guards_us"] == 30
    assert tax["exposed"] == {"count": 3, "total_us": 144, "median_us": 50, "max_us": 50}
    assert (tax["exposed_us"], tax["host_ahead"], tax["graph_inputs"]) == (174, False, None)


def test_a_region_inside_another_is_the_outer_ones(contract):
    """The outer takes 80, the inner 20 of it: both are one call and 80 - 30 of tax."""
    micro = [op(REGION, 0, 80), op("Torch-Compiled Region: 1/0", 10, 20), op("aten::mm", 40, 30),
             launch("cudaLaunchKernel", 45, 4, 1), kernel("gemm", 50, 1, 1)]  # fmt: skip
    assert contract(micro)["region_tax"]["calls"] == {"count": 1, "total_us": 50, "median_us": 50, "max_us": 50}


def test_a_host_whose_calls_are_shorter_than_their_device_work_gets_ahead(contract):
    """80 of host time and 10 of guards for 95 or 85 of device work."""
    assert contract(compiled(3, device=95))["region_tax"]["host_ahead"] is True
    assert contract(compiled(3, device=85))["region_tax"]["host_ahead"] is False


def test_copies_beside_a_replayed_graph_are_told_by_call(contract):
    """Each of two calls copies 3 and 5 µs before its graph; what the graph copies itself is its own."""
    micro = []
    for i in range(2):
        t, c = 100 * i, 10 * i
        micro += [
            op(REGION, t, 60), launch("cudaMemcpyAsync", t + 5, 2, c + 1), memcpy("DtoD", t + 10, 3, c + 1, size=9),
            launch("cudaMemcpyAsync", t + 8, 2, c + 2), memcpy("DtoD", t + 13, 5, c + 2, size=9),
            launch("cudaGraphLaunch", t + 20, 4, c + 3), kernel("k", t + 26, 10, c + 3),
            memcpy("DtoD", t + 36, 2, c + 3, size=9),
        ]  # fmt: skip
    inputs = contract(micro)["region_tax"]["graph_inputs"]
    assert inputs == {"calls": {"count": 2, "total_us": 16, "median_us": 8, "max_us": 8}, "device_us": 16}


def test_without_regions_there_is_no_tax(contract):
    tax = contract([op(LOOKUP, 0, 10), op("aten::mm", 20, 10)])["region_tax"]
    assert (tax["calls"], tax["exposed"], tax["guards_us"], tax["host_ahead"]) == (None, None, 10, False)


# -- plans --------------------------------------------------------------------------------------------------


def cudnn(times, own):
    """cuDNN's attention takes `own` µs a call, and a plain operator 10 after it."""
    events = []
    for i in range(times):
        t = 200 * i
        events += [
            op("aten::_cudnn_attention_forward", t, own),
            launch("cuLaunchKernelEx", t + own - 10, 4, 10 + 2 * i),
        ]
        events += [kernel("sdpa", t + own - 5, 1, 10 + 2 * i), op("aten::add", t + own, 10)]
        events += [launch("cudaLaunchKernel", t + own + 3, 4, 11 + 2 * i), kernel("k", t + own + 8, 1, 11 + 2 * i)]
    return events


def test_a_plan_costs_what_its_operator_takes_beyond_a_plain_one(contract):
    """80 against 10: 70 a call; the device waits for 78 of each, so that all of it is exposed."""
    plans = contract(cudnn(3, 80))["library_plans"]
    assert plans["usual_us"] == 10
    assert plans["operators"] == [
        {"name": "aten::_cudnn_attention_forward", "calls": 3, "excess_us": 70, "exposed_us": 210}
    ]


def test_no_plan_costs_less_than_nothing(contract):
    (plan,) = contract(cudnn(3, 20))["library_plans"]["operators"]
    assert (plan["excess_us"], plan["exposed_us"]) == (10, 30)
    (plan,) = contract([*cudnn(3, 10), op("aten::add", 600, 90)])["library_plans"]["operators"]
    assert (plan["excess_us"], plan["exposed_us"]) == (0, 0)


def test_without_a_plain_operator_there_is_nothing_to_hold_it_against(contract):
    alone = [e for e in cudnn(3, 80) if e["name"] != "aten::add"]
    assert contract(alone)["library_plans"] == {"usual_us": None, "operators": []}
    assert contract([op("aten::add", 0, 5)])["library_plans"] == {"usual_us": None, "operators": []}
