"""Which run is recommended, and when none is: only what the runs support."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.compare.report import compare
from analyzer.report.blocks import Table
from analyzer.report.document import Report
from analyzer.report.results import Results
from tests import micro
from tests.recorded import report_of


def run(path: Path, *, host: float, device: float, steps: int = 4, more: Any = (), **header: Any) -> Results:
    """`steps` steps of `host` µs, each with one operator that launches a kernel of `device` µs."""
    events: list[dict[str, Any]] = [*more]
    for i in range(steps):
        t, number = host * i, i + 1
        events += [micro.step(i, t, host), micro.op("aten::mm", t, host)]
        events += [micro.launch("cudaLaunchKernel", t + 1, 2, number)]
        events += [micro.kernel("gemm", max(t + 4, 4 + device * i), device, number)]
    return micro.report_of(path, events, **header).results


def lesson(*runs: Results, names: tuple[str, ...] = ("a", "b")) -> tuple[str, str | None]:
    contract = compare(list(runs), list(names)).contract
    return contract["lesson"], contract["best"]


def test_the_best_pace_is_taken_where_host_and_device_agree(tmp_path: Path) -> None:
    said, best = lesson(run(tmp_path / "a", host=200, device=20), run(tmp_path / "b", host=100, device=10))
    assert best == "b"
    assert said.startswith("take b: 100 µs per step, 2.00× faster than a; the host sets its pace")


def test_no_run_is_taken_by_profiled_host_times_where_the_device_says_otherwise(tmp_path: Path) -> None:
    """The host is 1.2 times as fast in b, the device twice as fast in a."""
    said, best = lesson(run(tmp_path / "a", host=120, device=20), run(tmp_path / "b", host=100, device=40))
    assert best is None
    assert "no run to take: as profiled b is 1.20× faster by its host, a 2.00× by its device" in said
    assert "time steps of both without the profiler" in said


def test_a_gap_that_no_profiler_makes_is_believed(tmp_path: Path) -> None:
    """Three times as fast by the host: the profiler stretches 2.5 times at most."""
    said, best = lesson(run(tmp_path / "a", host=300, device=20), run(tmp_path / "b", host=100, device=40))
    assert best == "b"
    assert said.startswith("take b")


def test_stacks_in_one_run_only_settle_nothing(tmp_path: Path) -> None:
    stacked = run(tmp_path / "a", host=200, device=20, more=[micro.frame("train.py(1): step", 0, 800)])
    said, best = lesson(stacked, run(tmp_path / "b", host=100, device=20))
    assert best is None
    assert "Python stacks were on in a only" in said
    # Where the device sets the pace of both, stacks change nothing.
    busy = run(tmp_path / "c", host=100, device=200, more=[micro.frame("train.py(1): step", 0, 400)])
    assert lesson(busy, run(tmp_path / "d", host=100, device=120))[1] == "b"


def rank(path: Path, number: int, world: int, collective: float) -> Results:
    """Four steps of 100 µs, each with one collective."""
    info = {"distributedInfo": {"backend": "nccl", "rank": number, "world_size": world}}
    events: list[dict[str, Any]] = []
    for i in range(4):
        t = 100 * i
        events += [micro.step(i, t, 100), micro.launch("cudaLaunchKernel", t + 1, 2, i + 1)]
        events += [micro.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", t + 5, collective, i + 1)]
    return micro.report_of(path, events, **info).results


def test_ranks_of_one_job_are_no_choice(tmp_path: Path) -> None:
    said, best = lesson(rank(tmp_path / "0", 0, 2, 80), rank(tmp_path / "1", 1, 2, 10))
    assert best is None
    assert said.startswith("ranks 0 and 1 of 2 of one job")
    assert "rank 0 spends 80.0 µs per step in collectives, rank 1 10.0 µs: rank 1 is the one that is waited for" in said
    # The same rank twice is a choice, and so are jobs of one process.
    assert "one job" not in lesson(rank(tmp_path / "2", 0, 2, 80), rank(tmp_path / "3", 0, 2, 10))[0]
    assert "one job" not in lesson(rank(tmp_path / "4", 0, 1, 80), rank(tmp_path / "5", 1, 1, 10))[0]


def test_ranks_whose_collectives_take_alike_blame_nobody(tmp_path: Path) -> None:
    said, _ = lesson(rank(tmp_path / "0", 0, 2, 80), rank(tmp_path / "1", 1, 2, 81))
    assert "take alike, 81.0 µs per step" in said
    assert "waited for" not in said


def test_a_difference_is_the_sum_of_its_causes(tmp_path: Path) -> None:
    """A step of 200 µs, 20 of them compute, against one of 100 with 15: -100 = -95 dispatch, and 5 in the noise."""
    said, _ = lesson(run(tmp_path / "a", host=200, device=20), run(tmp_path / "b", host=100, device=15))
    assert "-100 µs in b: dispatch -95.0 µs, (compute -5.00 µs)" in said
    contract = compare(
        [run(tmp_path / "c", host=200, device=20), run(tmp_path / "d", host=100, device=15)], ["a", "b"]
    ).contract
    for one in contract["runs"]:
        assert sum(one["parts_us"].values()) == pytest.approx(one["window_us"], abs=0.01)


def test_work_of_two_steps_at_once_fills_the_device_once(tmp_path: Path) -> None:
    """Each step launches 80 µs of compute and a copy of 60 on another stream, which runs beside the step before it.

    The work of a step spans 140 µs of device time; the device gives a step every 80.
    """
    events: list[dict[str, Any]] = []
    for i in range(4):
        t = 10 * i
        events += [micro.step(i, t, 10), micro.op("aten::copy_", t, 4), micro.op("aten::mm", t + 4, 4)]
        events += [
            micro.launch("cudaMemcpyAsync", t + 1, 1, 100 + i),
            micro.launch("cudaLaunchKernel", t + 5, 1, i + 1),
        ]
        before = 80 * (i - 1) + 10 if i else 5
        events += [micro.memcpy("HtoD (Pinned -> Device)", before, 60 if i else 5, 100 + i, stream=9, size=1 << 20)]
        events += [micro.kernel("gemm", 10 + 80 * i, 80, i + 1)]
    compared = compare([micro.report_of(tmp_path / "a", events).results] * 2, ["a", "b"]).contract["runs"][0]
    assert compared["device_us"] == 140
    assert compared["pace_us"] == pytest.approx((5 + 4 * 80) / 4)


def tables(compared: Report) -> dict[str, Table]:
    return {block.title: block for s in compared.sections for block in s.blocks if isinstance(block, Table)}


def test_where_kernels_have_other_names_their_kinds_are_compared(tmp_path: Path) -> None:
    def named(path: Path, kernel: str) -> Results:
        events = [micro.step(0, 0, 100), micro.launch("cudaLaunchKernel", 1, 2, 1), micro.kernel(kernel, 5, 50, 1)]
        return micro.report_of(path, events).results

    nvidia, amd = (
        named(tmp_path / "a", "nvjet_sm90_tst_64x8_64x16_4x2_h_bz_TNT"),
        named(tmp_path / "b", "Cijk_Alik_Bljk_BBS_BH"),
    )
    shown = tables(compare([nvidia, amd], ["a", "b"]))["Device time by kind"]
    assert shown.shown(9)[0][:3] == ("gemm", 50_000, 50_000)
    assert "Device time by kind" not in tables(compare([nvidia, nvidia], ["a", "b"]))


def test_unprofiled_steps_overrule_profiled_times() -> None:
    """Stamped by the recorder: profiled, the run with stacks is a third slower; unprofiled they are alike."""
    said, best = lesson(report_of("train_eager").results, report_of("train_eager_full").results)
    assert best is None
    assert said.startswith("all alike in pace")
    assert "as profiled" in said
