"""`info`: what a file is, with no judgement."""

from __future__ import annotations

from pathlib import Path

from analyzer.info import describe
from analyzer.sources.kineto.read import read

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_counts_add_up_to_the_frames() -> None:
    trace = read(str(FIXTURES / "train_eager_full.json.gz"))
    report = describe(trace)
    assert sum(report.contract["categories"].values()) == trace.host.height + trace.device.height
    facts = report.contract["info"]
    assert facts["steps"] == 2
    assert facts["Python_stacks"] == "recorded"
    assert facts["linked"] == 1.0


def test_what_a_trace_does_not_hold_is_not_available() -> None:
    facts = describe(read(str(FIXTURES / "cpu_only.json.gz"))).contract["info"]
    assert facts["linked"] is None
    assert facts["Python_stacks"] == "not recorded"
