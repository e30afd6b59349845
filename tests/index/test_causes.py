"""Why a device was idle: each cause on a trace of a few events, and the split of a gap among causes.

All traces share a beginning: a first kernel that ends at 10 µs. The gap begins there and ends with the
kernel "b", whose launch call L lasts 5 µs.

    device   [a 5..10]                 gap                [b 100..110]
    host     [L(a) 0..2]      ...                 [L 90..95]
"""

from __future__ import annotations

import polars as pl
import pytest

from analyzer.index.activity import Cause
from tests.micro import BUFFER, LOADING, annotation, call, frame, kernel, launch, memcpy, op, overhead, step

FIRST = [launch("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 5, 1)]


def ended_by_b(at: float = 100, launched: float = 90, *, call_name: str = "cudaLaunchKernel", stream: int = 7):
    return [launch(call_name, launched, 5, 2), kernel("b", at, 10, 2, stream=stream)]


def by_cause(pieces):
    """{cause: µs}."""
    parts = pieces.group_by("cause").agg(pl.col("ns").sum())
    return {Cause(cause).key: ns / 1000 for cause, ns in parts.iter_rows()}


@pytest.fixture
def split(chains):
    """{cause: µs} of the idle time of device 0; it must add up to the gaps."""

    def of(*events):
        built = chains([*FIRST, *events])
        idle = (built.idle.gaps["end"] - built.idle.gaps["start"]).sum()
        assert built.idle.gap_pieces["ns"].sum() == idle
        return by_cause(built.idle.gap_pieces)

    return of


@pytest.fixture
def owners(chains):
    """{(cause, who): µs}; who is an operator, annotation, call or frame, None where there is none."""

    def of(*events):
        built = chains([*FIRST, *events])
        parts = built.idle.gap_pieces.group_by("cause", "owner").agg(pl.col("ns").sum())
        names = built.trace.text(parts["owner"])
        return {(Cause(c).key, n): ns / 1000 for (c, _, ns), n in zip(parts.iter_rows(), names, strict=True)}

    return of


# -- the work was queued in time: the launch call returned before the gap began ---------------------------


def test_a_short_gap_before_queued_work_is_the_devices_turnaround(split):
    """L returns at 8, before the gap [10, 15] begins."""
    assert split(*ended_by_b(15, launched=3)) == {"device_turnaround": 5}


def test_up_to_ten_microseconds_are_turnaround(split):
    assert split(*ended_by_b(20, launched=3)) == {"device_turnaround": 10}
    assert split(*ended_by_b(20.001, launched=3, stream=8)) == {"dependency": 10.001}


def test_a_call_that_returns_just_as_the_gap_begins_was_in_time(split):
    """L [3, 8] was in time; so was L [5, 10], which returns at the gap's first instant."""
    assert split(*ended_by_b(15, launched=5)) == {"device_turnaround": 5}
    assert split(*ended_by_b(15, launched=5.001)) == {"dispatch": 0.001, "launch_latency": 4.999}


def test_a_long_gap_before_queued_work_of_another_stream_is_a_dependency(split):
    """Nothing on the host held it up: a stream waited for an event of another one."""
    assert split(*ended_by_b(50, launched=3, stream=8)) == {"dependency": 40}


def test_one_stream_has_no_other_to_wait_for(split):
    """14 µs go from kernel to kernel on ROCm; beyond a millisecond nothing that is seen here explains it."""
    assert split(*ended_by_b(24, launched=3)) == {"device_turnaround": 14}
    busy = [launch("cudaLaunchKernel", 3, 1, 3), kernel("long", 10, 300_000, 3)]
    after = [launch("cudaLaunchKernel", 5, 1, 4), kernel("b", 301_110, 10, 4)]
    assert split(*busy, *after) == {"dependency": 1100}


def test_what_the_profiler_handled_buffers_for_in_that_time_is_the_profilers(split):
    """Gap [10, 50]; buffers [20, 30] and, overlapping, [25, 35]: 15 µs once. Dependency 40 - 15 = 25."""
    micro = [*ended_by_b(50, launched=3, stream=8), overhead(BUFFER, 20, 10), overhead(BUFFER, 25, 10)]
    assert split(*micro) == {"dependency": 25, "profiler": 15}


def test_a_gap_inside_one_graph_launch_is_the_graphs(split):
    """Both kernels come from launch 1, which returned at 2."""
    assert split(kernel("b", 60, 10, 1)) == {"graph_internal": 50}


def test_a_gap_between_two_graph_launches_is_not_inside_a_graph(split):
    micro = [call("cudaGraphLaunch", 3, 3, corr=2), kernel("b", 60, 10, 2)]
    assert split(*micro) == {"device_turnaround": 50}


def test_the_end_of_a_graph_stands_for_all_of_its_branches(split):
    """Graph [5, 10] and [6, 10] on two streams; b on a third begins 20 µs later: no stream waits for another."""
    micro = [kernel("branch", 6, 4, 1, stream=8), *ended_by_b(30, launched=3, stream=9)]
    assert split(*micro) == {"device_turnaround": 20}


# -- nothing can be said ---------------------------------------------------------------------------------


def test_a_gap_before_unlinked_work_is_unlinked(split):
    """Whatever the host did meanwhile: no launch, no guess."""
    assert split(kernel("b", 60, 10, 99), op("aten::mm", 10, 40)) == {"unlinked": 50}


def test_a_gap_in_which_a_launch_has_no_device_record_is_not_recorded(split):
    """The graph launched at 40 may have kept the device busy: no cause is asserted."""
    micro = [*ended_by_b(), op("aten::mm", 10, 90), call("cudaGraphLaunch", 40, 5, corr=77)]
    assert split(*micro) == {"not_recorded": 90}


def test_a_missing_record_before_the_gap_does_not_matter(split):
    micro = [*ended_by_b(), call("cudaGraphLaunch", 8, 1, corr=77), op("aten::mm", 10, 90)]
    assert "not_recorded" not in split(*micro)


def test_launches_after_the_last_recorded_one_say_nothing_of_the_gaps(split):
    """There the recording just ended: L at 90 is the last launch with a record, the graph comes at 96."""
    micro = [*ended_by_b(), op("aten::mm", 10, 90), call("cudaGraphLaunch", 96, 2, corr=77)]
    assert split(*micro) == {"dispatch": 85, "launch_latency": 5}


# -- the CPU was late ------------------------------------------------------------------------------------


def test_the_time_after_the_call_returned_is_launch_latency_and_the_time_before_the_operators(owners):
    """Gap [10, 100]: the operator until L returned at 95, 85 µs; launch latency 95..100, 5 µs."""
    micro = [*ended_by_b(), op("aten::mm", 10, 90)]
    assert owners(*micro) == {("dispatch", "aten::mm"): 85, ("launch_latency", "cudaLaunchKernel"): 5}


def test_work_that_starts_while_its_call_still_runs_has_no_launch_latency(split):
    """L [90, 95], b starts at 93: all 83 µs are the operator's."""
    assert split(*ended_by_b(93), op("aten::mm", 10, 90)) == {"dispatch": 83}


def test_only_what_the_launching_thread_did_counts(split):
    """Thread 2 synchronizes all along; thread 1, which launches, recorded nothing until L."""
    micro = [*ended_by_b(), call("cudaDeviceSynchronize", 10, 80, tid=2)]
    assert split(*micro) == {"no_host_event": 80, "dispatch": 5, "launch_latency": 5}


def test_the_innermost_event_decides(owners):
    """
    outer  [10 ................................ 98]
    inner         [30 ......... 60]
    gap 10..100:  outer 20 + (60..95) 35 = 55; inner 30; latency 5.
    """
    micro = [*ended_by_b(), op("outer", 10, 88), op("inner", 30, 30)]
    assert owners(*micro) == {
        ("dispatch", "outer"): 55, ("dispatch", "inner"): 30, ("launch_latency", "cudaLaunchKernel"): 5,
    }  # fmt: skip


def test_a_thread_that_recorded_nothing_is_no_host_event(split):
    """Nothing from 10 to 90; then L itself, outside any operator, 5 µs of dispatch."""
    assert split(*ended_by_b()) == {"no_host_event": 80, "dispatch": 5, "launch_latency": 5}


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("cudaDeviceSynchronize", "blocking_sync"),
        ("cudaStreamSynchronize", "blocking_sync"),
        ("cudaEventSynchronize", "blocking_sync"),
        ("hipStreamSynchronize", "blocking_sync"),
        ("urQueueFinish", "blocking_sync"),
        ("cudaMalloc", "allocator"),
        ("cudaFree", "allocator"),
        ("cudaHostAlloc", "allocator"),
        ("cuMemMap", "allocator"),
        ("cuLibraryLoadData", "first_use"),
        ("cuModuleLoadDataEx", "first_use"),
        ("hipModuleLoadData", "first_use"),
    ],
)
def test_a_call_that_waits_allocates_or_loads_wins_over_the_operator_around_it(owners, name, cause):
    """The call [20, 70] takes 50; the operator's share is 10 before it and 25 after, until L returned."""
    micro = [*ended_by_b(), op("aten::mm", 10, 90), call(name, 20, 50)]
    assert owners(*micro) == {
        (cause, name): 50, ("dispatch", "aten::mm"): 35, ("launch_latency", "cudaLaunchKernel"): 5,
    }  # fmt: skip


