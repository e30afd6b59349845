"""Imports point down only; the analyzer never needs torch, and its help needs nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_imports_keep_the_layers():
    pytest.importorskip("importlinter")
    done = run("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache")
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def test_the_layers_name_every_module():
    """`exhaustive` makes a new module at the top a failure until somebody says where it belongs."""
    assert "exhaustive = true" in (ROOT / "pyproject.toml").read_text()


# A module that is None in `sys.modules` cannot be imported, whether it is installed or not.
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules["torch"] = sys.modules["capture"] = None
import analyzer
for module in pkgutil.walk_packages(analyzer.__path__, "analyzer."):
    importlib.import_module(module.name)
"""


def test_no_module_of_the_analyzer_imports_torch_or_the_recorder():
    done = run("-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["analyze", "--help"], ["--version"]])
def test_help_answers_without_heavy_imports(arguments):
    """polars, numpy, orjson and rich take longer to import than the help takes to read."""
    code = (
        "import sys\n"
        "from analyzer.cli import main\n"
        "try:\n"
        f"    main({arguments})\n"
        "finally:\n"
        "    heavy = {'polars', 'numpy', 'orjson', 'rich', 'torch', 'plotly'} & set(sys.modules)\n"
        "    print('heavy:', sorted(heavy), file=sys.stderr)\n"
    )
    done = run("-c", code)
    assert done.returncode == 0
    assert "heavy: []" in done.stderr
