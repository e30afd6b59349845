"""The window of the verdict, and the verdicts."""

from __future__ import annotations

import pytest

from analyzer.index.build import build
from analyzer.sources.kineto.read import read
from tests.micro import BUFFER, annotation, call, frame, kernel, launch, memcpy, op, overhead, step, write


def window(built):
    return built.window.start / 1000, built.window.end / 1000


def test_the_window_is_from_the_first_event_to_the_last_of_host_or_device(chains):
    assert window(chains([op("x", 0, 10), kernel("k", 5, 50)])) == (0, 55)
    assert window(chains([kernel("k", 0, 5), op("x", 3, 10)])) == (0, 13)


def test_a_final_synchronize_that_only_flushes_is_left_out(chains):
    """The profiler synchronizes at the end, [60, 500]: the run ended with its last work at 55."""
    assert window(chains([op("x", 0, 10), kernel("k", 5, 50), call("cudaDeviceSynchronize", 60, 440)])) == (0, 55)


def test_a_synchronize_of_the_run_itself_counts(chains):
    """Inside an annotation it is the user's."""
    micro = [annotation("step", 0, 100), call("cudaDeviceSynchronize", 20, 70), kernel("k", 5, 50)]
    assert window(chains(micro)) == (0, 100)


def test_a_synchronize_that_is_followed_by_other_work_is_inside_the_window(chains):
    assert window(chains([op("x", 0, 5), call("cudaDeviceSynchronize", 10, 30), op("y", 50, 5)])) == (0, 55)


def test_frames_and_the_profilers_lane_do_not_stretch_the_window(chains):
    micro = [op("x", 0, 10), frame("run.py(1): main", 0, 900), overhead(BUFFER, 600, 100)]
    assert window(chains(micro)) == (0, 10)


def test_with_steps_the_window_is_theirs(chains):
    """Warm-up [0, 90] before step [100, 200]; another thread's work after it counts for nothing."""
    micro = [op("warm-up", 0, 90), kernel("w", 10, 20), step(1, 100, 100), op("after", 210, 90)]
    assert window(chains(micro)) == (100, 200)


def test_the_window_of_steps_lasts_as_long_as_what_they_launched(chains):
    """Launched at 150, in the step, and done at 420; what was launched at 300, after it, is not."""
    micro = [
        op("start", 0, 1), step(1, 100, 100), launch("cudaLaunchKernel", 150, 5, 1), kernel("k", 160, 260, 1),
        launch("cudaLaunchKernel", 300, 5, 2), kernel("late", 420, 500, 2),
    ]  # fmt: skip
    assert window(chains(micro)) == (100, 420)


def test_steps_of_old_files_are_operators(chains):
    assert window(chains([op("ProfilerStep#1", 100, 50), kernel("k", 0, 5)])) == (100, 150)


def test_a_thread_that_never_launches_does_not_stretch_the_window(chains):
    """A watchdog polls until 900, 800 µs after the run's last work; where nobody launches, everybody counts."""
    poll = [call("cudaEventQuery", 100 * i, 2, tid=9) for i in range(10)]
    run = [op("x", 50, 40), launch("cudaLaunchKernel", 60, 5, 1), kernel("k", 70, 30, 1)]
    assert window(chains([*run, *poll])) == (50, 100)
    assert window(chains(poll)) == (0, 902)


def test_a_trace_without_events_has_no_window(chains):
    assert chains([]).window is None


def test_lead_in_gaps_and_tail_out_make_up_the_idle_time_of_the_window(contract):
    """Window [0, 200]; work [20, 60] and [100, 150]: lead-in 20, gap 40, tail-out 50; 110 + 90 = 200."""
    report = contract([op("x", 0, 200), kernel("a", 20, 40), kernel("b", 100, 50)])
    (device,) = report["devices"]
    assert (device["lead_in_us"], device["idle_us"], device["tail_out_us"]) == (20, 40, 50)
    assert device["busy_us"] + 20 + 40 + 50 == report["window"]["duration_us"] == 200


# -- the verdict: the part of the device's time in the window that is at least half of it ------------------------


def verdict(built):
    return built.verdict.bound


def late(*host, at=1000, launched=990):
    """Work at 0..10 and at `at`; what the host did between decides."""
    return [launch("cudaLaunchKernel", 0, 1, 1), kernel("a", 2, 8, 1), *host,
            launch("cudaLaunchKernel", launched, 5, 2), kernel("b", at, 10, 2)]  # fmt: skip


def test_a_device_that_is_busy_half_of_the_window_is_the_bottleneck(chains):
    assert verdict(chains([op("x", 0, 100), kernel("k", 0, 50), kernel("unlinked", 90, 1, 5)])) == "compute-bound"


