"""The command line: exit codes, what goes to stdout, files, options, colour."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from analyzer import cli, pipeline
from analyzer.render.schema import REPORT
from tests import micro
from tests.micro import chain, kernel, op, step

TWO_STEPS = [
    step(1, 0, 100),
    *chain("aten::mm", 10, 1, 40, 20),
    step(2, 100, 100),
    *chain("aten::add", 110, 2, 140, 30),
]


@pytest.fixture
def trace(tmp_path) -> Path:
    return micro.write(tmp_path / "run.json", TWO_STEPS)


@pytest.fixture
def tracecli(capfdbinary, monkeypatch):
    """Call the command in this process: (exit code, stdout, stderr). Never a traceback."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TRACECLI_DEBUG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            cli.main([str(a) for a in arguments])
        out, err = capfdbinary.readouterr()
        assert b"Traceback" not in err
        return left.value.code, out.decode(), err.decode()

    return run


def command(*arguments, **options) -> subprocess.CompletedProcess[bytes]:
    """The console script as a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    environment |= options.pop("env", {})
    code = "from analyzer.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, env=environment, timeout=60, **options
    )


# -- exit 0: a report ------------------------------------------------------------------------------------------


def test_a_readable_trace_gives_a_report_and_nothing_on_stderr(tracecli, trace):
    code, out, err = tracecli("analyze", trace)
    assert (code, err) == (0, "")
    assert "BOUND" in out.splitlines()[2]


def test_json_prints_the_report_and_nothing_else(tracecli, trace):
    code, out, err = tracecli("analyze", trace, "--format", "json")
    assert (code, err) == (0, "")
    jsonschema.validate(json.loads(out), REPORT)


@pytest.mark.parametrize("events", [[], [op("aten::mm", 0, 5)], [kernel("k", 0, 5)]])
def test_a_trace_with_little_in_it_is_no_error(tracecli, tmp_path, events):
    path = micro.write(tmp_path / "little.json", events)
    for form in ("terminal", "json", "markdown"):
        assert tracecli("analyze", path, "--format", form)[0] == 0


def test_the_schema_command_prints_the_schema(tracecli):
    code, out, _ = tracecli("schema")
    assert (code, json.loads(out)) == (0, REPORT)
    assert tracecli("schema", "report")[1] == out


def test_help_and_version_are_no_errors(tracecli):
    assert tracecli("--help")[0] == 0
    assert tracecli("-h")[1] == tracecli("--help")[1]
    assert tracecli("--version")[0] == 0
    assert "TRACE is a .json" in tracecli("analyze", "--help")[1]


def test_standard_input_is_read_for_a_dash(trace):
    plain = command("analyze", "-", "--format", "json", input=trace.read_bytes())
    packed = command("analyze", "-", "--format", "json", input=gzip.compress(trace.read_bytes()))
    for done in (plain, packed):
        assert (done.returncode, done.stderr) == (0, b"")
        assert json.loads(done.stdout)["devices"][0]["busy_us"] == 50


# -- exit 2: usage, or input that cannot be used ------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["analyze"], ["no-such-command"], ["analyze", "{trace}", "--no-such-option"],
        ["analyze", "{trace}", "--format", "xml"], ["analyze", "{trace}", "--top", "0"],
        ["analyze", "{trace}", "--top", "many"], ["analyze", "{trace}", "--color", "pink"],
        ["analyze", "{trace}", "--only", "no-such-section"], ["analyze", "{trace}", "--only", ","],
        ["analyze", "{trace}", "--step", "99"], ["analyze", "{trace}", "--step", "ProfilerStep#7"],
        ["analyze", "{trace}", "-o", "report.pdf"], ["analyze", "{trace}", "extra"], ["schema", "nothing"],
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_an_empty_stdout(tracecli, trace, arguments):
    code, out, err = tracecli(*(a.format(trace=trace) for a in arguments))
    assert (code, out) == (2, "")
    assert err


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"   \n", "white space"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 99, "PNG"),
        (b"not json at all", "not JSON"),
        (b'{"schema": 1, "nodes": []}', "execution trace"),
        (b"PK\x03\x04" + b"\0" * 99, "zip"),
        (b"<!doctype html><html></html>", "web page"),
        (b"[1, 2, 3]", "not a trace"),
    ],
)
def test_what_is_no_trace_is_named_and_exits_with_2(tracecli, tmp_path, content, word):
    path = tmp_path / "input.json"
    path.write_bytes(content)
    code, out, err = tracecli("analyze", path)
    assert (code, out) == (2, "")
    assert word in err
    assert str(path) in err


def test_files_that_are_not_there_or_are_folders_exit_with_2(tracecli, tmp_path):
    for path in (tmp_path / "missing.json", tmp_path):
        code, out, err = tracecli("analyze", path)
        assert (code, out) == (2, "")
        assert str(path) in err


def test_strict_refuses_a_file_that_needs_a_repair(tracecli, tmp_path):
    path = tmp_path / "cut.json"
    path.write_bytes(micro.write(tmp_path / "whole.json", TWO_STEPS).read_bytes()[:-40])
    assert tracecli("analyze", path)[0] == 0
    code, out, err = tracecli("analyze", path, "--strict")
    assert (code, out) == (2, "")
    assert "byte" in err or "truncated" in err


def test_an_error_shows_no_control_character_of_a_file_name(tracecli, tmp_path):
    code, _, err = tracecli("analyze", tmp_path / "a\x1b[31m.json")
    assert code == 2
    assert "\x1b" not in err


# -- exit 3, 130, 141 -------------------------------------------------------------------------------------------------


def test_a_bug_of_ours_exits_with_3_and_says_so_without_a_traceback(tracecli, trace, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(pipeline, "run", broken)
    code, out, err = tracecli("analyze", trace)
    assert (code, out) == (3, "")
    assert "a bug of ours: ZeroDivisionError" in err


def test_the_traceback_is_there_for_who_asks(trace, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(pipeline, "run", broken)
    monkeypatch.setenv("TRACECLI_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["analyze", str(trace)])


def test_an_interrupt_exits_with_130(tracecli, trace, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "run", interrupted)
    code, out, err = tracecli("analyze", trace)
    assert (code, out) == (130, "")
    assert "interrupted" in err


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no pipes of that kind here")
@pytest.mark.parametrize(
    "arguments", [["analyze", "{trace}"], ["analyze", "{trace}", "--format", "json"], ["--help"], ["schema"]]
)
def test_a_reader_that_went_away_exits_with_141_in_silence(trace, arguments):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with contextlib.closing(os.fdopen(write_end, "wb")) as pipe:
        code = "from analyzer.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *(a.format(trace=trace) for a in arguments)],
            stdout=pipe, stderr=subprocess.PIPE, timeout=60,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (141, b"")


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "begins"), [(".json", "{"), (".md", "# tracecli"), (".txt", "run.json")])
def test_the_suffix_of_a_file_tells_its_form(tracecli, trace, tmp_path, suffix, begins):
    target = tmp_path / f"report{suffix}"
    code, out, err = tracecli("analyze", trace, "-o", target)
    assert (code, out) == (0, "")
    assert f"wrote {target}" in err
    assert target.read_text(encoding="utf-8").startswith(begins)


def test_the_format_option_wins_over_the_suffix(tracecli, trace, tmp_path):
    target = tmp_path / "report.txt"
    assert tracecli("analyze", trace, "-o", target, "--format", "json")[0] == 0
    assert json.loads(target.read_text())["schema_version"] == 1


def test_a_file_is_not_overwritten_unless_forced(tracecli, trace, tmp_path):
    target = tmp_path / "report.json"
    target.write_text("mine")
    code, out, err = tracecli("analyze", trace, "-o", target)
    assert (code, out, target.read_text()) == (2, "", "mine")
    assert "--force" in err
    assert tracecli("analyze", trace, "-o", target, "--force")[0] == 0
    assert target.read_text() != "mine"


def test_a_place_that_cannot_be_written_exits_with_2(tracecli, trace, tmp_path):
    code, out, err = tracecli("analyze", trace, "-o", tmp_path / "no" / "such" / "folder" / "r.json")
    assert (code, out) == (2, "")
    assert "cannot write" in err


def test_a_file_has_no_colour_unless_it_is_asked_for(tracecli, trace, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    tracecli("analyze", trace, "-o", tmp_path / "a.txt")
    tracecli("analyze", trace, "-o", tmp_path / "b.txt", "--color", "always")
    assert "\x1b[" not in (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert "\x1b[" in (tmp_path / "b.txt").read_text(encoding="utf-8")


def test_a_file_name_that_is_no_text_does_no_harm(trace, tmp_path):
    """A name in another encoding than this system's: bytes that decode to nothing."""
    path = os.fsencode(tmp_path) + b"/caf\xe9.json"
    try:
        Path(os.fsdecode(path)).write_bytes(trace.read_bytes())
    except OSError:
        pytest.skip("this file system takes no such name")
    for form in ("json", "terminal", "markdown"):
        done = command("analyze", os.fsdecode(path), "--format", form)
        assert done.returncode == 0, done.stderr
        done.stdout.decode("utf-8")


# -- what is shown --------------------------------------------------------------------------------------------------


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


def test_only_all_shows_the_figures_behind_the_figures(tracecli, trace):
    assert "Runtime and driver calls" not in tracecli("analyze", trace)[1]
    assert "Runtime and driver calls" in tracecli("analyze", trace, "--only", "all")[1]


def test_the_json_report_is_whole_whatever_is_shown(tracecli, trace):
    _, out, _ = tracecli("analyze", trace, "--only", "kernels", "--format", "json", "--top", "1")
    jsonschema.validate(json.loads(out), REPORT)
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
