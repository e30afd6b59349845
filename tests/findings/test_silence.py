"""Traces on which a finding must not fire, or must not claim a gain: each close to one where it would."""

from __future__ import annotations

import pytest

from tests.findings.cases import (
    ALLREDUCE,
    CASES,
    CAST,
    GEMM,
    MATH,
    NARROW,
    POINTWISE,
    attended,
    attention,
    dispatched,
    heads,
    reduced,
)
from tests.micro import annotation, call, frame, kernel, launch, memcpy, op, step


def fired(report, events, **header):
    return {f.name: f for f in report(events, **header).findings}


def busy(count=20, dur=100.0):
    """A device that always has work queued: operators of 5 µs, kernels of 100."""
    events = []
    for i in range(count):
        events += dispatched("aten::mm", 5 * i, 5, i + 1, 0, kernel(GEMM, 10 + dur * i, dur, i + 1))
    return events


def test_a_busy_device_has_no_overhead_finding(report):
    found = fired(report, busy())
    assert not set(found) & {"overhead-bound", "tiny-kernels", "cold-start", "blocking-sync", "input-starvation"}


def test_a_synchronize_that_ends_the_recording_is_no_blocking_sync(report):
    assert "blocking-sync" not in fired(report, [*busy(), call("cudaDeviceSynchronize", 100, 1910)])


def test_waits_behind_a_busy_device_are_a_note_without_gain(report):
    """Four waits of 90 µs, during each of which other queued work goes on beyond the wait."""
    events = busy(count=30, dur=20)  # the device is busy from 10 to 610
    for i in range(4):
        events += [op("aten::item", 160 + 95 * i, 92), call("cudaStreamSynchronize", 161 + 95 * i, 90)]
    events += dispatched("aten::mm", 560, 5, 99, 0, kernel(GEMM, 610, 20, 99))
    found = fired(report, events)["blocking-sync"]
    assert found.severity.value == "note"
    assert found.up_to_ns is None
    assert "hidden" in found.title


def test_the_tax_of_a_compiled_region_hides_behind_longer_device_work(report):
    """Regions of 80 µs of host time for 200 of device time: the tax is told, as hidden, with no gain."""
    events = []
    for i in range(4):
        t = 100 * i
        events += [op("TorchDynamo Cache Lookup", t, 10), op("Torch-Compiled Region: 0/0", t + 10, 80)]
        events += dispatched("aten::mm", t + 40, 30, i + 1, 10, kernel(GEMM, 60 + 200 * i, 200, i + 1))
    found = fired(report, events)["compile-tax"]
    assert found.severity.value == "note"
    assert found.up_to_ns is None
    assert "hidden behind the device" in found.title


def test_one_call_of_a_region_is_a_first_call_and_no_tax(report):
    events = [
        op("Torch-Compiled Region: 0/0", 0, 500),
        *dispatched("aten::mm", 400, 30, 1, 10, kernel(GEMM, 420, 5, 1)),
    ]
    assert "compile-tax" not in fired(report, events)


def test_one_version_above_zero_is_the_switch_to_dynamic_shapes(report):
    events = [op("TorchDynamo Cache Lookup", 0, 5), op("Torch-Compiled Region: 0/1", 5, 50),
              *dispatched("aten::mm", 20, 20, 1, 3, kernel(GEMM, 30, 60, 1))]  # fmt: skip
    assert "recompilation" not in fired(report, events)


def test_guard_lookups_without_any_region_mean_that_it_runs_eagerly(report):
    events = busy() + [op("TorchDynamo Cache Lookup", 200 + 10 * i, 5) for i in range(3)]
    assert "silently runs eagerly" in fired(report, events)["recompilation"].title
    assert "recompilation" not in fired(report, events[:-1])


def test_the_in_place_operator_copies_nothing(report):
    events = [op("aten::masked_fill_", 0, 14), launch("cudaLaunchKernel", 2, 2, 1), kernel(POINTWISE, 10, 100, 1)]
    assert "hidden-copy" not in fired(report, events)


def test_a_clone_that_somebody_asked_for_is_not_hidden(report):
    events = [op("aten::clone", 0, 10), op("aten::copy_", 1, 8), launch("cudaMemcpyAsync", 3, 2, 1),
              memcpy("DtoD (Device -> Device)", 10, 50, 1, size=1 << 20)]  # fmt: skip
    assert "hidden-copy" not in fired(report, events)


