"""Attention by backend: from the operator that ran, never from a kernel's name."""

from __future__ import annotations

import pytest

from tests.micro import annotation, kernel, launch, op


def calls(contract, events):
    return {a["backend"]: (a["calls"], a["device_us"]) for a in contract(events)["attention"]}


def attention(at, operator, corr, *durations, outer=True):
    """`scaled_dot_product_attention` > operator > launches of kernels, all named as cuDNN's flash."""
    micro = [op("aten::scaled_dot_product_attention", at, 100)] if outer else []
    micro.append(op(operator, at + 5, 90))
    for i, dur in enumerate(durations):
        micro += [launch("cudaLaunchKernel", at + 10 + 10 * i, 5, corr + i),
                  kernel("cudnn_sdpa_flash_fprop", at + 200 + 50 * i, dur, corr + i)]  # fmt: skip
    return micro


def test_the_innermost_operator_says_which_backend_it_was(contract):
    """Five calls: flash twice, once called without the outer operator; the kernel's name is the same in all."""
    micro = [
        *attention(0, "aten::_scaled_dot_product_flash_attention", 10, 10),
        *attention(1000, "aten::_scaled_dot_product_efficient_attention", 20, 12),
        *attention(2000, "aten::_scaled_dot_product_cudnn_attention", 30, 9),
        *attention(3000, "aten::_scaled_dot_product_attention_math", 40, 8, 4, 8),
        *attention(4000, "aten::_scaled_dot_product_flash_attention", 50, 10, outer=False),
    ]
    assert calls(contract, micro) == {"flash": (2, 20), "efficient": (1, 12), "cudnn": (1, 9), "math": (1, 20)}


def test_nested_backend_operators_are_one_call(contract):
    """_scaled_dot_product_flash_attention > _flash_attention_forward."""
    micro = [
        *attention(0, "aten::_scaled_dot_product_flash_attention", 10, 10), op("aten::_flash_attention_forward", 8, 50),
    ]  # fmt: skip
    assert calls(contract, micro) == {"flash": (1, 10)}


def test_a_call_has_medians_of_time_and_events_and_its_annotation(contract):
    micro = [annotation("layer", 0, 500), *attention(0, "aten::_scaled_dot_product_attention_math", 40, 8, 4, 8)]
    (row,) = contract(micro)["attention"]
    assert (row["annotation"], row["device_us_median"], row["device_events_per_call"]) == ("layer", 20, 3)
    assert row["cpu_us_median"] == 90


@pytest.mark.parametrize("name", ["aten::_scaled_dot_product_flash_attention_backward", "aten::scaled_dot_product"])
def test_backward_and_wrapper_operators_are_no_calls(contract, name):
    assert calls(contract, attention(0, name, 10, 10, outer=False)) == {}


def unfused(at, corr, *, softmax="aten::softmax", product="aten::matmul"):
    """q·kT, mask, softmax, ·v, by hand: 10 + 2 + 3 + 10 µs on the device."""
    micro = []
    names = (
        (product, "aten::bmm", 10),
        ("aten::masked_fill", None, 2),
        (softmax, "aten::_softmax", 3),
        (product, "aten::bmm", 10),
    )
    for i, (outer, inner, dur) in enumerate(names):
        start = at + 50 * i
        micro.append(op(outer, start, 40))
        if inner:
            micro.append(op(inner, start + 5, 30))
        micro += [launch("cudaLaunchKernel", start + 10, 5, corr + i), kernel("k", at + 300 + 20 * i, dur, corr + i)]
    return micro


def test_softmax_between_two_batched_products_is_unfused_attention(contract):
    """All that lies between belongs to it: 25 µs and 4 events; host from the first product to the last, 190 µs."""
    micro = [annotation("naive", 0, 400), *unfused(5, 1)]
    (row,) = contract(micro)["attention"]
    assert (row["backend"], row["annotation"], row["calls"]) == ("unfused", "naive", 1)
    assert (row["device_us_median"], row["device_events_per_call"], row["cpu_us_median"]) == (25, 4, 190)


def test_each_softmax_is_one_call(contract):
    micro = [annotation("naive", 0, 2000), *unfused(5, 1), *unfused(1000, 11)]
    assert calls(contract, micro) == {"unfused": (2, 50)}


