"""Commands are files: found, light to import, explained; and importing them changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from analyzer.cli import cli, commands
from analyzer.cli.exits import MEANINGS, Exit

NAMES = cli.list_commands(click.Context(cli))


def test_the_commands_are_the_files_of_the_folder(tracecli):
    assert set(NAMES) == {p.stem for p in Path(commands.__file__).parent.glob("*.py")} - {"__init__"}
    out = tracecli("--help")[1]
    for name in NAMES:
        assert f"\n  {name} " in out


def test_a_command_more_is_a_file_more(tracecli, tmp_path, monkeypatch):
    (tmp_path / "say_hello.py").write_text(
        "import click\n\n@click.command()\ndef say_hello():\n    'Greet.'\n    click.echo('hello')\n"
    )
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "analyzer.cli.commands.say_hello", raising=False)
    assert "say-hello  Greet." in tracecli("--help")[1]
    assert tracecli("say-hello") == (0, "hello\n", "")


@pytest.mark.parametrize("name", [None, *NAMES])
def test_help_ends_with_examples_that_parse_and_with_the_exit_codes(tracecli, name):
    code, out, _ = tracecli(*([name] if name else []), "--help")
    assert code == 0
    said = " ".join(out.split())
    for exit_code, meaning in MEANINGS.items():
        assert f"{exit_code} {meaning}" in said
    lines = [line.rpartition("| ")[2].split() for line in out.splitlines() if line.startswith("    ")]
    examples = [words[1:] for words in lines if words[:1] == ["tracecli"] and words[1] != "COMMAND"]
    assert examples
    for command, *words in examples:
        assert name in (None, command)
        words = words[: words.index(">")] if ">" in words else words
        found = cli.get_command(click.Context(cli), command)
        assert found is not None
        found.make_context(command, words)  # raises UsageError for an option that is none


def test_each_exit_code_has_its_meaning():
    assert set(MEANINGS) == set(Exit)


def test_importing_sets_no_signal_and_works_in_a_thread():
    code = (
        "import signal, threading\n"
        "before = {s: signal.getsignal(s) for s in signal.valid_signals()}\n"
        "def load():\n"
        "    from analyzer.cli import main\n"
        "    try:\n"
        "        main(['findings'])\n"
        "    except SystemExit as e:\n"
        "        codes.append(e.code)\n"
        "codes = []\n"
        "thread = threading.Thread(target=load)\n"
        "thread.start()\n"
        "thread.join()\n"
        "assert codes == [0], codes\n"
        "assert before == {s: signal.getsignal(s) for s in signal.valid_signals()}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "tracecli explain NAME" in done.stdout
