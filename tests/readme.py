"""Keeps what the README shows true: every block after a `<!-- run: ... -->` is that command's output.

python -m tests.readme          says which blocks are stale
python -m tests.readme --write  puts them right
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
_BLOCK = re.compile(
    r"(<!-- run: (?P<command>[^\n]+?)(?: \| head -(?P<head>\d+))? -->\n```text\n)(?P<text>.*?)(```)", re.S
)
WIDTH = 100


def output(command: str, head: str | None) -> str:
    """What the command prints, as a terminal of WIDTH columns shows it."""
    words = shlex.split(command)
    assert words[0] == "tracecli"
    run = [sys.executable, "-c", "from analyzer.cli import main; main()", *words[1:]]
    environment = os.environ | {"COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT, env=environment, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.rstrip().splitlines()
    if head is not None:
        lines = [*lines[: int(head)], "…"] if len(lines) > int(head) else lines
    return "\n".join(line.rstrip() for line in lines) + "\n"


def fresh(text: str) -> str:
    """The README with every block as its command prints it now."""
    return _BLOCK.sub(lambda m: m[1] + output(m["command"], m["head"]) + m[5], text)


def blocks(text: str) -> list[tuple[str, str | None, str]]:
    """(command, head, shown text) of every block."""
    return [(m["command"], m["head"], m["text"]) for m in _BLOCK.finditer(text)]


if __name__ == "__main__":
    before = README.read_text(encoding="utf-8")
    after = fresh(before)
    if "--write" in sys.argv:
        README.write_text(after, encoding="utf-8")
    elif before != after:
        sys.exit("README.md is stale: python -m tests.readme --write")
