"""Traces on which a finding must not fire, or must not claim a gain: each close to one where it would."""

from __future__ import annotations

from tests.findings.cases import ALLREDUCE, GEMM, MATH, POINTWISE, attention, dispatched
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
