"""The Python API, as tests and notebooks use it."""

from __future__ import annotations

import doctest
import importlib.resources
import json
import subprocess
import sys
from pathlib import Path

import pytest

import analyzer
from analyzer import analyze, api
from analyzer.render import Options
from analyzer.render import json as rendered

ROOT = Path(__file__).parents[1]
RUN = ROOT / "fixtures" / "decode_eager.json.gz"


@pytest.fixture(scope="module")
def report() -> api.Report:
    return analyze(RUN)


def test_the_documented_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    tested = doctest.testmod(api)
    assert tested.attempted >= 7
    assert not tested.failed


def test_a_report_is_asserted_on_in_a_line(report: api.Report) -> None:
    assert report["launches.per_step"] <= 160
    assert report["devices.0.utilization"] < 0.2
    assert report["gaps.by_cause.dispatch.share"] > 0.5
    assert report["devices.*.kernels"] == [680]
    assert "overhead-bound" in report.findings
    assert report.findings["overhead-bound"][0].severity.value == "error"
    assert report.verdict == report.contract["verdict"]["bound"]
    assert repr(report).startswith("<Report of ")


def test_an_unknown_name_suggests(report: api.Report) -> None:
    with pytest.raises(KeyError, match=r"did you mean launches\.per_step"):
        report["launches.per_steps"]
    with pytest.raises(KeyError):
        report["a..b"]


def test_the_contract_is_the_commands_json(report: api.Report) -> None:
    command = [sys.executable, "-c", "from analyzer.cli import main; main()", "analyze", str(RUN), "--format", "json"]
    said = subprocess.run(command, capture_output=True, check=True).stdout
    assert json.loads(said) == json.loads(rendered.render(report._report, Options()))


def test_frames_come_on_request(report: api.Report) -> None:
    frames = report.frames
    assert report.frames is frames
    assert frames.events.height == frames.host.height + frames.device.height
    assert frames.device["category"].value_counts().sum()["count"].item() == report["links.linked"]
    assert frames.memory.height == 0
    top = frames.device.group_by("name").len().sort("len").row(-1)
    assert top[1] == max(k["calls"] for k in report.contract["kernels"])


def test_one_step_and_what_cannot_be_read() -> None:
    assert analyze(RUN, step=16)["launches.count"] == 149
    with pytest.raises(analyzer.TraceError, match="no such file"):
        analyze("gone.json")


def test_importing_costs_nothing() -> None:
    code = (
        "import sys, analyzer\n"
        "heavy = {'polars', 'numpy', 'rich', 'orjson', 'click', 'analyzer.api'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from analyzer import analyze\n"
        "assert 'polars' not in sys.modules\n"
        "import analyzer.cli\n"
        "assert 'polars' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_is_typed() -> None:
    assert importlib.resources.files("analyzer").joinpath("py.typed").is_file()
    assert set(analyzer.__all__) <= set(dir(analyzer))
    with pytest.raises(AttributeError):
        analyzer.nothing  # noqa: B018
