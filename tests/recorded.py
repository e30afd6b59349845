"""The fixtures that `capture` recorded, with what their manifest says of each."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from analyzer import pipeline
from analyzer.events.schema import Trace
from analyzer.report.document import Report
from analyzer.sources.kineto.read import read

FIXTURES = Path(__file__).parents[1] / "fixtures"
_WHOLE = json.loads((FIXTURES / "MANIFEST.json").read_text())
#: What was recorded, by name.
MANIFEST: dict[str, dict[str, Any]] = _WHOLE["fixtures"]
NAMES = sorted(MANIFEST)
#: What a report of each must find: `must`, `notes`, `why`.
FINDINGS: dict[str, dict[str, Any]] = _WHOLE["findings"]


@cache
def trace_of(name: str) -> Trace:
    """A fixture's events, read once a process."""
    return read(str(FIXTURES / MANIFEST[name]["file"]), jobs=1)


@cache
def report_of(name: str) -> Report:
    """The report of a fixture, made once a process."""
    return pipeline.run(trace_of(name))