def test_a_softmax_after_plain_products_is_no_attention(contract):
    """A classifier: aten::linear > aten::mm, then a softmax, then aten::mm: nothing is batched."""
    micro = [op("aten::matmul", 0, 40), op("aten::mm", 5, 30), op("aten::softmax", 50, 40), op("aten::matmul", 100, 40),
             op("aten::mm", 105, 30)]  # fmt: skip
    assert calls(contract, micro) == {}


def test_a_softmax_at_the_end_of_products_is_no_attention(contract):
    micro = [op("aten::bmm", 0, 40), op("aten::bmm", 50, 40), op("aten::softmax", 100, 40)]
    assert calls(contract, micro) == {}


def test_the_products_inside_the_math_backend_are_not_a_second_call(contract):
    math = attention(0, "aten::_scaled_dot_product_attention_math", 40, 8)
    for outer, inner, at in (("aten::matmul", "aten::bmm", 20), ("aten::softmax", "aten::_softmax", 45),
                             ("aten::matmul", "aten::bmm", 70)):  # fmt: skip
        math += [op(outer, at, 20), op(inner, at + 2, 15)]
    assert calls(contract, math) == {"math": (1, 8)}
    assert set(calls(contract, math[2:])) == {"unfused"}  # the same operators on their own


def numbered(name, at, dur, seq, *, tid=1, forward=0):
    return {**op(name, at, dur, tid=tid), "args": {"Sequence number": seq, "Fwd thread id": forward}}


def node(name, at, dur, seq):
    return numbered(name, at, dur, seq, tid=2, forward=1)


def test_the_backward_pass_of_a_call_is_what_its_own_nodes_launched(contract):
    """Number 7 is given to a view before the attention, the attention, and an operator in it; 8 to a detach in it that
    makes no node, and to the linear after it, whose backward is its own."""
    micro = [
        numbered("aten::view", 0, 2, 7),
        numbered("aten::_scaled_dot_product_flash_attention", 5, 90, 7),
        numbered("aten::_flash_attention_forward", 8, 50, 7),
        launch("cudaLaunchKernel", 10, 5, 1),
        kernel("flash_fwd", 30, 10, 1),
        numbered("aten::detach", 80, 5, 8),
        numbered("aten::linear", 100, 20, 8),
        node("autograd::engine::evaluate_function: MmBackward0", 200, 40, 8),
        launch("cudaLaunchKernel", 210, 5, 2, tid=2),
        kernel("gemm", 230, 100, 2),
        node("autograd::engine::evaluate_function: FlashBackward0", 300, 40, 7),
        node("FlashBackward0", 302, 36, 7),
        launch("cudaLaunchKernel", 310, 5, 3, tid=2),
        launch("cudaLaunchKernel", 320, 5, 4, tid=2),
        kernel("flash_bwd", 400, 25, 3),
        kernel("flash_bwd", 430, 4, 4),
    ]
    (row,) = contract(micro)["attention"]
    assert (row["calls"], row["device_us"], row["backward_calls"], row["backward_us"]) == (1, 10, 1, 29)


def test_numbers_of_two_threads_say_nothing(contract):
    micro = [
        numbered("aten::_scaled_dot_product_flash_attention", 5, 90, 7),
        numbered("aten::mul", 5, 90, 7, tid=3),
        node("FlashBackward0", 302, 36, 7),
        launch("cudaLaunchKernel", 310, 5, 3, tid=2),
        kernel("flash_bwd", 400, 25, 3),
    ]
    (row,) = contract(micro)["attention"]
    assert (row["backward_calls"], row["backward_us"]) == (0, 0)


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("sageattention::qk_int8_sv_f16_accum_f16_attn", "sage"),
        ("aiter::fmha_v3_fwd", "aiter"),
        ("aiter::mha_varlen_fwd", "aiter"),
        ("aiter::pa_fwd_asm", "aiter"),
        ("xformers::efficient_attention_forward_ck", "ck"),
        ("flashinfer::batch_decode_with_paged_kv_cache_run", "flashinfer"),
        ("_C::paged_attention_v2", "serving engine"),
    ],
)
def test_other_libraries_attention(contract, name, backend):
    assert calls(contract, attention(0, name, 10, 10, outer=False)) == {backend: (1, 10)}
