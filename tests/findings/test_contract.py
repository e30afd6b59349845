"""What holds for every finding: its name, what `explain` prints, that it fires on its trace and not on others."""

from __future__ import annotations

import inspect
import re

import pytest
from click.testing import CliRunner

from analyzer import cli, findings, pipeline
from analyzer.index.activity import Cause
from tests.findings.cases import CASES

MODULES = {module.__name__.rpartition(".")[2]: module for module in pipeline.modules(findings)}
PARTS = ("What it means", "How it is computed", "What to try", "When it is wrong")


def test_every_finding_has_a_trace_built_for_it():
    assert {m.NAME for m in MODULES.values()} == set(CASES)


@pytest.mark.parametrize("module", MODULES.values(), ids=list(MODULES))
def test_a_finding_is_named_as_its_file_and_explained_in_four_parts(module):
    assert module.__name__.rpartition(".")[2].replace("_", "-") == module.NAME
    assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", module.NAME)
    text = inspect.getdoc(module)
    summary, blank, *rest = text.split("\n")
    assert summary.endswith(".")
    assert not blank
    assert [line for line in rest if line in PARTS] == list(PARTS)
    positions = [text.index(part) for part in PARTS] + [len(text)]
    for part, start, end in zip(PARTS, positions, positions[1:], strict=False):
        assert len(text[start:end]) > 100, f"{part} says nothing"


@pytest.mark.parametrize("module", MODULES.values(), ids=list(MODULES))
def test_a_finding_is_a_function_of_results_alone(module):
    assert list(inspect.signature(module.find).parameters) == ["results"]


def test_causes_that_findings_speak_of_are_causes():
    assert set(findings.LAUNCH_PATH) < {cause.key for cause in Cause}


@pytest.mark.parametrize("name", [m.NAME for m in MODULES.values()])
def test_explain_prints_the_docstring(name):
    result = CliRunner().invoke(cli.cli, ["explain", name])
    assert result.exit_code == 0
    assert inspect.getdoc(MODULES[name.replace("-", "_")]) in result.output


def test_explain_of_an_unknown_name_suggests_and_exits_with_2():
    result = CliRunner().invoke(cli.cli, ["explain", "hiden-copy"])
    assert result.exit_code == 2
    assert "hidden-copy" in result.output


def test_findings_lists_all_with_their_summary():
    result = CliRunner().invoke(cli.cli, ["findings"])
    lines = {line.split("  ")[0]: line for line in result.output.splitlines()}
    for module in MODULES.values():
        assert lines[module.NAME].endswith(inspect.getdoc(module).split("\n")[0])


@pytest.fixture(scope="module")
def fired(tmp_path_factory):
    """Which findings fire on which case."""
    from tests import micro

    folder = tmp_path_factory.mktemp("cases")
    out = {}
    for name, build in CASES.items():
        one = build()
        report = micro.report_of(folder / f"{name}.json", one.events, **one.header)
        out[name] = {f.name for f in report.findings}
    return out


@pytest.mark.parametrize("name", CASES)
def test_a_finding_fires_on_its_own_trace_and_stays_silent_on_most_others(fired, name):
    assert name in fired[name]
    silent = [other for other in CASES if name not in fired[other]]
    assert len(silent) >= 3, f"fires on all but {silent}"


def test_no_small_trace_drowns_its_reader(fired):
    assert max(map(len, fired.values())) <= 6, fired
