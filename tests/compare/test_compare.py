"""Comparisons: the unit of work, fair division, the rule of what counts, the lesson."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer import pipeline
from analyzer.compare.changes import beyond, changes
from analyzer.compare.report import compare
from analyzer.compare.runs import Item, figures, unit_of
from analyzer.sources.kineto.read import read

FIXTURES = Path(__file__).parents[2] / "fixtures"


def contract(name: str) -> Any:
    return pipeline.run(read(str(FIXTURES / f"{name}.json.gz"))).contract


def trace(path: Path, steps: int, kernels: dict[str, float]) -> Any:
    """A run of `steps` steps of 100 µs that each launch the kernels: name -> duration in µs."""
    events: list[dict[str, Any]] = []
    number = 0
    for step in range(steps):
        start = 1000 + 100 * step
        events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{step}",
                "pid": 1,
                "tid": 1,
                "ts": start,
                "dur": 100,
            }
        )
        for place, (name, duration) in enumerate(kernels.items()):
            number += 1
            at = start + 10 + 20 * place
            args = {"correlation": number}
            call = {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "pid": 1,
                "tid": 1,
                "ts": at,
                "dur": 4,
            }
            work = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 5, "dur": duration}
            events += [call | {"args": args}, work | {"args": args | {"device": 0, "stream": 7}}]
    path.write_text(json.dumps({"traceEvents": events}))
    return pipeline.run(read(str(path))).contract


def test_unequal_step_counts_compare_per_step(tmp_path: Path) -> None:
    """2 steps of gemm 10 + relu 5 against 3 steps of gemm 10 + relu 4 + cast 1: 15 µs a step in both."""
    base = trace(tmp_path / "base.json", 2, {"gemm": 10, "relu": 5})
    test = trace(tmp_path / "test.json", 3, {"gemm": 10, "relu": 4, "cast": 1})
    report = compare([base, test], ["base", "test"]).contract

    assert report["unit"] == {"kind": "step", "name": None}
    assert [r["units"] for r in report["runs"]] == [2, 3]
    assert [r["device_us"] for r in report["runs"]] == [15.0, 15.0]
    rows = {k["name"]: k for k in report["differences"][0]["kernels"]}
    assert (rows["gemm"]["status"], rows["gemm"]["us_per_unit"]) == ("alike", [10.0, 10.0])
    assert (rows["relu"]["status"], rows["relu"]["difference_us"], rows["relu"]["ratio"]) == ("changed", -1.0, 0.8)
    assert (rows["cast"]["status"], rows["cast"]["calls_per_unit"]) == ("added", [0.0, 1.0])


def test_the_unit_is_an_annotation_that_makes_up_most_of_every_run() -> None:
    eager, compiled = contract("matmul_add_64_warm_eager_20"), contract("matmul_add_64_warm_default_20")
    assert unit_of([eager, compiled]).name == "matmul_add"
    # Nothing in common but the steps.
    assert unit_of([eager, contract("train_eager")]).kind == "step"
    assert unit_of([eager, contract("cold_process")]).kind in ("trace", "annotation")


@pytest.mark.parametrize(
    ("before", "after", "spread", "counts"),
    [
        (100.0, 150.0, 10.0, True),
        (100.0, 150.0, 60.0, False),  # within the spread of the calls
        (100.0, 101.0, 0.0, False),  # under 2%: clocks do that
        (100.0, 103.0, 0.0, True),
        (0.0, 5.0, 0.0, True),
    ],
)
def test_a_change_counts_beyond_the_spread_and_two_per_cent(
    before: float, after: float, spread: float, counts: bool
) -> None:
    assert beyond(before, after, spread) is counts


def test_changes_rank_by_difference_and_say_what_came_and_went() -> None:
    def item(name: str, total: float, calls: float = 1.0) -> Item:
        return Item(name, "operator", calls, total, total, 0.0)

    rows = changes(
        {"mm": item("mm", 30.0), "add": item("add", 10.0), "view": item("view", 2.0, 4.0)},
        {"mm": item("mm", 30.0), "addmm": item("addmm", 90.0), "view": item("view", 2.0, 5.0)},
    )
    assert [(c.name, c.status, c.difference_ns) for c in rows] == [
        ("addmm", "added", 90.0),
        ("add", "removed", -10.0),
        ("mm", "alike", 0.0),
        ("view", "changed", 0.0),  # the same time, but one call more a unit
    ]


def test_pace_rests_on_unprofiled_steps_where_all_runs_say() -> None:
    """The profiler stretches an eager step 2.5 times and a compiled one 1.2 times: profiled times mislead."""
    names = ("matmul_add_64_warm_eager_20", "matmul_add_64_warm_default_20")
    contracts = [contract(name) for name in names]
    report = compare(contracts, ["eager", "default"]).contract
    for run, source in zip(report["runs"], contracts, strict=True):
        assert run["pace_us"] == pytest.approx(source["capture"]["unprofiled_step_us"])
    assert report["best"] == "eager"
    assert "addmm-bias-copy" in report["differences"][0]["findings_came"]


def test_a_tax_that_the_device_hides_is_said_to_be_hidden() -> None:
    contracts = [contract("matmul_add_4096_warm_eager_20"), contract("matmul_add_4096_warm_default_20")]
    report = compare(contracts, ["eager", "default"]).contract
    assert report["best"] is None
    assert "alike in pace" in report["lesson"]


def test_six_ways_to_attend_in_one_table() -> None:
    """Kernels and copies per forward as counted by hand in the traces: 6, 5, 20, 1, 1, 1."""
    names = ("naive", "inplace", "sdpa_math", "sdpa_efficient", "sdpa_flash", "sdpa_cudnn")
    report = compare([contract(f"attention_{n}") for n in names], names)
    runs = report.contract["runs"]
    assert [r["kernels_and_copies"] for r in runs] == [6, 5, 20, 1, 1, 1]
    assert [r["copies"] for r in runs] == [1, 0, 0, 0, 0, 0]
    assert [r["attention"] for r in runs] == [["unfused"], ["unfused"], ["math"], ["efficient"], ["flash"], ["cudnn"]]
    assert report.contract["best"] == "sdpa_cudnn"
    assert report.sections[0].tables[0].rows[5][0] == "★ sdpa_cudnn"


def test_a_saved_report_compares_like_its_trace(tmp_path: Path) -> None:
    path = FIXTURES / "decode_eager.json.gz"
    fresh = pipeline.contract_of(str(path))
    saved = tmp_path / "report.json"
    saved.write_text(json.dumps(fresh))
    again = pipeline.contract_of(str(saved))
    unit = unit_of([fresh, again])
    assert figures(fresh, "run", unit) == figures(again, "run", unit)


def test_a_run_on_another_device_is_warned_about() -> None:
    one = contract("matmul_add_64_warm_eager")
    other = json.loads(json.dumps(one))
    other["devices"][0]["name"] = "NVIDIA B200"
    codes = [w.code for w in compare([one, other], ["a", "b"]).warnings]
    assert "different-devices" in codes


def test_a_run_without_a_device_compares_its_host_side() -> None:
    one = contract("cpu_only")
    report = compare([one, one], ["a", "b"]).contract
    assert [r["device_us"] for r in report["runs"]] == [None, None]
    assert report["best"] is None