def test_an_addmm_whose_product_adds_the_bias_itself_seeds_nothing(report):
    assert "addmm-bias-copy" not in fired(report, dispatched("aten::addmm", 0, 30, 1, 5, kernel(GEMM, 30, 100, 1)))


def test_pinned_copies_are_not_pageable(report):
    events = dispatched("aten::copy_", 0, 5, 1, 0, memcpy("HtoD (Pinned -> Device)", 10, 100, 1, size=1 << 20))
    assert "pageable-copy" not in fired(report, events)


def test_fused_attention_is_neither_math_nor_unfused(report):
    flash = dispatched("aten::_flash_attention_forward", 1, 18, 1, 3, kernel("flash_fwd_kernel", 10, 90, 1))
    events = [op("aten::_scaled_dot_product_flash_attention", 0, 20), *flash]
    assert not set(fired(report, events)) & {"sdpa-math-backend", "unfused-attention", "safe-softmax"}


def test_products_in_tf32_and_on_old_devices_stay_on_their_cores(report):
    tf32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32_warpgroupsize2x1x1"
    old = {"id": 0, "computeMajor": 7}
    for name, devices in ((tf32, None), ("volta_sgemm_128x64_nn", [old])):
        events = dispatched("aten::mm", 0, 10, 1, 2, kernel(name, 10, 80, 1))
        assert "fp32-gemm-on-cuda-cores" not in fired(report, events, **({"devices": devices} if devices else {}))


def test_a_mask_that_is_built_once_is_not_rebuilt(report):
    events = [op("aten::_scaled_dot_product_attention_math", 1, 64),
              *attention([("aten::tril", "triu_tril_kernel", 3), *MATH], 1, 70)]  # fmt: skip
    assert "causal-mask-rebuilt" not in fired(report, events)


def test_a_product_on_tensor_cores_may_dominate(report):
    found = fired(report, busy())["dominant-kernel"]
    assert found.severity.value == "note"


def test_collectives_of_even_length_have_no_straggler(report):
    events = []
    for i, dur in enumerate((48, 50, 52)):
        t = 100 * i
        events += [
            step(i, t, 100),
            *dispatched("c10d::allreduce_", t, 5, i + 1, 0, kernel(ALLREDUCE, t + 5, dur, i + 1)),
        ]
    assert "straggler-rank" not in fired(report, events)


def test_a_collective_under_compute_is_not_exposed(report):
    events = [*dispatched("aten::mm", 0, 5, 1, 0, kernel(GEMM, 5, 200, 1)),
              *dispatched("c10d::allreduce_", 5, 5, 2, 0, kernel(ALLREDUCE, 40, 100, 2, stream=20))]  # fmt: skip
    assert "exposed-communication" not in fired(report, events)


def test_python_that_loads_nothing_is_no_input_pipeline(report):
    events = [
        *dispatched("aten::mm", 0, 10, 1, 2, kernel(GEMM, 6, 99, 1)),
        annotation("log_metrics", 10, 890),
        frame("train.py(40): log", 12, 880),
        *dispatched("aten::mm", 900, 10, 2, 1, kernel(GEMM, 905, 100, 2)),
    ]
    found = fired(report, events)
    assert "input-starvation" not in found
    # The place is named all the same.
    assert any("train.py(40): log" in line for line in found["overhead-bound"].evidence)


def test_copies_of_gradients_into_buckets_are_told_with_what_avoids_them(report):
    """Fifty small copies of DDP's reducer beside a device that is busy now and then."""
    events = [op("torch.distributed.ddp.reducer::copy_bucket_to_grad", 0, 500)]
    for i in range(50):
        copy = memcpy("DtoD (Device -> Device)", 10 * i + 8, 1, i + 1, size=512)
        events += dispatched("aten::copy_", 10 * i, 10, i + 1, 3, copy)
    assert "gradient_as_bucket_view=True" in fired(report, events)["many-small-copies"].advice


def test_a_trace_without_device_work_has_no_findings(report):
    assert fired(report, [op("aten::mm", 0, 100), op("aten::add", 100, 50)]) == {}


def test_an_empty_trace_has_no_findings(report):
    assert fired(report, []) == {}


def test_a_steady_cadence_has_no_pause(report):
    """Launches every 400 µs, alike: slow, but the host does nothing else in between."""
    events = []
    for i in range(30):
        events += dispatched("aten::mm", 400 * i, 390, i + 1, 380, kernel(GEMM, 400 * i + 385, 5, i + 1))
    found = fired(report, events)
    assert not set(found) & {"host-pause", "host-interference"}
    assert found["overhead-bound"].severity.value == "error"


