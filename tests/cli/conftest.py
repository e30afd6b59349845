"""What the tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import cli
from tests import micro
from tests.cli.process import TWO_STEPS


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