def test_a_copy_call_with_pageable_memory_is_a_pageable_copy(owners):
    """The host stages the data from 60 on; the copy starts at 100, before the call returns at 120."""
    micro = [
        op("aten::copy_", 10, 115),
        call("cudaMemcpyAsync", 60, 60, corr=2), memcpy("HtoD (Pageable -> Device)", 100, 15, 2),
    ]  # fmt: skip
    assert owners(*micro) == {("dispatch", "aten::copy_"): 50, ("pageable_copy", "cudaMemcpyAsync"): 40}


def test_a_copy_call_that_is_synchronous_by_name_is_a_blocking_sync(owners):
    """cudaMemcpy [60, 120] of pinned memory: it returns when the copy is done."""
    micro = [
        op("aten::copy_", 10, 115), call("cudaMemcpy", 60, 60, corr=2), memcpy("DtoH (Device -> Pinned)", 100, 15, 2),
    ]  # fmt: skip
    assert owners(*micro) == {("dispatch", "aten::copy_"): 50, ("blocking_sync", "cudaMemcpy"): 40}


def test_a_copy_call_with_pinned_memory_is_dispatch(split):
    micro = [
        op("aten::copy_", 10, 115),
        call("cudaMemcpyAsync", 60, 60, corr=2), memcpy("HtoD (Pinned -> Device)", 100, 15, 2),
    ]  # fmt: skip
    assert split(*micro) == {"dispatch": 90}


