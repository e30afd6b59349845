"""Graph capture: launches between BeginCapture and EndCapture run nothing, and none of them is lost."""

from __future__ import annotations

import polars as pl

from analyzer.index.activity import Cause
from tests.micro import call, kernel, launch, op

FIRST = [launch("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 5, 1)]
LAST = [launch("cudaLaunchKernel", 990, 5, 2), kernel("b", 1000, 10, 2)]


def captured(at: float, count: int = 3, **where):
    """Operators of 10 µs, each with a launch that leaves no record."""
    return [e for i in range(count) for e in (op("aten::mm", at + 20 * i, 10, **where),
            launch("cudaLaunchKernel", at + 20 * i + 2, 4, 100 + i + int(at), **where))]  # fmt: skip


def causes(built):
    totals = built.idle.gap_pieces.group_by("cause").agg(pl.col("ns").sum())
    return {Cause(c).key: ns / 1000 for c, ns in totals.iter_rows()}


def test_what_lies_between_begin_and_the_end_of_instantiation_is_graph_capture(chains):
    """[100, 104] begin, three launches, [200, 210] end, [215, 300] instantiate: of the gap [10, 1000] 200 µs."""
    micro = [
        *FIRST, call("cudaStreamBeginCapture", 100, 4), *captured(110), call("cudaStreamEndCapture", 200, 10),
        call("cudaGraphInstantiate", 215, 85), *LAST,
    ]  # fmt: skip
    built = chains(micro)
    assert causes(built) == {"graph_capture": 200, "no_host_event": 780, "dispatch": 5, "launch_latency": 5}
    found = built.recording
    assert (found.captures, found.captured_launches, found.lost_launches) == (1, 3, 0)


def test_an_instantiation_after_another_launch_is_no_part_of_it(chains):
    micro = [
        *FIRST, call("cudaStreamBeginCapture", 100, 4), *captured(110), call("cudaStreamEndCapture", 200, 10),
        launch("cudaLaunchKernel", 215, 5, 3), kernel("c", 225, 1, 3), call("cudaGraphInstantiate", 230, 70), *LAST,
    ]  # fmt: skip
    assert causes(chains(micro))["graph_capture"] == 110


def test_a_launch_without_a_record_outside_a_capture_is_lost(chains):
    micro = [*FIRST, *captured(110, 1), *LAST]
    assert (chains(micro).recording.lost_launches, chains(micro).recording.captures) == (1, 0)
    assert causes(chains(micro)) == {"not_recorded": 990}


def test_what_autograds_thread_launches_during_a_capture_is_captured(chains):
    micro = [
        *FIRST, call("cudaStreamBeginCapture", 100, 4), *captured(110, 2, tid=2),
        call("cudaStreamEndCapture", 200, 10), *LAST,
    ]  # fmt: skip
    found = chains(micro).recording
    assert (found.captured_launches, found.lost_launches) == (2, 0)


def test_a_capture_that_the_recording_cut_reaches_to_what_was_recorded(chains):
    """Begun before the recording: from the last launch with a record. Never ended: to the next one."""
    began = [*FIRST, *captured(110), call("cudaStreamEndCapture", 200, 10), *LAST]
    assert chains(began).launching.captures.start.tolist() == [2_000]
    assert chains(began).recording.captured_launches == 3
    open_ = [*FIRST, call("cudaStreamBeginCapture", 100, 4), *captured(110), *LAST]
    assert chains(open_).launching.captures.close.tolist() == [990_000]
    assert chains(open_).recording.captured_launches == 3


def test_replays_are_counted_and_those_without_their_work_told_apart(chains):
    """Four replays of three kernels: the second has two of them, the third none."""
    micro = [op("x", 0, 1)]
    for i, kernels in enumerate((3, 2, 0, 3)):
        micro.append(call("cudaGraphLaunch", 100 * i, 5, corr=i + 1))
        micro += [kernel(f"k{j}", 100 * i + 10 + 10 * j, 5, i + 1) for j in range(kernels)]
    found = chains(micro).recording
    assert (found.replays, found.replays_incomplete, found.lost_launches) == (4, 2, 1)


def test_a_trace_of_a_capture_alone_has_nothing_to_judge(chains):
    micro = [call("cudaStreamBeginCapture", 0, 4), *captured(10), call("cudaStreamEndCapture", 100, 10)]
    assert chains(micro).verdict.bound == "nothing-to-judge"