def test_pauses_of_uneven_lengths_are_no_interference(report):
    """Sixteen pauses of 4 to 19 ms that are multiples of nothing."""
    events, t = [], 0
    for i in range(17):
        events += dispatched("aten::add", t, 10, i + 1, 2, kernel(POINTWISE, t + 8, 2, i + 1))
        t += 4000 + 937 * i
    found = fired(report, events)
    assert "host-interference" not in found
    assert "something that was not recorded" in found["host-pause"].title


def test_a_pause_that_does_not_come_back_is_a_note(report):
    """One collection of 3 ms beside 4 of steady launching: 43% of the window, and no habit."""
    events = []
    for i in range(200):
        at = 20 * i + (3000 if i >= 100 else 0)
        events += dispatched("aten::add", at, 18, i + 1, 10, kernel(POINTWISE, at + 16, 2, i + 1))
    events += [frame("train.py(9): loop", 0, 7100), frame("<built-in function collect>", 1999, 2990)]
    found = fired(report, events)
    assert found["host-pause"].severity.value == "note"
    assert found["overhead-bound"].severity.value == "error"


# -- optimizers ----------------------------------------------------------------------------------------------------


def optimizer_step(launched: list[tuple[str, str | None]], kind: str = POINTWISE):
    """A step of 10 µs a launch. launched: (operator, operator around it or None) of each."""
    events = [annotation("Optimizer.step#AdamW.step", 0, 10 * len(launched))]
    for i, (name, outer) in enumerate(launched):
        if outer:
            events.append(op(outer, 10 * i, 10))
        events += dispatched(name, 10 * i + 1, 8, i + 1, 2, kernel(kind, 10 * i + 8, 1, i + 1))
    return events


def test_an_optimizer_that_takes_lists_of_tensors_is_no_loop(report):
    assert "optimizer-loop" not in fired(report, optimizer_step([("aten::add_", "aten::_foreach_add_")] * 40))
    assert "optimizer-loop" not in fired(report, optimizer_step([("aten::_fused_adamw_", None)] * 40))
    library = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float> >(int)"
    assert "optimizer-loop" not in fired(report, optimizer_step([("step", None)] * 40, kind=library))


def test_a_few_launches_of_an_optimizer_are_no_loop(report):
    """31 launches; and 40 of ten different operators, of which none comes eight times."""
    assert "optimizer-loop" not in fired(report, optimizer_step([("aten::add_", None)] * 31))
    several = [(f"aten::op{i % 10}", None) for i in range(40)]
    assert "optimizer-loop" not in fired(report, optimizer_step(several))
    assert "optimizer-loop" in fired(report, optimizer_step([("aten::add_", None)] * 32))


def test_the_gain_of_an_optimizers_loop_is_not_counted_twice(report):
    """A step of 400 µs, 351 of them the loop's, and 36 more that the dispatch of other work leaves."""
    events = CASES["optimizer-loop"]().events
    for i in range(4):
        events += dispatched("aten::mm", 400 + 10 * i, 10, 90 + i, 3, kernel(GEMM, 408 + 10 * i, 1, 90 + i))
    found = fired(report, events)
    dispatch = 8_000 + 351_000 + 4 * 9_000 + 1_000  # with lead-in and tail-out
    assert found["optimizer-loop"].up_to_ns == 351_000
    assert found["overhead-bound"].up_to_ns == dispatch - 351_000
    assert "351 µs of it is told under optimizer-loop" in "\n".join(found["overhead-bound"].evidence)


# -- modules in a row ----------------------------------------------------------------------------------------------


def test_a_module_that_is_called_a_few_times_or_launches_little_is_no_loop(report):
    assert "repeated-small-calls" not in fired(report, heads(7))
    assert "repeated-small-calls" in fired(report, heads(8))
    activations = [e for e in heads(10) if e["name"] != "aten::relu" and e.get("args", {}).get("correlation", 1) % 2]
    assert "repeated-small-calls" not in fired(report, activations)


def test_layers_that_are_called_once_each_are_no_loop(report):
    """Ten instances of one class, each with weights of its own."""
    events = heads(10)
    calls = [e for e in events if e["name"] == "nn.Module: Head_0"]
    for i, one in enumerate(calls):
        one["name"] = f"nn.Module: Head_{i}"
    assert "repeated-small-calls" not in fired(report, events)


