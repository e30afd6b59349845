"""Masks, guards and inputs of attention, and collectives against their own fastest run."""

from __future__ import annotations

import json

import pytest

from tests.micro import annotation, chain, kernel, launch, op, step

MATH = "aten::_scaled_dot_product_attention_math"
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def inside(outer, operators, t=0, corr=1, device=100):
    """An operator around others of 10 µs each, with one kernel of the given length, back to back on the device."""
    events = [op(outer, t, 10 * len(operators) + 4)]
    for i, (name, dur) in enumerate(operators):
        events += [op(name, t + 2 + 10 * i, 9), launch("cudaLaunchKernel", t + 4 + 10 * i, 2, corr + i)]
        events += [kernel("k", device, dur, corr + i)]
        device += dur
    return events


BUILT = [("aten::ones", 2), ("aten::tril", 3), ("aten::matmul", 20), ("aten::add_", 7), ("aten::matmul", 20)]


def test_a_mask_is_what_is_made_before_the_first_product_and_added_after_it(contract):
    micro = [*inside(MATH, BUILT), *inside(MATH, BUILT, t=300, corr=50, device=400)]
    mask = contract(micro)["attention_cost"]["mask"]
    assert (mask["triangles"], mask["in_math"], mask["device_us"]) == (2, True, 10)
    assert mask["built"] == {"count": 2, "total_us": 10, "median_us": 5, "max_us": 5}
    assert mask["added"] == {"count": 2, "total_us": 14, "median_us": 7, "max_us": 7}
    assert mask["path"] == [MATH]


def test_fills_and_casts_elsewhere_build_no_mask(contract):
    """A cast before the triangle, a fill after the product: only the triangle's 3 µs count."""
    some = [("aten::to", 9), ("aten::tril", 3), ("aten::to", 1), ("aten::bmm", 20), ("aten::fill_", 8)]
    mask = contract(inside("attn", some))["attention_cost"]["mask"]
    assert (mask["in_math"], mask["built"]["total_us"]) == (False, 4)


def test_a_triangle_at_the_top_is_nobodys_mask(contract):
    assert contract(chain("aten::tril", 0, 1, 8, 3))["attention_cost"]["mask"] is None


def test_the_guard_is_what_safe_softmax_does_beside_the_softmax(contract):
    some = [("aten::softmax", 60), ("aten::isneginf", 10), ("aten::where", 20)]
    guard = contract(inside("aten::_safe_softmax", some))["attention_cost"]["guard"]
    assert guard == {
        "guarded": {"count": 1, "total_us": 30, "median_us": 30, "max_us": 30},
        "softmax": {"count": 1, "total_us": 60, "median_us": 60, "max_us": 60},
        "device_us": 30,
    }
    assert contract(inside("aten::softmax", some))["attention_cost"]["guard"] is None


@pytest.mark.parametrize(
    ("dims", "types", "found"),
    [
        ([[1, 2], [1, 2], [1, 2], []], ["float", "float", "float", ""], ("float", False)),
        ([[1, 2], [1, 2], [1, 2], [8, 8]], ["double", "double", "double", "bool"], ("double", True)),
        ([[1, 2]], ["c10::BFloat16"], ("c10::BFloat16", False)),
        ("strange", None, (None, None)),
    ],
)
def test_inputs_are_what_shapes_say(contract, dims, types, found):
    micro = chain(MATH, 0, 1, 20, 5, kernel_name="ampere_sgemm_128x64_tn")
    micro[0]["args"] = {"Input Dims": dims} | ({} if types is None else {"Input type": types})
    inputs = contract(micro)["attention_cost"]["inputs"]
    assert (inputs["dtype"], inputs["mask"]) == found
    assert inputs["products"] == ["fp32"]
    json.dumps(inputs)


def test_without_shapes_the_inputs_are_not_known(contract):
    inputs = contract(chain(MATH, 0, 1, 20, 5))["attention_cost"]["inputs"]
    assert inputs == {"dtype": None, "mask": None, "products": []}
    assert contract(chain("aten::mm", 0, 1, 20, 5))["attention_cost"]["inputs"] is None


# -- collectives --------------------------------------------------------------------------------------------


def collectives(*durations, name=ALLREDUCE):
    """A step of 100 µs for each tuple of durations."""
    events, corr = [], 0
    for i, each in enumerate(durations):
        events.append(step(i, 1000 * i, 1000))
        at = 1000 * i + 10
        for dur in each:
            corr += 1
            events += [op("c10d::allreduce_", at, 5), launch("cudaLaunchKernel", at, 4, corr)]
            events += [kernel(name, at + 5, dur, corr)]
            at += dur + 20
    return events


def test_a_collective_is_held_against_its_own_fastest_run(contract):
    """First place: 10, 30, 50; second: 40 each. Above the fastest: 20 + 40, and nothing."""
    first, second = contract(collectives((10, 40), (30, 40), (50, 40)))["collective_waits"]
    assert (first["device"], first["place"], first["fastest_us"], first["excess_us"]) == (0, 0, 10, 60)
    assert first["runs"] == {"count": 3, "total_us": 90, "median_us": 30, "max_us": 50}
    assert (second["place"], second["excess_us"]) == (1, 0)


def test_a_step_with_more_collectives_than_the_usual_is_left_out(contract):
    (only,) = contract(collectives((10, 10), (10,), (30,), (50,)))["collective_waits"]
    assert (only["runs"]["count"], only["excess_us"]) == (3, 60)


@pytest.mark.parametrize(
    "micro",
    [
        collectives((10,), (50,)),
        collectives((10,), (10, 10), (10, 10, 10)),
        collectives((10,), (30,), (50,), name="ncclDevKernel_SendRecv(x)"),
        [annotation("x", 0, 10)],
    ],
    ids=["two steps", "no two alike", "point to point", "none"],
)
def test_where_nothing_can_be_compared_nothing_is(contract, micro):
    assert contract(micro)["collective_waits"] == []
