"""`info`: what a file is, with no judgement."""

from __future__ import annotations

from pathlib import Path

from analyzer.info import Info, describe
from analyzer.render import Options, render
from analyzer.report.blocks import Metric
from analyzer.sources.kineto.read import read
from tests import micro
from tests.micro import chain, op, step

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_counts_add_up_to_the_frames() -> None:
    trace = read(str(FIXTURES / "train_eager_full.json.gz"))
    report = describe(trace)
    assert sum(report.contract["categories"].values()) == trace.host.height + trace.device.height
    facts = report.contract["info"]
    assert facts["steps"] == 2
    assert facts["Python_stacks"] == "recorded"
    assert facts["linked"] == 1.0
    assert facts["cuda_runtime_version"] == "13000"


def test_what_a_trace_does_not_hold_is_not_available() -> None:
    facts = describe(read(str(FIXTURES / "cpu_only.json.gz"))).contract["info"]
    assert facts["linked"] is None
    assert facts["Python_stacks"] == "not recorded"
    assert "hip_driver_version" not in facts


def test_a_file_is_described_by_its_own_figures(tmp_path: Path) -> None:
    """Two steps of 100 µs; an operator, its launch and its kernel in each."""
    events = [
        e for i in (0, 1) for e in (step(1 + i, 100 * i, 100), *chain("mm", 100 * i + 10, 1 + i, 100 * i + 40, 20))
    ]
    report = describe(read(str(micro.write(tmp_path / "run.json", events)), jobs=1))
    facts = report.contract["info"]
    assert (facts["window_us"], facts["steps"], facts["first_step"], facts["last_step"]) == (
        200.0, 2, "ProfilerStep#1", "ProfilerStep#2",
    )  # fmt: skip
    assert (facts["complete_events"], facts["device_events"], facts["threads"]) == (8, 2, 1)
    assert report.contract["categories"] == {"annotation": 2, "op": 2, "runtime": 2, "kernel": 2}
    assert report.headline.source == ("run.json", "Test GPU 9.0")
    assert b"ProfilerStep#1 to ProfilerStep#2" in render(report, "terminal", Options())


def test_a_file_with_nothing_in_it_is_described_too(tmp_path: Path) -> None:
    report = describe(read(str(micro.write(tmp_path / "empty.json", [])), jobs=1))
    assert (report.contract["info"]["window_us"], report.contract["info"]["linked"]) == (None, None)
    shown = {m.title: m.note for m in report.results[Info].blocks() if isinstance(m, Metric)}
    assert (shown["window"], shown["steps"], shown["linked"]) == (
        "no events", "no profiler steps were marked", "no device work",
    )  # fmt: skip


def test_an_old_file_without_flags_is_described_by_its_events(tmp_path: Path) -> None:
    """Shapes are seen in the operators; of stacks neither header nor events tell."""
    facts = describe(read(str(micro.write(tmp_path / "a.json", [op("mm", 0, 9, shapes=[[2, 2]])])))).contract["info"]
    assert (facts["input_shapes"], facts["memory_instants"], facts["Python_stacks"]) == (
        "recorded", "not recorded", None,
    )  # fmt: skip
    new = micro.write(tmp_path / "b.json", [op("mm", 0, 9)], record_shapes=1)
    facts = describe(read(str(new))).contract["info"]
    assert (facts["input_shapes"], facts["Python_stacks"]) == ("recorded", "not recorded")


def test_an_old_file_says_in_its_operators_what_was_asked_for(tmp_path: Path) -> None:
    """Each operator carries `Call stack` and `Module Hierarchy`; they are empty where nobody asked."""
    for name, stacks, expected in (("a", ("", "net.py(3): forward"), "recorded"), ("b", ("", ""), "not recorded")):
        events = [op("mm", 20 * i, 9) for i in range(2)]
        for event, stack in zip(events, stacks, strict=True):
            event["args"] = {"Call stack": stack, "Module Hierarchy": ""}
        facts = describe(read(str(micro.write(tmp_path / f"{name}.json", events)))).contract["info"]
        assert (facts["Python_stacks"], facts["module_hierarchy"]) == (expected, "not recorded")
        assert facts["FLOP_estimates"] is None
