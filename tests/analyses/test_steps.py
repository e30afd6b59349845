"""Profiler steps: the host's time, and the device work launched in each."""

from __future__ import annotations

import pytest

from analyzer.analyses.steps import SHOWN, analyze
from tests.micro import kernel, launch, op, step


@pytest.fixture
def steps(chains):
    return lambda events: analyze(chains(events))


def run_of(durations):
    """Steps one after another, each with one launch and a kernel of 5 µs that starts 20 µs into it."""
    out, at = [], 0
    for i, dur in enumerate(durations):
        out += [step(i, at, dur), launch("cudaLaunchKernel", at + 5, 5, i + 1), kernel("k", at + 20, 5, i + 1)]
        at += dur
    return out


def test_device_work_counts_in_the_step_that_launched_it(steps):
    """
    Step 1 [0, 100] launches two kernels: [50, 130] runs on into step 2, and [120, 140] beside it: union 90.
    Step 2 [100, 200] launches nothing.
    """
    micro = [
        step(1, 0, 100), launch("cudaLaunchKernel", 10, 5, 1), launch("cudaLaunchKernel", 20, 5, 2),
        step(2, 100, 100), kernel("a", 50, 80, 1), kernel("b", 120, 20, 2, stream=8),
    ]  # fmt: skip
    one, two = steps(micro).steps
    assert (one.name, one.cpu_ns, one.device_busy_ns, one.device_events, one.launches) == (
        "ProfilerStep#1", 100_000, 90_000, 2, 2,
    )  # fmt: skip
    assert (two.cpu_ns, two.device_busy_ns, two.device_events, two.launches) == (100_000, 0, 0, 0)


def test_a_few_steps_are_shown_in_time_order_with_their_spread(steps):
    section = steps(run_of([100, 300, 200])).section()
    (table,) = section.blocks
    assert [row[1] for row in table.shown(10)] == [100_000, 300_000, 200_000]
    assert table.note == "CPU: median 200 µs, min 100 µs, max 300 µs over 3 steps"
    assert not section.detail


def test_of_many_steps_the_slowest_come_first_and_only_when_asked_for(steps):
    """The note speaks of all, however many are shown."""
    section = steps(run_of([100] * SHOWN + [300])).section()
    (table,) = section.blocks
    assert table.shown(2) == (("ProfilerStep#10", 300_000, 5_000, 1, 1), ("ProfilerStep#0", 100_000, 5_000, 1, 1))
    assert table.note == "CPU: median 100 µs, min 100 µs, max 300 µs over 11 steps"
    assert section.detail


def test_a_trace_without_steps_has_no_section(steps):
    assert steps([op("x", 0, 10)]).section() is None
