"""What all tests share: micro-traces as chains and as reports, snapshots, and traces beside the checkout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import micro

# Random traces are the same in every run, and no test depends on how fast a machine is.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-snapshots", action="store_true", help="Write what is now rendered as the snapshots.")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded and public traces beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("no folder of shared traces beside the checkout")
    return folder


@pytest.fixture
def chains(tmp_path: Path) -> Callable[..., Any]:
    """The chains of a micro-trace."""
    return lambda events, **header: micro.chains_of(tmp_path / "micro.json", events, **header)


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., Any]:
    """The whole report of a micro-trace."""
    return lambda events, **options: micro.report_of(tmp_path / "micro.json", events, **options)


@pytest.fixture
def contract(report: Callable[..., Any]) -> Callable[..., Any]:
    """The JSON report of a micro-trace, as an object."""
    return lambda events, **options: report(events, **options).contract


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the snapshot of that name; `--write-snapshots` writes it."""
    folder = Path(str(request.fspath)).parent / "snapshots"
    update = request.config.getoption("--write-snapshots")

    def check(name: str, text: str) -> None:
        path = folder / f"{name}.txt"
        if update:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"no snapshot {path.name}; --write-snapshots writes it"
        # Lists of lines, so that a difference names the line.
        assert text.splitlines() == path.read_text(encoding="utf-8").splitlines(), f"differs from {path.name}"

    return check