def test_loading_events_inside_an_operator_are_first_use(split):
    """Loading [20, 60] on its own lane, inside the operator: 40 first use, 85 - 40 = 45 dispatch."""
    micro = [*ended_by_b(), op("aten::mm", 10, 90), overhead(LOADING, 20, 40)]
    assert split(*micro) == {"first_use": 40, "dispatch": 45, "launch_latency": 5}


def test_the_excess_of_a_first_call_over_the_median_of_its_later_ones_is_first_use(owners):
    """
    aten::mm takes 500, 40, 60 µs: the median of the later ones is 50, the excess 450, which is 0.9 of 500.
    The gap [10, 460] lies in the first call [10, 510]; until L returned at 455 that is 445 of dispatch:
    0.9 · 445 = 400.5 first use, 44.5 dispatch.
    """
    micro = [
        op("aten::mm", 10, 500), launch("cudaLaunchKernel", 450, 5, 2), kernel("b", 460, 100, 2),
        op("aten::mm", 600, 40), op("aten::mm", 700, 60),
    ]  # fmt: skip
    assert owners(*micro) == {
        ("first_use", "aten::mm"): 400.5, ("dispatch", "aten::mm"): 44.5, ("launch_latency", "cudaLaunchKernel"): 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "later", "why"),
    [
        (500, [60], "a single later call is a weak median, and asked for ten times"),
        (240, [100, 100], "less than three times the median"),
        (140, [45, 45], "not even 100 µs longer"),
    ],
)
def test_a_first_call_that_is_not_far_out_is_dispatch(split, first, later, why):
    micro = [
        op("aten::mm", 10, first),
        *ended_by_b(),
        *(op("aten::mm", 1000 + 100 * i, n) for i, n in enumerate(later)),
    ]
    assert "first_use" not in split(*micro), why


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (op("entire_frame_compile (dynamo_timed)", 10, 90), "compile"),
        (op("compile_fx_inner (dynamo_timed)", 10, 90), "compile"),
        (annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 90), "input_pipeline"),
        (annotation("load_batch", 10, 90), "input_pipeline"),
        (annotation("data_loading", 10, 90), "input_pipeline"),
        (op("gloo:all_reduce", 10, 90), "collective"),
        (annotation("dist.Work.wait", 10, 90), "collective"),
    ],
)
def test_what_an_operator_or_annotation_is_for_decides_of_all_inside_it(owners, event, cause):
    """An operator inside it, [20, 60], does not change what it is for. L, until 95, is inside as well."""
    micro = [*ended_by_b(), event, op("aten::mm", 20, 40)]
    assert owners(*micro) == {(cause, event["name"]): 85, ("launch_latency", "cudaLaunchKernel"): 5}


