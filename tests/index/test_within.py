"""Device work that belongs to an annotation or step: launched inside it, or for it by autograd's threads."""

from __future__ import annotations

import pytest

from tests.micro import annotation, call, kernel, launch, memcpy, memset, op, step


def by_name(rows):
    return {row["name"]: row for row in rows}


def test_work_belongs_to_where_it_was_launched_not_to_where_it_ran(contract):
    """Three steps of 100 µs, each launches 20 µs of work 10 µs before its end, which runs in the next one."""
    micro = []
    for i in range(3):
        micro += [step(3 + i, 100 * i, 100), launch("cudaLaunchKernel", 100 * i + 90, 5, 1 + i),
                  kernel("k", 100 * i + 105, 20, 1 + i)]  # fmt: skip
    steps = contract(micro)["steps"]
    assert [(s["name"], s["cpu_us"], s["device_busy_us"], s["device_events"], s["launches"]) for s in steps] == [
        ("ProfilerStep#3", 100, 20, 1, 1), ("ProfilerStep#4", 100, 20, 1, 1), ("ProfilerStep#5", 100, 20, 1, 1),
    ]  # fmt: skip


def test_a_steps_device_time_is_a_union(contract):
    """[10, 40] and [30, 60] on two streams: 50, not 60."""
    micro = [step(1, 0, 100), launch("cudaLaunchKernel", 1, 1, 1), launch("cudaLaunchKernel", 3, 1, 2),
             kernel("a", 10, 30, 1), kernel("b", 30, 30, 2, stream=8)]  # fmt: skip
    assert contract(micro)["steps"][0]["device_busy_us"] == 50


def test_a_step_counts_the_launches_of_all_threads(contract):
    micro = [step(1, 0, 100), launch("cudaLaunchKernel", 1, 1, 1), launch("cudaLaunchKernel", 3, 1, 2, tid=2),
             kernel("a", 10, 10, 1), kernel("b", 30, 10, 2)]  # fmt: skip
    (found,) = contract(micro)["steps"]
    assert (found["device_events"], found["launches"], found["device_busy_us"]) == (2, 2, 20)


def test_steps_of_two_processes_in_one_file_have_each_their_own_work(contract):
    """Ranks 1 and 2 step at the same time, and launch 10 and 25 µs of work."""
    micro = []
    for pid, device, dur in ((1, 0, 10), (2, 1, 25)):
        micro += [step(1, pid - 1, 100, pid=pid), launch("cudaLaunchKernel", 10, 1, pid, pid=pid),
                  kernel("k", 20, dur, pid, device=device)]  # fmt: skip
    found = [(s["device_events"], s["launches"], s["device_busy_us"]) for s in contract(micro)["steps"]]
    assert found == [(1, 1, 10), (1, 1, 25)]


def test_an_annotation_has_medians_per_call(contract):
    """
    Calls of 100, 300, 200 µs with 1, 3, 2 kernels of 10 µs: medians 200 µs, 20 µs, 2 events, 2 launches.
    """
    micro, corr, at = [], 0, 0
    for dur, n in ((100, 1), (300, 3), (200, 2)):
        micro.append(annotation("forward", at, dur))
        for i in range(n):
            corr += 1
            micro += [launch("cudaLaunchKernel", at + 20 * i, 5, corr), kernel("k", at + 20 * i + 6, 10, corr)]
        at += 1000
    (row,) = contract(micro)["annotations"]
    assert (row["name"], row["calls"], row["cpu_us"], row["cpu_us_median"], row["cpu_us_max"]) == (
        "forward", 3, 600, 200, 300,
    )  # fmt: skip
    assert (row["device_us_median"], row["device_us_max"], row["device_events_median"], row["launches_median"]) == (
        20, 30, 2, 2,
    )  # fmt: skip


def test_kernels_copies_and_fills_are_told_apart(contract):
    micro = [annotation("forward", 0, 100)]
    for corr, work in enumerate((kernel, kernel, memcpy), start=1):
        micro += [launch("cudaLaunchKernel", 10 * corr, 5, corr), work("DtoD", 200 + 20 * corr, 10, corr)]
    micro += [call("cudaMemsetAsync", 50, 5, corr=9), memset(400, 2, 9)]
    (row,) = contract(micro)["annotations"]
    assert (row["kernels_median"], row["copies_median"], row["memsets_median"]) == (2, 1, 1)
    assert row["device_events_median"] == 4


