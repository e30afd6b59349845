"""What a report shows: sections, rows, a step, width, colour, names of strangers."""

from __future__ import annotations

import json

import jsonschema
import pytest

from analyzer.pipeline import run_kind
from tests import micro
from tests.cli.process import command
from tests.micro import chain


def test_only_shows_the_sections_that_are_named(tracecli, trace):
    code, out, _ = tracecli("analyze", trace, "--only", "kernels,operators")
    assert code == 0
    assert "Kernels, copies and fills" in out
    assert "CPU tax by operator" in out
    assert "Gaps by length" not in out


def test_an_unknown_section_lists_those_there_are(tracecli, trace):
    _, _, err = tracecli("analyze", trace, "--only", "kernel")
    for section in ("kernels", "gaps", "operators", "findings"):
        assert section in err


def test_all_shows_every_section_and_is_not_only_some(tracecli, trace):
    whole, first = tracecli("analyze", trace, "--all")[1], tracecli("analyze", trace)[1]
    for title in ("Runtime and driver calls", "Dispatch chains", "Gaps by length"):
        assert title in whole
        assert title not in first
    code, _, err = tracecli("analyze", trace, "--all", "--only", "kernels")
    assert code == 2
    assert "--all" in err


def test_only_all_shows_the_figures_behind_the_figures(tracecli, trace):
    assert "Runtime and driver calls" not in tracecli("analyze", trace)[1]
    assert "Runtime and driver calls" in tracecli("analyze", trace, "--only", "all")[1]


def test_the_json_report_is_whole_whatever_is_shown(tracecli, trace):
    _, out, _ = tracecli("analyze", trace, "--only", "kernels", "--format", "json", "--top", "1")
    jsonschema.validate(json.loads(out), run_kind().schema())
    assert len(json.loads(out)["operators"]) == 2


def test_top_cuts_the_tables_and_says_what_it_cut(tracecli, trace):
    _, out, _ = tracecli("analyze", trace, "--only", "operators", "--top", "1")
    assert "1 more; --top 2 shows all" in out


@pytest.mark.parametrize("wanted", ["2", "ProfilerStep#2", "-1"])
def test_a_step_is_named_by_number_name_or_position(tracecli, trace, wanted):
    _, out, _ = tracecli("analyze", trace, f"--step={wanted}", "--format", "json")
    report = json.loads(out)
    assert [s["name"] for s in report["steps"]] == ["ProfilerStep#2"]
    assert report["devices"][0]["busy_us"] == 30


def test_a_step_that_is_not_there_names_those_that_are(tracecli, trace):
    _, _, err = tracecli("analyze", trace, "--step", "99")
    assert "ProfilerStep#1, ProfilerStep#2" in err


def test_a_table_of_engines_is_read_and_its_faults_are_named(tracecli, trace, tmp_path):
    table = tmp_path / "mine.toml"
    table.write_text("[[engine]]\nengine = 'ours'\nannotation = '^ProfilerStep#(?P<batch>[0-9]+)$'\n")
    assert tracecli("analyze", trace, "--engines", table)[0] == 0
    table.write_text("[[engine]]\nengine = 'ours'\n")
    code, _, err = tracecli("analyze", trace, "--engines", table)
    assert code == 2
    assert "row 1 of the table of engines is not one" in err


def test_the_width_follows_the_terminal(tracecli, trace, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    narrow = tracecli("analyze", trace)[1]
    assert "─" * 70 in narrow
    assert "─" * 71 not in narrow


@pytest.mark.parametrize(
    ("environment", "arguments", "coloured"),
    [
        ({}, [], False),  # a pipe
        ({}, ["--color", "always"], True),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),  # who says it on the command line means it
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
        ({"NO_COLOR": "", "FORCE_COLOR": "1"}, [], True),  # empty is unset, as no-color.org has it
    ],
)
def test_colour_follows_the_option_then_no_color_then_force_color(
    tracecli, trace, monkeypatch, environment, arguments, coloured
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in tracecli("analyze", trace, *arguments)[1]) == coloured


def test_an_output_that_is_not_utf_8_gets_ascii(trace):
    done = command("analyze", trace, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert b"# busy" in done.stdout


def test_names_of_a_trace_are_never_markup(tracecli, tmp_path):
    names = ("[/foo]", "\x1b[31mred", "<script>alert(1)</script>", "abc\u202edcba", "two\nlines", "a|b")
    events = [e for i, n in enumerate(names) for e in chain(n, 100 * i, i + 1, 100 * i + 40, 20, kernel_name=n)]
    path = micro.write(tmp_path / "hostile.json", events)
    shown = tracecli("analyze", path)[1]
    for expected in ("[/foo]", "\\x1b[31mred", "<script>alert(1)</script>", "abc\\u202edcba", "two\\nlines"):
        assert expected in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "<script" not in tracecli("analyze", path, "--format", "markdown")[1]
    kernels = json.loads(tracecli("analyze", path, "--format", "json")[1])["kernels"]
    assert {k["name"] for k in kernels} == set(names)