def test_to_issue_a_collective_is_dispatch(owners):
    """NCCL's kernels wait, not the host that queues them."""
    for name in ("nccl:all_reduce", "c10d::allreduce_", "FSDP::all_gather"):
        micro = [*ended_by_b(), op(name, 10, 90)]
        assert owners(*micro) == {("dispatch", name): 85, ("launch_latency", "cudaLaunchKernel"): 5}


def test_what_a_compiler_calls_is_the_compilers(owners):
    """It benchmarks kernels and waits for them."""
    compiling = "CachingAutotuner.benchmark_all_configs (dynamo_timed)"
    micro = [
        *ended_by_b(),
        annotation(compiling, 10, 90),
        call("cudaDeviceSynchronize", 20, 50),
        call("cudaMalloc", 75, 5),
    ]
    assert owners(*micro) == {("compile", compiling): 85, ("launch_latency", "cudaLaunchKernel"): 5}


def test_a_synchronize_inside_data_loading_is_a_blocking_sync(split):
    micro = [*ended_by_b(), annotation("load_batch", 10, 90), call("cudaStreamSynchronize", 20, 30)]
    assert split(*micro) == {"input_pipeline": 55, "blocking_sync": 30, "launch_latency": 5}


def test_names_that_merely_resemble_data_loading_are_not(split):
    """`aten::data`, `upload_batched`, `thread_data_free`: nothing that says it loads data."""
    for name in ("decode_token", "upload_batched", "spread_data"):
        assert "input_pipeline" not in split(*ended_by_b(), annotation(name, 10, 90))


def test_a_data_loading_frame_makes_operators_in_it_input_pipeline(owners):
    """Collating calls `aten::stack`; the frame of torch/utils/data around it says what for."""
    loader = "/lib/python3/site-packages/torch/utils/data/dataloader.py(700): __next__"
    micro = [*ended_by_b(), frame(loader, 10, 60), op("aten::stack", 20, 40), op("aten::mm", 75, 25)]
    assert owners(*micro) == {
        ("input_pipeline", loader): 60,
        ("no_host_event", None): 5,
        ("dispatch", "aten::mm"): 20,  # 75..95
        ("launch_latency", "cudaLaunchKernel"): 5,
    }


@pytest.mark.parametrize(
    "name",
    ["data.py(10): __getitem__", "/x/transformers/models/clip/image_processing_clip.py(5): resize",
     "/x/torchvision/transforms/functional.py(9): normalize", "video.py(3): preprocess_clip",
     "train.py(1): load_batch"],
)  # fmt: skip
def test_frames_that_prepare_input_are_input_pipeline(owners, name):
    """Whatever they call: until L returned at 95."""
    micro = [*ended_by_b(), frame(name, 10, 90)]
    assert owners(*micro)["input_pipeline", name] == 85


@pytest.mark.parametrize("name", ["train.py(10): forward", "torch/nn/modules/container.py(3): __getitem__"])
def test_other_frames_are_python(split, name):
    assert split(*ended_by_b(), frame(name, 10, 90)) == {"python": 80, "dispatch": 5, "launch_latency": 5}