def test_one_graph_launch_is_one_launch_of_many_events(contract):
    micro = [annotation("decode", 0, 100), call("cudaGraphLaunch", 10, 5, corr=1),
             *(kernel("k", 20 * i, 10, 1) for i in range(1, 5))]  # fmt: skip
    (row,) = contract(micro)["annotations"]
    assert (row["launches_median"], row["device_events_median"], row["device_us_median"]) == (1, 4, 40)


def test_an_annotation_inside_itself_is_one_call(contract):
    micro = [annotation("f", 0, 100), annotation("f", 10, 50), launch("cudaLaunchKernel", 20, 5, 1),
             kernel("k", 30, 10, 1)]  # fmt: skip
    (row,) = contract(micro)["annotations"]
    assert (row["calls"], row["cpu_us"], row["device_us_median"]) == (1, 100, 10)


def test_the_devices_copy_of_an_annotation_is_not_a_call(contract):
    micro = [annotation("f", 0, 100), {**annotation("f", 20, 50), "cat": "gpu_user_annotation", "pid": 0, "tid": 7}]
    (row,) = contract(micro)["annotations"]
    assert row["calls"] == 1


BACKWARD = "autograd::engine::evaluate_function: MmBackward0"


def test_what_autograds_thread_launches_belongs_to_the_annotation_that_waits(contract):
    """Thread 2 runs the backward pass while thread 1 waits inside `backward`; `forward` was over before."""
    micro = [
        annotation("forward", 0, 50), annotation("backward", 100, 200),
        op(BACKWARD, 120, 100, tid=2), op("aten::mm", 130, 50, tid=2),
        launch("cudaLaunchKernel", 140, 5, 1, tid=2), kernel("k", 150, 30, 1),
    ]  # fmt: skip
    rows = by_name(contract(micro)["annotations"])
    assert rows["backward"]["device_us_median"] == 30
    assert rows["forward"]["device_us_median"] == 0


def test_an_annotation_on_autograds_own_thread_counts_its_launches_once(contract):
    """A hook, inside a backward function on thread 2."""
    micro = [
        op(BACKWARD, 0, 100, tid=2), annotation("hook", 10, 60, tid=2),
        launch("cudaLaunchKernel", 40, 5, 1, tid=2), kernel("k", 150, 30, 1),
    ]  # fmt: skip
    (row,) = contract(micro)["annotations"]
    assert (row["device_us_median"], row["launches_median"]) == (30, 1)


def test_what_another_thread_launches_for_itself_stays_its_own(contract):
    """Thread 2 runs operators of its own, no autograd: `wait` on thread 1 launched nothing."""
    micro = [annotation("wait", 0, 200), op("aten::mm", 20, 50, tid=2),
             launch("cudaLaunchKernel", 40, 5, 1, tid=2), kernel("k", 50, 30, 1)]  # fmt: skip
    (row,) = contract(micro)["annotations"]
    assert (row["device_us_median"], row["launches_median"]) == (0, 0)


def test_autograd_of_another_process_does_not_count(contract):
    """Two ranks in one file: rank 2's backward launches nothing for rank 1's annotation."""
    micro = [
        annotation("backward", 0, 200, pid=1), annotation("backward", 0, 200, pid=2),
        op(BACKWARD, 20, 100, tid=2, pid=2), launch("cudaLaunchKernel", 40, 5, 1, tid=2, pid=2), kernel("k", 50, 30, 1),
    ]  # fmt: skip
    (row,) = contract(micro)["annotations"]
    # One call with 30 µs and one with none: median 15, of 2 calls.
    assert (row["calls"], row["device_us_median"], row["device_us_max"]) == (2, 15, 30)


@pytest.mark.parametrize(
    ("host", "bound"),
    [
        ([op("aten::mm", 1010, 985)], "overhead-bound"),
        ([annotation("load_batch", 1010, 960)], "input-bound"),
    ],
)
def test_an_annotations_verdict_is_that_of_its_own_work_and_the_gaps_that_its_launches_ended(contract, host, bound):
    """`busy` launches 1000 µs of work without a pause; `slow` waits on the host."""
    micro = [
        annotation("busy", 0, 20), launch("cudaLaunchKernel", 5, 5, 1), kernel("long", 11, 1000, 1),
        annotation("slow", 1005, 1000), *host, launch("cudaLaunchKernel", 1990, 5, 2), kernel("short", 2000, 10, 2),
    ]  # fmt: skip
    rows = by_name(contract(micro)["annotations"])
    assert rows["busy"]["verdict"] == "compute-bound"
    assert rows["slow"]["verdict"] == bound


def test_an_annotation_without_device_work_has_no_verdict(contract):
    rows = by_name(contract([annotation("idle", 0, 20), kernel("k", 5, 5)])["annotations"])
    assert rows["idle"]["verdict"] is None