def test_calls_with_something_launched_between_them_may_need_each_other(report):
    """A token is chosen between one call of the model and the next."""
    events = heads(10)
    for e in events:
        if e["name"] == "nn.Module: Head_0":
            e["dur"] = 18  # what follows in the 40 µs is launched beside it
    assert "repeated-small-calls" not in fired(report, events)


def test_a_device_that_is_slower_than_the_host_gains_nothing_from_batching(report):
    assert "repeated-small-calls" not in fired(report, heads(10, device=30))


def test_outermost_modules_count_inside_a_step_only(report):
    """A benchmark's loop over a model is no step that repeats itself."""
    alone = [e for e in heads(10) if "Net_0" not in e["name"]]
    assert "repeated-small-calls" not in fired(report, alone)
    assert "repeated-small-calls" in fired(report, [step(1, 0, 400), *alone])


def test_the_gain_of_repeated_calls_is_not_counted_twice(report):
    found = fired(report, heads(10))
    assert found["repeated-small-calls"].up_to_ns == 296_100
    assert "is told under repeated-small-calls" in "\n".join(found["overhead-bound"].evidence)


# -- conversions ---------------------------------------------------------------------------------------------------


def round_trip(between: list[tuple[str, str]], *, sizes=(None, None), around: str | None = None, tid=1):
    """A product of 60 µs, a cast of 20, work of 10 each between, 10 back. sizes: recorded dims of both."""
    events = dispatched("aten::mm", 0, 10, 1, 2, kernel(GEMM, 10, 60, 1))
    steps = [("aten::to", CAST, 20), *((name, kind, 10) for name, kind in between), ("aten::to", NARROW, 10)]
    host, device = 10, 70
    for i, (name, kind, dur) in enumerate(steps):
        work = kernel(kind, device, dur, i + 2)
        inner = dispatched("aten::copy_" if name == "aten::to" else name, host + 1, 8, i + 2, 2, work)
        if name == "aten::to":
            size = sizes[0 if i == 0 else 1]
            if size:
                inner[0]["args"] = {"Input Dims": [size, size], "Input type": ["", ""]}
            inner = [op("aten::to", host, 10), *inner]
        if around:
            inner = [op(around, host, 10), *inner]
        events += [{**e, "tid": tid} if e["pid"] == 100 else e for e in inner]
        host, device = host + 10, device + dur
    return events


RELU = ("aten::relu", POINTWISE)


def test_a_round_trip_is_two_conversions_with_hardly_anything_between_them(report):
    assert fired(report, round_trip([]))["dtype-round-trip"].up_to_ns == 30_000
    assert "dtype-round-trip" in fired(report, round_trip([RELU, RELU]))
    assert "dtype-round-trip" not in fired(report, round_trip([RELU] * 3))
    # A norm in fp32 was meant.
    reduction = ("aten::mean", "void at::native::reduce_kernel<512, 1, MeanOps<float> >(int)")
    assert "dtype-round-trip" not in fired(report, round_trip([reduction]))


def test_conversions_that_somebody_else_asked_for_are_no_round_trip(report):
    """Autocast's casts lie in an operator; backward's in a function of the autograd engine."""
    assert "dtype-round-trip" not in fired(report, round_trip([RELU], around="aten::linear"))
    assert "dtype-round-trip" not in fired(report, round_trip([RELU], around="ToCopyBackward0"))


def test_conversions_of_two_tensors_are_no_round_trip(report):
    assert "dtype-round-trip" in fired(report, round_trip([RELU], sizes=([8, 16], [8, 16])))
    assert "dtype-round-trip" not in fired(report, round_trip([RELU], sizes=([8, 16], [8, 1])))


def test_a_layout_kernel_outside_a_convolution_is_no_conversion_of_its(report):
    events = dispatched("aten::contiguous", 0, 10, 1, 2, kernel("nchwToNhwcKernel", 10, 50, 1))
    events += dispatched("aten::cudnn_convolution", 10, 10, 2, 2, kernel("implicit_convolve_sgemm", 60, 50, 2))
    assert "layout-conversions" not in fired(report, events)