@pytest.mark.parametrize(
    ("bound", "host"),
    [
        ("overhead-bound", [op("aten::mm", 10, 985)]),
        ("overhead-bound", [annotation("forward", 10, 985)]),
        ("allocator-bound", [op("aten::mm", 10, 985), call("cudaMalloc", 20, 900)]),
        ("sync-bound", [op("aten::item", 10, 985), call("cudaStreamSynchronize", 20, 900)]),
        ("input-bound", [annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 960)]),
        ("communication-bound", [op("gloo:all_reduce", 10, 960)]),
        ("overhead-bound", [op("c10d::allreduce_", 10, 960)]),  # issuing one is dispatch
        ("mixed", [op("aten::mm", 10, 300), annotation("load_batch", 420, 300), call("cudaMalloc", 720, 265)]),
        ("startup-bound", [op("compile_fx (dynamo_timed)", 10, 960)]),
        ("overhead-bound", []),  # less than a millisecond: cadence, whatever the host did
    ],
)
def test_the_cause_of_most_idle_time_names_the_bound(chains, bound, host):
    assert verdict(chains(late(*host))) == bound


def test_copies_that_no_kernel_overlaps_bind_by_their_own_time(chains):
    """Copy alone [0, 60], kernel [60, 100]: 60 of 100."""
    assert verdict(chains([memcpy("HtoD (Pinned -> Device)", 0, 60), kernel("k", 60, 40)])) == "copy-bound"


def test_a_copy_under_a_kernel_costs_nothing(chains):
    assert verdict(chains([memcpy("HtoD", 0, 60, stream=8), kernel("k", 0, 61)])) == "compute-bound"


def test_collectives_that_no_compute_overlaps_bind_by_their_own_time(chains):
    """all-reduce [0, 80] over compute [0, 30]: 50 exposed of 80."""
    micro = [kernel("ncclDevKernel_AllReduce_Sum", 0, 80, stream=20), kernel("gemm", 0, 30)]
    assert verdict(chains(micro)) == "communication-bound"


def test_time_inside_a_graph_is_the_devices_own(chains):
    """One graph launch, kernels of 10 every 30: 2 gaps of 20 of 70 µs are the device's turnaround in the graph."""
    micro = [call("cudaGraphLaunch", 0, 2, corr=1), *(kernel("k", 5 + 30 * i, 10, 1) for i in range(3))]
    assert verdict(chains(micro)) == "compute-bound"


def test_the_profilers_own_time_is_not_judged(chains):
    """Of the gap [10, 1000] the profiler takes 900: of the 100 µs that are left, the kernel's 80 are most."""
    micro = late(op("aten::mm", 10, 985), overhead(BUFFER, 50, 900))
    micro[-1] = kernel("b", 1000, 100, 2)
    assert verdict(chains(micro)) == "compute-bound"


def test_launches_without_a_record_leave_nothing_to_judge(chains):
    micro = late(op("aten::mm", 10, 985), call("cudaGraphLaunch", 500, 5, corr=77))
    assert verdict(chains(micro)) == "nothing-to-judge"


def test_without_device_work_only_the_hosts_side_is_judged(chains):
    assert verdict(chains([op("aten::mm", 0, 10)])) == "cpu-only"


def test_without_events_there_is_nothing_to_judge(chains):
    assert verdict(chains([])) == "nothing-to-judge"


def test_the_verdict_brings_the_figures_that_decided_it(contract):
    """Window [0, 1010]: busy 8 + 10; gap [10, 1000] = 985 dispatch + 5 latency; lead-in [0, 2]: 1 call, 1 latency."""
    found = contract(late(op("aten::mm", 10, 985)))["verdict"]
    parts = {p["part"]: p["us"] for p in found["parts"]}
    assert (parts["compute"], parts["dispatch"]) == (18, 992)
    assert "992 µs of 1.01 ms (98.2%)" in found["reason"]


def test_work_launched_long_ago_that_did_not_start_is_not_blamed_on_dispatch(chains):
    """L returned at 5 ms, b starts at 100 ms: a launch path takes µs. What it waited for, the trace does not say."""
    micro = [launch("cudaLaunchKernel", 0, 1, 1), kernel("a", 2, 4990, 1),
             launch("cudaLaunchKernel", 4993, 7, 2), kernel("b", 100_000, 10, 2)]  # fmt: skip
    assert verdict(chains(micro)) == "mixed"


def test_a_device_whose_events_were_left_out_is_not_told_as_none(tmp_path):
    """A category that nobody knows may be the device's: the reader says what it left out."""
    events = [op("aten::mm", 0, 10), {**kernel("k", 5, 50), "cat": "quantum_op"}]
    found = build(read(write(tmp_path / "run.json", events), jobs=1)).verdict
    assert found.bound == "nothing-to-judge"
    assert "quantum_op" in found.reason
