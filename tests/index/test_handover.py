"""Hand-over: where the launching thread did nothing, the time belongs to whom it waited for."""

from __future__ import annotations

import polars as pl
import pytest

from analyzer.index.activity import Cause
from tests.micro import annotation, call, frame, kernel, launch, op, step

ENGINE = "autograd::engine::evaluate_function: MmBackward0"
FIRST = [step(1, 0, 400), launch("cudaLaunchKernel", 1, 2, 1), kernel("a", 5, 5, 1)]


def backward(at: float = 90, tid: int = 2):
    """The engine's thread launches [at, at + 5] inside its function; the kernel begins 5 µs later."""
    return [op(ENGINE, at - 5, 20, tid=tid), launch("cudaLaunchKernel", at, 5, 2, tid=tid), kernel("b", at + 10, 10, 2)]


@pytest.fixture
def owners(chains):
    def of(*events):
        built = chains([*FIRST, *events])
        total = built.idle.gap_pieces.group_by("cause", "owner").agg(pl.col("ns").sum())
        names = built.trace.text(total["owner"])
        return {(Cause(c).key, n): ns / 1000 for (c, _, ns), n in zip(total.iter_rows(), names, strict=True)}

    return of


LAST = {("dispatch", ENGINE): 10, ("launch_latency", "cudaLaunchKernel"): 5}


def test_before_the_engine_begins_the_time_is_its_callers(owners):
    """Gap [10, 100]; the engine begins at 85. Until then the main thread is in `log` [20, 70], else in the step."""
    assert owners(*backward(), frame("train.py(3): log", 20, 50)) == {
        ("python", "train.py(3): log"): 50, ("python", "ProfilerStep#1"): 25, **LAST,
    }  # fmt: skip


def test_an_operator_of_the_caller_is_its_own(owners):
    assert owners(*backward(), op("aten::item", 20, 50)) == {
        ("dispatch", "aten::item"): 50, ("python", "ProfilerStep#1"): 25, **LAST,
    }  # fmt: skip


def test_while_the_caller_waits_for_the_engine_the_engine_says(owners):
    """The main thread launches at 190; until 150 the engine works for it, though `backward` is open to 180."""
    micro = [
        annotation("backward", 12, 168), op(ENGINE, 15, 135, tid=2),
        launch("cudaLaunchKernel", 190, 5, 2), kernel("b", 200, 10, 2),
    ]  # fmt: skip
    assert owners(*micro) == {
        ("dispatch", ENGINE): 135, ("python", "backward"): 33, ("python", "ProfilerStep#1"): 12,
        ("dispatch", "cudaLaunchKernel"): 5, ("launch_latency", "cudaLaunchKernel"): 5,
    }  # fmt: skip


def test_a_frame_that_waits_for_backward_says_nothing_itself(owners):
    micro = [
        frame("train.py(9): step", 10, 170), frame("<built-in method run_backward of X>", 12, 160),
        op(ENGINE, 15, 135, tid=2), launch("cudaLaunchKernel", 190, 5, 2), kernel("b", 200, 10, 2),
    ]  # fmt: skip
    assert owners(*micro)["dispatch", ENGINE] == 135


def test_what_the_caller_does_itself_meanwhile_is_not_the_engines(owners):
    """It is in a frame of its own: asynchronous work of another thread does not hold it up."""
    micro = [frame("train.py(9): log", 10, 170), op(ENGINE, 15, 135, tid=2),
             launch("cudaLaunchKernel", 190, 5, 2), kernel("b", 200, 10, 2)]  # fmt: skip
    assert ("dispatch", ENGINE) not in owners(*micro)


def test_where_no_thread_says_nothing_was_recorded(owners):
    """The step ends before the gap does."""
    micro = list(backward(at=490))
    assert owners(*micro)["no_host_event", None] == 85  # 400..485


def test_other_threads_than_autograds_do_not_answer(owners):
    micro = [op("aten::mm", 15, 100, tid=3), launch("cudaLaunchKernel", 190, 5, 2), kernel("b", 200, 10, 2)]
    assert ("dispatch", "aten::mm") not in owners(*micro)


def test_moving_work_to_the_engines_thread_leaves_the_causes_alone(chains):
    """The same times on one thread and on two, the hand-over recorded: the causes are alike."""

    def causes(tid: int):
        micro = [
            *FIRST, frame("train.py(3): log", 20, 30), op(ENGINE, 85, 60, tid=tid),
            call("cudaMalloc", 95, 20, tid=tid), launch("cudaLaunchKernel", 130, 5, 2, tid=tid),
            kernel("b", 140, 10, 2),
        ]  # fmt: skip
        total = chains(micro).idle.gap_pieces.group_by("cause").agg(pl.col("ns").sum())
        return dict(total.iter_rows())

    assert causes(1) == causes(2)