def test_conversions_of_a_run_that_waits_for_its_host_win_nothing(report):
    events = CASES["layout-conversions"]().events
    for i in range(20):
        events += dispatched("aten::add", 40 + 100 * i, 100, 10 + i, 90, kernel(POINTWISE, 140 + 100 * i, 1, 10 + i))
    assert "layout-conversions" not in fired(report, events)


# -- attention -----------------------------------------------------------------------------------------------------

EFFICIENT = "aten::_scaled_dot_product_efficient_attention"
HALVES = ["c10::BFloat16"] * 3 + ["", "Scalar", "Scalar"]


def test_a_backend_that_was_chosen_on_purpose_is_not_excluded(report):
    dims = [[4, 16, 2048, 64]] * 3 + [[], [], []]
    assert "sdpa-fast-backend-excluded" not in fired(report, attended(HALVES, dims, EFFICIENT, "fmha_cutlassF_bf16"))
    flash = "aten::_scaled_dot_product_flash_attention"
    fp32 = ["float"] * 3 + ["", "Scalar", "Scalar"]
    assert "sdpa-fast-backend-excluded" not in fired(report, attended(fp32, dims, flash, "flash_fwd_kernel"))


def test_a_mask_or_a_large_head_excludes_flash_as_a_note(report):
    dims = [[4, 16, 2048, 64]] * 3
    types = [*HALVES[:3], "bool", "Scalar", "Scalar"]
    masked = attended(types, [*dims, [2048, 2048], [], []], EFFICIENT, "fmha_cutlassF")
    found = fired(report, masked)["sdpa-fast-backend-excluded"]
    assert found.severity.value == "note"
    assert "mask tensor" in found.evidence[0]
    assert "is_causal" in found.advice
    large = attended(HALVES, [[4, 16, 2048, 320]] * 3 + [[], [], []], EFFICIENT, "fmha_cutlassF_bf16")
    assert "heads of 320" in fired(report, large)["sdpa-fast-backend-excluded"].evidence[0]
    fits = attended(HALVES, [[4, 16, 2048, 256]] * 3 + [[], [], []], EFFICIENT, "fmha_cutlassF_bf16")
    assert "sdpa-fast-backend-excluded" not in fired(report, fits)
    sizes = [[4, 16, 2048, 192]] * 2 + [[4, 16, 2048, 128], [], [], []]
    uneven = attended(HALVES, sizes, EFFICIENT, "fmha_cutlassF_bf16")
    assert "value heads of 128" in fired(report, uneven)["sdpa-fast-backend-excluded"].evidence[0]


# -- products, streams, collectives ------------------------------------------------------------------------------


def device(major: int, name: str = "GPU"):
    return {"deviceProperties": [{"id": 0, "name": name, "computeMajor": major, "computeMinor": 0}]}


def product(name: str):
    return dispatched("aten::mm", 0, 10, 1, 2, kernel(name, 10, 80, 1))


def test_tensor_cores_are_missed_only_where_there_are_some_for_the_format(report):
    sgemm, hgemm = product("volta_sgemm_128x64_nn"), product("volta_hgemm_128x128_nn")
    assert "no-tensor-cores" not in fired(report, sgemm, **device(6))
    assert "no-tensor-cores" not in fired(report, sgemm, **device(7, "NVIDIA GeForce GTX 1660"))
    assert "multiples of 8" in fired(report, hgemm, **device(7))["no-tensor-cores"].advice
    assert "no-tensor-cores" not in fired(report, product("volta_h884gemm_128x128_ldg8_nn"), **device(7))
    # From Ampere on fp32 is another finding's; vectors are bound by memory.
    assert "no-tensor-cores" not in fired(report, sgemm, **device(8))
    vector = product("void gemv2T_kernel_val<int, int, __half, __half, float, 128>")
    assert "no-tensor-cores" not in fired(report, vector, **device(8))


def test_a_stream_that_was_told_to_wait_does_not_contend(report):
    events = CASES["stream-contention"]().events
    assert "stream-contention" not in fired(report, [*events, call("cudaStreamWaitEvent", 24.2, 0.5)])
    # Elsewhere nobody knows how a stream is told to wait.
    others = [{**e, "name": "runModel"} if e["name"].startswith("cuda") else e for e in events]
    assert "stream-contention" not in fired(report, others)


def test_small_collectives_behind_compute_cost_nothing(report):
    events = CASES["unbucketed-collectives"]().events
    events += dispatched("aten::mm", 0, 1, 99, 0, kernel(GEMM, 1, 1010, 99, stream=20))
    assert "unbucketed-collectives" not in fired(report, events)


