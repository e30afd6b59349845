"""Earlier work: what the device works through that was launched before the window began."""

from __future__ import annotations

import polars as pl

from analyzer.index.activity import Cause
from analyzer.index.parts import Part
from tests.micro import call, kernel, launch, op, step


def parts(built):
    return {part.key: ns / 1000 for part, ns in built.account.parts.items() if ns}


def causes(pieces):
    return {Cause(c).key: ns / 1000 for c, ns in pieces.group_by("cause").agg(pl.col("ns").sum()).iter_rows()}


RUN = [launch("cudaLaunchKernel", 110, 5, 1), kernel("run", 200, 50, 1)]


def test_work_of_the_warm_up_that_ends_inside_the_first_step_is_earlier_work(chains):
    """Step [100, 300]; the warm-up's kernel [50, 180] was launched at 20. In the window: 80 of it, the step's 50."""
    micro = [step(1, 100, 200), launch("cudaLaunchKernel", 20, 5, 9), kernel("warm", 50, 130, 9), op("x", 0, 1), *RUN]
    built = chains(micro)
    assert parts(built) == {"compute": 50, "earlier_work": 80, "device": 20, "dispatch": 50}
    assert not built.recording.began_midflight


def test_unlinked_work_before_its_streams_first_launched_work_is_earlier_work(chains):
    """Two kernels [10, 30] and [60, 90] from before the recording: the gap between them ends with one of them."""
    micro = [op("x", 0, 130), kernel("a", 10, 20), kernel("b", 60, 30), *RUN]
    built = chains(micro)
    assert built.recording.began_midflight
    assert built.recording.earlier_work_ns == 90_000  # 10 of lead-in, 20, 30 of gap, 30
    assert causes(built.idle.gap_pieces) == {"earlier_work": 30, "dispatch": 25, "launch_latency": 85}


def test_unlinked_work_after_a_streams_first_launched_work_is_not(chains):
    built = chains([op("x", 0, 130), *RUN, kernel("later", 300, 10)])
    assert built.recording.earlier_work_ns == 0
    assert causes(built.idle.gap_pieces) == {"unlinked": 50}


def test_where_nothing_is_linked_nothing_is_earlier(chains):
    assert chains([op("x", 0, 130), kernel("a", 10, 20), kernel("b", 60, 30)]).recording.earlier_work_ns == 0


def test_a_first_work_that_starts_a_millisecond_after_its_call_returned_waited_for_something_unrecorded(chains):
    """L returned at 115; the device starts at 5000. 115 µs were the host's, 4885 belong to earlier work."""
    built = chains([op("x", 0, 130), launch("cudaLaunchKernel", 110, 5, 1), kernel("run", 5000, 50, 1)])
    assert causes(built.idle.edge_pieces) == {"dispatch": 115, "earlier_work": 4885}
    assert built.recording.began_midflight
    assert built.verdict.bound == "nothing-to-judge"  # 165 µs are left


def test_up_to_a_millisecond_is_launch_latency(chains):
    built = chains([op("x", 0, 130), launch("cudaLaunchKernel", 110, 5, 1), kernel("run", 1115, 50, 1)])
    assert causes(built.idle.edge_pieces) == {"dispatch": 115, "launch_latency": 1000}


def test_a_stray_first_kernel_does_not_hide_it(chains):
    """A kernel of 5 µs at 90, then nothing until 9000, though launched at 110."""
    stray = [launch("cudaLaunchKernel", 80, 5, 7), kernel("stray", 90, 5, 7, stream=9)]
    built = chains([op("x", 0, 130), *stray, launch("cudaLaunchKernel", 110, 5, 1), kernel("run", 9000, 50, 1)])
    assert built.earlier_work.unrecorded.rows() == [(0, 115_000, 9_000_000)]


def test_much_work_before_a_late_start_is_no_stray(chains):
    """2 ms of work, then 5 ms of nothing: a stream waits for something, and the trace does not say for what."""
    first = [launch("cudaLaunchKernel", 80, 5, 7), kernel("real", 90, 2000, 7, stream=9)]
    built = chains([op("x", 0, 130), *first, launch("cudaLaunchKernel", 110, 5, 1), kernel("run", 7090, 50, 1)])
    assert built.earlier_work.unrecorded.height == 0
    assert built.account.parts[Part.UNKNOWN] == 4_000_000  # a dependency of 5 ms: one of them is the device's own


def test_a_wait_before_the_first_recorded_work_waits_for_something_unrecorded(chains):
    """The host waits [10, 4000]; only then does it launch. Its own 120 µs later are dispatch."""
    micro = [
        op("x", 0, 5), call("cudaStreamSynchronize", 10, 3990), op("aten::mm", 4000, 125),
        launch("cudaLaunchKernel", 4110, 5, 1), kernel("run", 4120, 50, 1),
    ]  # fmt: skip
    found = causes(chains(micro).idle.edge_pieces)
    assert (found["earlier_work"], found["dispatch"]) == (3990, 5 + 115)


def test_a_short_wait_is_a_wait(chains):
    micro = [op("x", 0, 5), call("cudaStreamSynchronize", 10, 900), launch("cudaLaunchKernel", 1110, 5, 1),
             kernel("run", 1120, 50, 1)]  # fmt: skip
    assert causes(chains(micro).idle.edge_pieces)["blocking_sync"] == 900


def test_earlier_work_is_never_the_bound(chains):
    """900 µs of earlier work, 1,200 of the run's own after it: the run is judged without it."""
    own = [launch("cudaLaunchKernel", 10, 5, 1), kernel("run", 900, 1200, 1)]
    built = chains([op("x", 0, 20), kernel("before", 0, 900), *own])
    assert built.verdict.bound == "compute-bound"
    assert "1.20 ms of 1.20 ms (100%)" in built.verdict.reason
