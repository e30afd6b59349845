"""Exit codes, and what goes to standard output and error."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from analyzer import cli, pipeline
from analyzer.pipeline import run_kind
from tests import micro
from tests.cli.process import TWO_STEPS, command
from tests.micro import kernel, op

# -- exit 0: a report ------------------------------------------------------------------------------------------


def test_a_readable_trace_gives_a_report_and_nothing_on_stderr(tracecli, trace):
    code, out, err = tracecli("analyze", trace)
    assert (code, err) == (0, "")
    assert "BOUND" in out.splitlines()[2]


def test_json_prints_the_report_and_nothing_else(tracecli, trace):
    code, out, err = tracecli("analyze", trace, "--format", "json")
    assert (code, err) == (0, "")
    jsonschema.validate(json.loads(out), run_kind().schema())


@pytest.mark.parametrize("events", [[], [op("aten::mm", 0, 5)], [kernel("k", 0, 5)]])
def test_a_trace_with_little_in_it_is_no_error(tracecli, tmp_path, events):
    path = micro.write(tmp_path / "little.json", events)
    for form in ("terminal", "json", "markdown"):
        assert tracecli("analyze", path, "--format", form)[0] == 0


def test_the_schema_command_prints_the_schema(tracecli):
    code, out, _ = tracecli("schema")
    assert (code, json.loads(out)) == (0, run_kind().schema())
    assert tracecli("schema", "run")[1] == out


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
        [], ["analyze"], ["no-such-command"], ["__init__"], ["no.such"],
        ["analyze", "{trace}", "--no-such-option"],
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full here")
@pytest.mark.parametrize("arguments", [["analyze", "{trace}"], ["--help"], ["schema"], ["findings"]])
def test_a_full_disk_behind_standard_output_is_no_bug_of_ours(trace, arguments):
    with open("/dev/full", "wb") as full:
        done = command(*(a.format(trace=trace) for a in arguments), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.count(b"No space left") == 1
    assert b"Exception" not in done.stderr


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")
@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [(">&-", "analyze {trace}", 2), ("2>&-", "analyze {trace}", 0), ("2>&-", "analyze gone.json", 2),
     ("2>&-", "no-such-command", 2), (">&- 2>&-", "findings", 2), ("2>/dev/full", "analyze gone.json", 2)],
)  # fmt: skip
def test_closed_output_and_error_keep_the_exit_code(trace, closed, arguments, code):
    call = f"exec {sys.executable} -c 'from analyzer.cli import main; main()' {arguments.format(trace=trace)} {closed}"
    done = subprocess.run(["sh", "-c", call], capture_output=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert b"bug of ours" not in done.stderr


def test_a_working_folder_that_is_gone_is_no_bug_of_ours(trace, tmp_path):
    gone = tmp_path / "gone"
    leave = f"import os; os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})"
    code = f"{leave}\nfrom analyzer.cli import main; main()"
    for arguments in (["check", str(trace)], ["analyze", str(trace), "-o", "r.json"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, timeout=60)
        assert done.returncode == 2, done.stderr
        assert b"bug of ours" not in done.stderr


def test_what_is_no_exception_of_python_is_a_bug_and_no_broken_limit(tracecli, trace, monkeypatch):
    class Panic(BaseException):
        """As a panic of Rust arrives."""

    def panics(*_, **__):
        raise Panic("a thread pool of no threads")

    monkeypatch.setattr(pipeline, "run", panics)
    code, out, err = tracecli("analyze", trace)
    assert (code, out) == (3, "")
    assert "Panic" in err


@pytest.mark.skipif(os.name != "posix", reason="no signals of that kind here")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_who_is_asked_to_end_leaves_nothing_behind(tmp_path, name):
    """Stopped while it writes: the part file is there, and then it is not."""
    code = (
        "import sys, time\n"
        "from analyzer.cli import main\n"
        "from analyzer.render import json\n"
        "from analyzer.output import Output\n"
        "opened = Output.open\n"
        "from contextlib import contextmanager\n"
        "@contextmanager\n"
        "def slow(self):\n"
        "    with opened(self) as file:\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(60)\n"
        "        yield file\n"
        "Output.open = slow\n"
        "main()\n"
    )
    trace = micro.write(tmp_path / "run.json", TWO_STEPS)
    folder = tmp_path / "out"
    folder.mkdir()
    words = [sys.executable, "-c", code, "info", str(trace), "-o", str(folder / "r.json")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        assert [p.suffix for p in folder.iterdir()] == [".part"]
        process.send_signal(getattr(signal, name))
        assert process.wait(30) == 128 + getattr(signal, name)
    assert list(folder.iterdir()) == []