def test_few_or_large_collectives_are_no_lack_of_buckets(report):
    events = []
    for i in range(50):
        events += dispatched("c10d::allreduce_", 20 * i, 10, i + 1, 3, reduced(20 * i + 10, 10, i + 1, 1 << 18))
    assert "unbucketed-collectives" not in fired(report, events)
    few = [e for e in CASES["unbucketed-collectives"]().events if (e.get("args") or {}).get("correlation", 1) < 50]
    assert "unbucketed-collectives" not in fired(report, few)


# -- waits -------------------------------------------------------------------------------------------------------


def read_back(count: int, *, inside: bool):
    """Operators of 100 µs with a kernel of 1, and after each a wait of 2 µs for nothing."""
    events = []
    for i in range(count):
        t = 100 * i
        events += dispatched("aten::add", t, 90, i + 1, 80, kernel(POINTWISE, t + 85, 1, i + 1))
        if inside:
            events.append(op("aten::item", t + 92, 4))
        events.append(call("cudaStreamSynchronize", t + 93, 0.9))
    return [*events, *dispatched("aten::add", 100 * count, 90, 99, 80, kernel(POINTWISE, 100 * count + 85, 1, 99))]


def test_a_value_that_is_read_back_in_every_step_is_noted_however_short_the_wait(report):
    found = fired(report, read_back(5, inside=True))["blocking-sync"]
    assert found.severity.value == "note"
    assert found.up_to_ns is None
    assert "5 waits" in found.title
    assert "short" in found.title


def test_a_short_wait_now_and_then_or_of_no_operator_is_none(report):
    assert "blocking-sync" not in fired(report, read_back(2, inside=True))
    assert "blocking-sync" not in fired(report, read_back(5, inside=False))


def test_an_input_that_earlier_work_hides_is_not_exposed(report):
    """A product of 100 µs that was launched before the window runs beside the copy of 50."""
    copy = memcpy("HtoD (Pinned -> Device)", 10, 50, 1, stream=20)
    events = [kernel(GEMM, 0, 100), *dispatched("aten::copy_", 1, 5, 1, 0, copy)]
    events += dispatched("aten::mm", 8, 5, 2, 0, kernel(GEMM, 100, 100, 2))
    assert "exposed-copy" not in fired(report, events)


# -- words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "said", "unsaid"),
    [("cuda", "CUDA graph (torch.cuda.graph", "HIP"), ("hip", "HIP graph (torch.cuda.graph", "CUDA"),
     ("musa", "MUSA graph or", "CUDA"), ("someones", "device graph or", "CUDA")],
)  # fmt: skip
def test_advice_is_in_the_platforms_own_words(report, prefix, said, unsaid):
    events = [e | {"name": e["name"].replace("cuda", prefix)} for e in slow_host()]
    advice = fired(report, events)["overhead-bound"].advice
    assert said in advice
    assert unsaid not in advice


def slow_host():
    """Thirty operators of 100 µs with a kernel of 5 µs each: two kinds of them."""
    return [
        e
        for i in range(30)
        for e in dispatched(f"aten::op{i % 2}", 100 * i, 90, i + 1, 3, kernel(f"k{i % 2}", 100 * i + 92, 5, i + 1))
    ]


def test_products_that_differ_in_the_middle_of_their_names_never_look_alike(report):
    """What tells them apart is what a cut in the middle would take: tile sizes."""
    name = "ampere_sgemm_with_a_name_that_is_far_too_long_{}_and_goes_on_for_quite_a_while_longer_nn"
    events = [
        e
        for i, tile in enumerate(("32x128", "64x128"))
        for e in dispatched("aten::mm", 100 * i, 10, i + 1, 2, kernel(name.format(tile), 100 * i + 10, 90, i + 1))
    ]
    evidence = fired(report, events, **device(8))["fp32-gemm-on-cuda-cores"].evidence
    assert len({line.split(":")[0] for line in evidence}) == 2


def test_one_compiled_function_of_many_does_not_make_a_run_compiled(report):
    """Of 3 ms: a region of 50 µs, or one around three of four operators."""

    def advice(length):
        region = op("Torch-Compiled Region: 0/0", 0, length)
        return fired(report, [region, *slow_host()])["overhead-bound"].advice

    assert advice(50).startswith("Capture the step")
    assert advice(2200).startswith("Compiled, but every kernel")
