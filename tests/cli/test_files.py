"""-o: forms, what is not overwritten, what stays where writing fails."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from analyzer.redact import share as sharing
from analyzer.sources.kineto import read as reader
from tests.cli.process import command


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
    assert json.loads(target.read_text())["schema_version"] == 2


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


# -- every command that writes a file ----------------------------------------------------------------------------

posix = pytest.mark.skipif(os.name != "posix", reason="no devices and pipes of that kind here")
BUDGET = "limits.launches.count.max = 99\n"
WRITERS = {
    "analyze": ["analyze", "{trace}", "--format", "json", "-o", "{target}"],
    "info": ["info", "{trace}", "--format", "json", "-o", "{target}"],
    "compare": ["compare", "{trace}", "{trace}", "--format", "json", "-o", "{target}"],
    "check": ["check", "{trace}", "--budget", "{budget}", "--format", "json", "-o", "{target}"],
    "init": ["check", "{trace}", "--init", "-o", "{target}"],
    "export": ["export", "{trace}", "-o", "{target}"],
    "share": ["share", "{trace}", "-o", "{target}"],
    "map": ["share", "{trace}", "-o", "{other}", "--map", "{target}"],
}


@pytest.fixture(params=WRITERS)
def call(request, tracecli, trace, tmp_path):
    """A command with its file written to a target of the test's choice."""
    (tmp_path / "budget.toml").write_text(BUDGET)
    places = {"trace": trace, "budget": tmp_path / "budget.toml", "other": tmp_path / "other.json"}

    def run(target: Path, *more: str):
        words = [word.format(target=target, **places) for word in WRITERS[request.param]]
        return tracecli(*words, *more)

    run.suffix = ".csv" if request.param == "export" else ".json"
    return run


@pytest.fixture
def no_work(monkeypatch):
    """Reading a trace fails the test: what is wrong with the output is to be seen before."""

    def read(*_, **__):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(reader, "read", read)
    monkeypatch.setattr(sharing, "share", read)


def test_a_file_is_written_and_no_other(call, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / f"file{call.suffix}"
    assert call(target)[0] == 0
    assert target.stat().st_size > 0
    assert list(folder.iterdir()) == [target]


def test_a_file_that_is_there_is_refused_before_the_work(call, tmp_path, no_work):
    target = tmp_path / f"file{call.suffix}"
    target.write_text("mine")
    code, out, err = call(target)
    assert (code, out, target.read_text()) == (2, "", "mine")
    assert "--force" in err


def test_a_folder_that_is_not_there_is_seen_before_the_work(call, tmp_path, no_work):
    code, out, err = call(tmp_path / "gone" / f"file{call.suffix}")
    assert (code, out) == (2, "")
    assert "cannot write" in err


@posix
def test_the_trace_is_never_written_over_by_whatever_name(call, trace, tmp_path, no_work):
    before = trace.read_bytes()
    link = tmp_path / f"link{call.suffix}"
    link.symlink_to(trace)
    (tmp_path / "sub").mkdir()
    for name in (link, f"{tmp_path}/sub/../link{call.suffix}"):
        code, out, err = call(name, "--force")
        assert (code, out) == (2, "")
        assert "also read, or written" in err
    assert trace.read_bytes() == before


@posix
def test_a_pipe_is_written_to_and_stays_one(call, tmp_path):
    target = tmp_path / f"pipe{call.suffix}"
    os.mkfifo(target)
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(target.read_bytes()))
    thread.start()
    code, _, err = call(target)
    thread.join(60)
    assert code == 0, err
    assert len(got[0]) > 0
    assert stat.S_ISFIFO(target.stat().st_mode)


@posix
def test_a_device_by_a_link_stays_one(call, tmp_path):
    target = tmp_path / f"null{call.suffix}"
    target.symlink_to("/dev/null")
    assert call(target, "--force")[0] == 0
    assert target.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full here")
def test_a_full_device_exits_with_2(call, tmp_path):
    target = tmp_path / f"full{call.suffix}"
    target.symlink_to("/dev/full")
    code, out, err = call(target)
    assert (code, out) == (2, "")
    assert "No space left" in err


def test_the_map_never_replaces_what_is_shared(tracecli, trace, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path)
    for name in ("small.json", "sub/../small.json", "linked/small.json"):
        code, out, err = tracecli("share", trace, "-o", tmp_path / "small.json", "--map", f"{tmp_path}/{name}")
        assert (code, out) == (2, "")
        assert "also" in err
    assert not (tmp_path / "small.json").exists()


def test_a_budget_and_a_baseline_are_never_written_over(tracecli, trace, tmp_path):
    budget, baseline = tmp_path / "budget.json", tmp_path / "baseline.json"
    budget.write_text(BUDGET)
    assert tracecli("analyze", trace, "-o", baseline)[0] == 0
    for target in (budget, baseline):
        before = target.read_bytes()
        code, _, err = tracecli("check", trace, "--budget", budget, "--baseline", baseline, "-o", target, "--force")
        assert code == 2
        assert "also" in err
        assert target.read_bytes() == before


# -- names in commands and messages ------------------------------------------------------------------------------

HOSTILE = "-a; touch pwned $(id) `id` 'q'.json"


def test_a_suggested_command_is_one_that_a_shell_runs_and_no_more(trace, tmp_path, monkeypatch):
    """The very line, pasted into a shell: it analyses that file, and nothing else happens."""
    shell = shutil.which("sh")
    if shell is None:
        pytest.skip("no shell")
    (tmp_path / "in").mkdir()
    shutil.copy(trace, tmp_path / "in" / HOSTILE)
    monkeypatch.chdir(tmp_path / "in")
    shown = command("analyze", f"./{HOSTILE}", env={"COLUMNS": "300"}).stdout.decode()
    lines = [line[line.index("tracecli ") :] for line in shown.splitlines() if "tracecli analyze" in line]
    assert len(lines) == 2
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "tracecli"
    fake.write_text(f"#!{shell}\nprintf '%s\\n' \"$@\"\n")
    fake.chmod(0o755)
    for line in lines:
        environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run([shell, "-c", line], capture_output=True, text=True, env=environment)
        assert done.stderr == ""
        assert Path(done.stdout.splitlines()[1]).samefile(HOSTILE) or done.stdout.splitlines()[1] == f"./{HOSTILE}"
        assert not done.stdout.splitlines()[1].startswith("-")
    assert [p.name for p in Path().iterdir()] == [HOSTILE]


def test_no_message_shows_a_control_character_of_a_file_name(tracecli, trace, tmp_path):
    name = tmp_path / "a\x1b[31m\u202e.json"
    said = [
        tracecli("analyze", trace, "-o", name),
        tracecli("analyze", trace, "-o", name),
        tracecli("analyze", trace, "-o", name.with_suffix(".p\x1b")),
        tracecli("share", trace, "-o", name.with_name("b\x1b.json")),
        tracecli("export", trace, "-o", name.with_suffix(".x\x1b")),
        tracecli("check", name, "--init", "--step", "1"),
        tracecli("analyze", trace, "--on\x1b[31mly"),
    ]
    assert [code for code, _, _ in said] == [0, 2, 2, 0, 2, 2, 2]
    for _, _, err in said:
        assert err
        assert "\x1b" not in err
        assert "\u202e" not in err
