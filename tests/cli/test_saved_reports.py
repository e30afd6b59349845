"""What the commands make of a file that an earlier one saved: one answer, whichever command is asked."""

from __future__ import annotations

import gzip
import json
import re

import pytest

BUDGET = "[limits]\nlaunches.count.max = 5\n"


@pytest.fixture
def saved(tracecli, trace, tmp_path):
    """Kind -> the file that holds such a report."""
    budget = tmp_path / "budget.toml"
    budget.write_text(BUDGET)
    commands = {
        "run": ["analyze", trace],
        "file": ["info", trace],
        "comparison": ["compare", trace, trace],
        "check": ["check", trace, "--budget", budget],
    }
    out = {kind: tmp_path / f"report-{kind}.json" for kind in commands}
    for kind, command in commands.items():
        code, _, said = tracecli(*command, "-o", out[kind])
        assert code == 0, said
    return out


def asked(report, budget):
    """Every command that takes the report of a run, with the report as its argument."""
    return {
        "analyze": ["analyze", report],
        "compare": ["compare", report, report],
        "compared with": ["compare", "{run}", report],
        "check": ["check", report, "--budget", budget],
        "baseline": ["check", "{run}", "--budget", budget, "--baseline", report],
    }


COMMANDS = tuple(asked("", ""))


@pytest.fixture
def ask(tracecli, saved, tmp_path):
    def run(name, report):
        command = asked(report, tmp_path / "budget.toml")[name]
        return tracecli(*(saved["run"] if word == "{run}" else word for word in command))

    return run


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("kind", ["file", "comparison", "check"])
def test_another_kind_is_refused_by_its_name_and_not_by_its_version(ask, saved, kind, name):
    code, out, err = ask(name, saved[kind])
    assert (code, out) == (2, "")
    assert f"{saved[kind]}: the report of a {kind}, not of a run" in err
    assert "version" not in err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_version_that_is_said_is_the_one_that_differs(ask, saved, tmp_path, name):
    old = tmp_path / "old.json"
    old.write_text(json.dumps({**json.loads(saved["run"].read_text()), "schema_version": 1}))
    code, out, err = ask(name, old)
    assert (code, out) == (2, "")
    assert "a report of schema version 1; this tool reads 2" in err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"schema_version": 2, "kind": "run"}', "damaged: Object missing required field `tool`"),
        (b'{"schema_version": 2, "kind": "run", "tool": {"name": "x", "ver', "a saved report, but damaged"),
        (b'{"schema_version": 2, "kind": "run", "tool": 3}', "`$.tool`"),
    ],
)
def test_a_report_with_few_keys_or_wrong_ones_is_an_error_that_names_the_place(ask, tmp_path, name, content, said):
    damaged = tmp_path / "damaged.json"
    damaged.write_bytes(content)
    code, out, err = ask(name, damaged)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    "form",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: json.dumps(json.loads(text), sort_keys=True).encode(),
        lambda text: json.dumps(json.loads(text), indent=8).encode(),
        gzip.compress,
    ],
    ids=["byte order mark", "sorted keys", "other indent", "gzip"],
)
def test_a_report_in_another_layout_is_the_same_report(ask, saved, tmp_path, name, form):
    report = tmp_path / "report.json"
    report.write_bytes(saved["run"].read_bytes())
    as_it_was = ask(name, report)
    assert as_it_was[0] == 0
    report.write_bytes(form(saved["run"].read_bytes()))
    assert ask(name, report) == as_it_was


def test_analyze_shows_its_own_output_as_it_showed_the_trace(tracecli, trace, saved):
    for options in ([], ["--only", "all"], ["--format", "markdown"], ["--format", "json"], ["--top", "1"]):
        assert tracecli("analyze", saved["run"], *options) == tracecli("analyze", trace, *options)


@pytest.mark.parametrize("kind", ["run", "file", "comparison", "check"])
@pytest.mark.parametrize("form", ["terminal", "json", "markdown"])
def test_any_kind_is_rendered_again_in_any_format(tracecli, saved, kind, form):
    code, out, err = tracecli("render", saved[kind], "--format", form)
    assert (code, err) == (0, "")
    if form == "json":
        assert json.loads(out) == json.loads(saved[kind].read_text())
    else:
        assert re.search(r"BOUND|INFO|COMPARED|HOLDS", out, re.IGNORECASE)


def test_a_check_is_rendered_for_ci_later(tracecli, saved):
    assert tracecli("render", saved["check"], "--format", "github")[1].startswith("::notice title=tracecli check::")
    assert "<testsuites" in tracecli("render", saved["check"], "--format", "junit")[1]
    code, out, err = tracecli("render", saved["run"], "--format", "junit")
    assert (code, out) == (2, "")
    assert "junit shows check only" in err


@pytest.mark.parametrize("kind", ["run", "file", "comparison", "check"])
def test_the_schema_of_a_kind_fits_what_its_command_wrote(tracecli, saved, kind):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(json.loads(saved[kind].read_text()), json.loads(tracecli("schema", kind)[1]))
