"""What the tests of the recording module share."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def load() -> Callable[[Path], dict[str, Any]]:
    """Reads a trace, packed or plain."""

    def read(path: Path) -> dict[str, Any]:
        data = path.read_bytes()
        return json.loads(gzip.decompress(data) if path.name.endswith(".gz") else data)

    return read


@pytest.fixture
def steps_in(load: Callable[[Path], dict[str, Any]]) -> Callable[[Path], list[str]]:
    """The names of the profiler's steps in a trace, in the order of their time."""

    def names(path: Path) -> list[str]:
        events = [e for e in load(path)["traceEvents"] if str(e.get("name", "")).startswith("ProfilerStep#")]
        return [e["name"] for e in sorted(events, key=lambda e: e["ts"]) if e["cat"] == "user_annotation"]

    return names


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python on arguments in a folder of its own, with this tree importable."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**inherited, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture(autouse=True)
def no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are no distributed run, whatever started them."""
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
