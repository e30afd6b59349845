"""Comparisons: the unit of work, fair division, the rule of what counts, the lesson."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from analyzer import pipeline, saved
from analyzer.analyses.devices import Devices
from analyzer.analyses.kernels import Kernels
from analyzer.compare.changes import beyond, changes
from analyzer.compare.report import compare
from analyzer.compare.runs import Item, unit_of
from analyzer.render import Options, render
from analyzer.report import values
from analyzer.report.blocks import Note, Quantity, Table
from analyzer.report.columns import Unit
from analyzer.report.document import Report
from analyzer.report.results import Results
from analyzer.sources.kineto.read import read
from tests import micro

FIXTURES = Path(__file__).parents[2] / "fixtures"


def report(name: str) -> Report:
    return pipeline.run(read(str(FIXTURES / f"{name}.json.gz")))


def results(name: str) -> Results:
    return report(name).results


def trace(path: Path, steps: int, kernels: dict[str, float]) -> Results:
    """A run of `steps` steps of 100 µs that each launch the kernels: name -> duration in µs."""
    events = []
    number = 0
    for step in range(steps):
        start = 100 * step
        events.append(micro.step(step, start, 100))
        for place, (name, duration) in enumerate(kernels.items()):
            number += 1
            at = start + 10 + 20 * place
            events += [micro.launch("cudaLaunchKernel", at, 4, number), micro.kernel(name, at + 5, duration, number)]
    return micro.report_of(path, events).results


def tables(compared: Report) -> dict[str, Table]:
    """Title -> table, of all sections."""
    return {block.title: block for s in compared.sections for block in s.blocks if isinstance(block, Table)}


def rows(table: Table) -> dict[Any, tuple[Any, ...]]:
    """First cell -> the others."""
    return {row[0]: row[1:] for row in table.shown(len(table.rows))}


def test_unequal_step_counts_compare_per_step(tmp_path: Path) -> None:
    """2 steps of gemm 10 + relu 5 against 3 steps of gemm 10 + relu 4 + cast 1: 15 µs a step in both."""
    base = trace(tmp_path / "base.json", 2, {"gemm": 10, "relu": 5})
    test = trace(tmp_path / "test.json", 3, {"gemm": 10, "relu": 4, "cast": 1})
    compared = compare([base, test], ["base", "test"])
    contract = compared.contract

    assert contract["unit"] == {"kind": "step", "name": None}
    assert [r["units"] for r in contract["runs"]] == [2, 3]
    assert [r["device_us"] for r in contract["runs"]] == [15.0, 15.0]
    (difference,) = contract["differences"]
    assert (difference["from"], difference["to"]) == ("base", "test")
    kernels = {k["name"]: k for k in difference["kernels"]}
    assert (kernels["gemm"]["status"], kernels["gemm"]["us_per_unit"]) == ("alike", [10.0, 10.0])
    relu = kernels["relu"]
    assert (relu["status"], relu["difference_us"], relu["ratio"]) == ("changed", -1.0, 0.8)
    assert (kernels["cast"]["status"], kernels["cast"]["calls_per_unit"]) == ("added", [0.0, 1.0])


def test_cells_are_values_with_their_units(tmp_path: Path) -> None:
    """The same two runs: launches 2 and 3 a step; kernels that are alike are left out."""
    base = trace(tmp_path / "base.json", 2, {"gemm": 10, "relu": 5})
    test = trace(tmp_path / "test.json", 3, {"gemm": 10, "relu": 4, "cast": 1})
    shown = tables(compare([base, test], ["base", "test"]))

    figures, kernels = shown["per step"], shown["Device time by kernel"]
    assert [c.column.unit for c in figures.columns] == [Unit.TEXT, *[Unit.OWN] * 3, Unit.RATIO, Unit.TEXT]
    assert [c.column.title for c in figures.columns[1:5]] == ["base", "test", "difference", "ratio"]

    def line(title, unit):
        *three, ratio, mark = rows(figures)[title]
        assert [q.unit for q in three] == [unit] * 3
        return (*(q.value for q in three), ratio, mark)

    assert line("device", Unit.NS) == (15_000, 15_000, 0, 1.0, "alike")
    assert line("launches", Unit.COUNT) == (2, 3, 1, 1.5, "")
    assert line("memsets", Unit.COUNT) == (0, 0, 0, "", "alike")
    assert values.text(rows(figures)["launches"][2], Unit.OWN) == "+1"
    before, after, *_, mark = rows(figures)["verdict"]
    assert (before.unit, mark) == (Unit.TEXT, "" if before == after else "changed")
    assert rows(kernels) == {
        "relu": ("changed", 1, 1, 5000, 4000, -1000, 0.8),
        "cast": ("added", 0, 1, 0, 1000, 1000, ""),
    }


def test_every_cell_of_a_column_of_figures_is_a_figure_or_empty(tmp_path: Path) -> None:
    one, two = trace(tmp_path / "a.json", 2, {"gemm": 10}), trace(tmp_path / "b.json", 3, {"relu": 4})
    for compared in (compare([one, two], ["a", "b"]), compare([one, two, one], ["a", "b", "c"])):
        for table in tables(compared).values():
            for row in table.shown(len(table.rows)):
                for cell, value in zip(table.columns, row, strict=True):
                    is_text = cell.column.unit in (Unit.TEXT, Unit.NAME)
                    assert isinstance(value, str) if is_text else value == "" or not isinstance(value, str)
                    assert isinstance(value, Quantity) or value == "" or cell.column.unit is not Unit.OWN


def test_the_unit_is_an_annotation_that_makes_up_most_of_every_run() -> None:
    eager, compiled = results("matmul_add_64_warm_eager_20"), results("matmul_add_64_warm_default_20")
    assert unit_of([eager, compiled]).name == "matmul_add"
    # Nothing in common but the steps.
    assert unit_of([eager, results("train_eager")]).kind == "step"
    assert unit_of([eager, results("cold_process")]).kind in ("trace", "annotation")


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

    ranked = changes(
        {"mm": item("mm", 30.0), "add": item("add", 10.0), "view": item("view", 2.0, 4.0)},
        {"mm": item("mm", 30.0), "addmm": item("addmm", 90.0), "view": item("view", 2.0, 5.0)},
    )
    assert [(c.name, c.status, c.difference_ns) for c in ranked] == [
        ("addmm", "added", 90.0),
        ("add", "removed", -10.0),
        ("mm", "alike", 0.0),
        ("view", "changed", 0.0),  # the same time, but one call more a unit
    ]


def test_pace_rests_on_unprofiled_steps_where_all_runs_say() -> None:
    """The profiler stretches an eager step 2.5 times and a compiled one 1.2 times: profiled times mislead."""
    runs = [report("matmul_add_64_warm_eager_20"), report("matmul_add_64_warm_default_20")]
    compared = compare([r.results for r in runs], ["eager", "default"])
    for run, source in zip(compared.contract["runs"], runs, strict=True):
        assert run["pace_us"] == pytest.approx(source.contract["capture"]["unprofiled_step_us"])
    assert compared.contract["best"] == "eager"
    assert compared.contract["pace_from"] == "unprofiled"
    (difference,) = compared.contract["differences"]
    assert "addmm-bias-copy" in difference["findings_came"]
    notes = [b.text for s in compared.sections for b in s.blocks if isinstance(b, Note)]
    assert any(note.startswith("findings that came: ") and "addmm-bias-copy" in note for note in notes)


def test_a_tax_that_the_device_hides_is_said_to_be_hidden() -> None:
    both = [results("matmul_add_4096_warm_eager_20"), results("matmul_add_4096_warm_default_20")]
    contract = compare(both, ["eager", "default"]).contract
    assert contract["best"] is None
    assert "alike in pace" in contract["lesson"]


def test_six_ways_to_attend_in_one_table() -> None:
    """Kernels and copies per forward as counted by hand in the traces: 6, 5, 20, 1, 1, 1."""
    names = ("naive", "inplace", "sdpa_math", "sdpa_efficient", "sdpa_flash", "sdpa_cudnn")
    reports = [results(f"attention_{n}") for n in names]
    compared = compare(reports, names)
    runs = compared.contract["runs"]
    assert [r["kernels_and_copies"] for r in runs] == [6, 5, 20, 1, 1, 1]
    assert [r["copies"] for r in runs] == [1, 0, 0, 0, 0, 0]
    assert [r["attention"] for r in runs] == [["unfused"], ["unfused"], ["math"], ["efficient"], ["flash"], ["cudnn"]]
    assert compared.contract["best"] == "sdpa_cudnn"
    shown = tables(compared)
    assert list(rows(shown[f"per call of {compared.contract['unit']['name']}"]))[5] == "★ sdpa_cudnn"

    found = rows(shown["Findings"])
    for run, one in zip(runs, range(6), strict=True):
        assert [name for name, marks in found.items() if marks[one]] == [n for n in found if n in run["findings"]]
    # Each kernel is in one kind, so that kinds add up to the device time of a call, as the kernels do.
    kinds = rows(shown["Device time by kind"])
    for one, source in enumerate(reports):
        total = sum(k.total_ns for k in source[Kernels].kernels) / runs[one]["units"]
        assert sum(row[one] or 0 for row in kinds.values()) == pytest.approx(total, abs=len(kinds))


def test_a_saved_report_compares_like_its_trace(tmp_path: Path) -> None:
    fresh = report("decode_eager")
    path = tmp_path / "report.json"
    path.write_bytes(render(fresh, "json", Options()))
    again = saved.load(str(path), "run")
    assert again is not None
    (run, other) = compare([fresh.results, again.results], ["a", "b"]).contract["runs"]
    for key, value in run.items():
        if key.endswith("_us") and isinstance(value, float):
            assert other[key] == pytest.approx(value, abs=0.002)  # half a ns is lost in the JSON
        elif key not in ("name", "idle_by_cause_us", "cpu_us_spread", "device_us_spread"):
            assert other[key] == value


def test_a_run_on_another_device_is_warned_about() -> None:
    one = results("matmul_add_64_warm_eager")
    devices = one[Devices]
    other = structs.replace(devices, devices=(structs.replace(devices.devices[0], name="NVIDIA B200"),))
    codes = [w.code for w in compare([one, Results([*(r for r in one if r is not devices), other])], "ab").warnings]
    assert "different-devices" in codes


def test_a_run_without_a_device_compares_its_host_side() -> None:
    one = results("cpu_only")
    contract = compare([one, one], ["a", "b"]).contract
    assert [r["device_us"] for r in contract["runs"]] == [None, None]
    assert contract["best"] is None


def test_a_comparison_with_a_report_of_other_runs_is_read_as_json(tmp_path: Path) -> None:
    """The JSON has the runs' figures in µs, whatever is shown."""
    one = trace(tmp_path / "a.json", 4, {"gemm": 10})
    plain = json.loads(render(compare([one, one], ["a", "b"]), "json", Options(top=1, only=("runs",))))
    assert plain["kind"] == "comparison"
    assert plain["runs"][0]["cpu_us"] == 100.0
    assert plain["runs"][0]["idle_by_cause_us"].keys() == plain["runs"][1]["idle_by_cause_us"].keys() != set()