@pytest.mark.parametrize(
    "name", ["torch/_functorch/aot_autograd.py(1184): forward", "torch/_inductor/output_code.py(2): __call__",
             "torch/_dynamo/eval_frame.py(600): _fn"],
)  # fmt: skip
def test_run_time_wrappers_of_compiled_code_compile_nothing(owners, name):
    """What they call that is the user's own is Python again."""
    micro = [*ended_by_b(), frame(name, 10, 90), frame("model.py(3): step", 20, 30)]
    found = owners(*micro)
    assert (found["compiled_overhead", name], found["python", "model.py(3): step"]) == (50, 30)


def test_a_frame_that_an_operator_called_is_the_inner_one(owners):
    """A hook, inside a backward function: [20, 60] of [10, 98]."""
    backward = "autograd::engine::evaluate_function: MulBackward0"
    micro = [*ended_by_b(), op(backward, 10, 88), frame("hooks.py(3): log", 20, 40)]
    assert owners(*micro) == {
        ("dispatch", backward): 45, ("python", "hooks.py(3): log"): 40, ("launch_latency", "cudaLaunchKernel"): 5,
    }  # fmt: skip


def test_a_compiler_frame_is_compile(split):
    micro = [*ended_by_b(), frame("/x/torch/_inductor/compile_fx.py(500): compile_fx", 10, 90), op("aten::mm", 20, 40)]
    assert split(*micro) == {"compile": 85, "launch_latency": 5}


def test_a_compiled_region_outside_operators_is_compiled_overhead(owners):
    """Region [10, 98] with an operator [30, 50]: 20 + 45 = 65 of overhead, 20 of dispatch."""
    region = "Torch-Compiled Region: 0/0"
    micro = [*ended_by_b(), op(region, 10, 88), op("aten::mm", 30, 20)]
    assert owners(*micro) == {
        ("compiled_overhead", region): 65, ("dispatch", "aten::mm"): 20, ("launch_latency", "cudaLaunchKernel"): 5,
    }  # fmt: skip


@pytest.mark.parametrize("part", ["TorchDynamo Cache Lookup", "## Call CompiledFxGraph abc ##", "CompiledFunction"])
def test_guards_and_generated_code_are_compiled_overhead_too(owners, part):
    micro = [*ended_by_b(), op(part, 10, 88)]
    assert owners(*micro) == {("compiled_overhead", part): 85, ("launch_latency", "cudaLaunchKernel"): 5}


def test_an_annotation_outside_operators_is_python_and_named(owners):
    """L, outside any operator, is dispatch of its own: 5."""
    assert owners(*ended_by_b(), annotation("forward", 10, 90)) == {
        ("python", "forward"): 80, ("dispatch", "cudaLaunchKernel"): 5, ("launch_latency", "cudaLaunchKernel"): 5,
    }  # fmt: skip


def test_a_frame_outside_operators_is_python_and_the_innermost_one_with_a_file_is_named(owners):
    """`<built-in ...>` names no place: its time is its caller's."""
    micro = [
        *ended_by_b(),
        step(1, 10, 90),
        frame("model.py(5): forward", 10, 90),
        frame("<built-in method f>", 20, 50),
    ]
    assert owners(*micro) == {
        ("python", "model.py(5): forward"): 80,
        ("dispatch", "cudaLaunchKernel"): 5,
        ("launch_latency", "cudaLaunchKernel"): 5,
    }


def test_a_frame_that_crosses_an_operator_does_not_cut_it(split):
    """Frames are coarser and may cross operators [30, 60]: the operator's time stays its own, 30 whole µs."""
    micro = [*ended_by_b(), op("aten::mm", 30, 30), frame("model.py(5): forward", 10, 40)]
    assert split(*micro) == {"python": 20, "dispatch": 35, "no_host_event": 30, "launch_latency": 5}


