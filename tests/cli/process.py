"""The console script as a process of its own, and the trace that these tests read."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.micro import chain, step

TWO_STEPS = [
    step(1, 0, 100),
    *chain("aten::mm", 10, 1, 40, 20),
    step(2, 100, 100),
    *chain("aten::add", 110, 2, 140, 30),
]


def command(*arguments, **options) -> subprocess.CompletedProcess[bytes]:
    """The console script as a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    environment |= options.pop("env", {})
    code = "from analyzer.cli import main; main()"
    pipes = {} if "stdout" in options else {"capture_output": True}
    words = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(words, env=environment, timeout=60, **pipes, **options)
