"""The fixtures that `capture` recorded, with what their manifest says of each."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from analyzer import pipeline
from analyzer.report.document import Report
from analyzer.sources.kineto.read import read

FIXTURES = Path(__file__).parents[1] / "fixtures"
MANIFEST: dict[str, dict[str, Any]] = json.loads((FIXTURES / "MANIFEST.json").read_text())["fixtures"]
NAMES = sorted(MANIFEST)


@cache
def report_of(name: str) -> Report:
    """The report of a fixture, made once a process."""
    return pipeline.run(read(str(FIXTURES / MANIFEST[name]["file"]), jobs=1))