def test_the_profilers_time_inside_an_event_of_the_thread_is_the_profilers(split):
    """Buffer [20, 60] inside the operator. It wins even over a call that waits."""
    micro = [*ended_by_b(), op("aten::mm", 10, 90), overhead(BUFFER, 20, 40)]
    assert split(*micro) == {"profiler": 40, "dispatch": 45, "launch_latency": 5}
    assert split(*micro, call("cudaStreamSynchronize", 15, 50)) == {
        "profiler": 40, "blocking_sync": 10, "dispatch": 35, "launch_latency": 5,
    }  # fmt: skip


def test_the_profilers_time_wins_over_loading_at_the_same_instant(split):
    micro = [*ended_by_b(), op("aten::mm", 10, 90), overhead(LOADING, 20, 40), overhead(BUFFER, 30, 10)]
    assert split(*micro) == {"first_use": 30, "profiler": 10, "dispatch": 45, "launch_latency": 5}


def test_a_gap_of_many_causes_is_split_to_the_nanosecond(split):
    """
    10..15   nothing                5 no_host_event
    15..25   annotation            10 python
    25..90   aten::mm in it:       cudaMalloc [30, 40] 10 allocator, cudaStreamSynchronize [45, 65] 20,
                                   loading [70, 75.001] 5.001 first use; the rest until L's return at 95:
                                   70 - 35.001 = 34.999 dispatch
    95..100  launch latency         5
    """
    micro = [
        *ended_by_b(), annotation("forward", 15, 84), op("aten::mm", 25, 74), call("cudaMalloc", 30, 10),
        call("cudaStreamSynchronize", 45, 20), overhead(LOADING, 70, 5.001),
    ]  # fmt: skip
    assert split(*micro) == {
        "no_host_event": 5, "python": 10, "allocator": 10, "blocking_sync": 20, "first_use": 5.001,
        "dispatch": 34.999, "launch_latency": 5,
    }  # fmt: skip


def test_gaps_of_two_devices_are_split_apart(chains):
    """Device 0 waits 90 µs for a late launch; device 1's work was queued in time: 4 µs of turnaround."""
    other = [launch("cudaLaunchKernel", 2, 1, 11), launch("cudaLaunchKernel", 3, 1, 12)]
    work = [kernel("c", 6, 2, 11, device=1), kernel("d", 12, 2, 12, device=1)]
    built = chains([*FIRST, *ended_by_b(), *other, *work])
    pieces = built.idle.gap_pieces.join(
        built.idle.gaps.with_row_index("gap").select(pl.col("gap").cast(pl.Int64), "device"), on="gap"
    )
    per_device = {
        (device, Cause(cause).key): ns / 1000
        for device, cause, ns in pieces.group_by("device", "cause").agg(pl.col("ns").sum()).iter_rows()
    }
    assert per_device == {
        (0, "no_host_event"): 80, (0, "dispatch"): 5, (0, "launch_latency"): 5, (1, "device_turnaround"): 4,
    }  # fmt: skip


# -- before the first and after the last work --------------------------------------------------------------


def test_the_lead_in_has_causes_like_a_gap(chains):
    """The window starts at 0 with an operator; the first work at 50 was launched [30, 35]: 35 + 15."""
    built = chains([op("aten::mm", 0, 40), launch("cudaLaunchKernel", 30, 5, 1), kernel("k", 50, 10, 1)])
    assert by_cause(built.idle.edge_pieces) == {"dispatch": 35, "launch_latency": 15}


def test_the_tail_out_is_what_the_launching_thread_did_after_the_last_work(chains):
    """Last work ends at 20; the thread then is in `postprocess` until 70, where the window ends."""
    micro = [launch("cudaLaunchKernel", 0, 5, 1), kernel("k", 10, 10, 1), annotation("postprocess", 20, 50)]
    assert by_cause(chains(micro).idle.tail_pieces) == {"python": 50}


def test_the_first_event_of_a_trace_is_a_context_like_any_other(chains):
    """The loader's annotation is row 0 and lasts beyond both ends of the gap [10, 100], in which L returns at 95."""
    loader = annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 200)
    built = chains([loader, launch("cudaLaunchKernel", 1, 2, 1), kernel("a", 5, 5, 1), *ended_by_b()])
    assert built.idle.gap_pieces.filter(pl.col("cause") == int(Cause.INPUT_PIPELINE))["ns"].sum() == 85_000
