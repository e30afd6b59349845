"""An analysis with its table, JSON and schema is one file; a finding is one; a format is one."""

from __future__ import annotations

import importlib
import sys

import pytest

from analyzer import analyses, findings, pipeline, render
from analyzer.render import Options
from analyzer.report import codec
from tests import micro

ANALYSIS = '''
"""How many events of each thread there are."""

from typing import Annotated

import numpy as np

from analyzer.report.blocks import table
from analyzer.report.columns import Count, Name, Ns, Row, column
from analyzer.report.results import Result


class ThreadRow(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("thread", "of the process")]
    events: Annotated[Count, column("events", "host events on it", bar=True)]
    longest_ns: Annotated[Ns, column("longest", "duration of the longest of them")]


class ThreadCounts(Result, frozen=True, kw_only=True):
    SECTION = "thread_counts"
    TITLE = "Threads"

    thread_counts: tuple[ThreadRow, ...]

    def blocks(self):
        yield table("Events by thread", ThreadRow, self.thread_counts, "name", "events", "longest_ns")


def analyze(chains):
    host = chains.host
    rows = [
        ThreadRow(name=f"t{t}", events=int((host.thread == t).sum()),
                  longest_ns=int((host.end - host.start)[host.thread == t].max()))
        for t in np.unique(host.thread)
    ]
    return ThreadCounts(thread_counts=tuple(rows))
'''

FINDING = '''
"""One thread does it all."""

from analyzer.analyses.thread_counts import ThreadCounts
from analyzer.report.findings import Finding, Severity

NAME = "lonely-thread"


def find(results):
    rows = results[ThreadCounts].thread_counts
    if len(rows) == 1:
        yield Finding(name=NAME, severity=Severity.NOTE, title=f"{rows[0].events} events on one thread", evidence=(),
                      advice="use more")
'''

FORMAT = '''
"""Names and counts of findings, a line each."""

SUFFIXES = (".lines",)
KINDS = ("run",)


def render(report, options):
    return "".join(f"{f.name}: {f.title}\\n" for f in report.findings).encode()
'''


@pytest.fixture
def added(tmp_path, monkeypatch):
    """A package beside each of ours, with one file in it."""
    made = []
    for package, name, text in (
        (analyses, "thread_counts", ANALYSIS),
        (findings, "lonely_thread", FINDING),
        (render, "lines", FORMAT),
    ):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        made.append(f"{package.__name__}.{name}")
    importlib.invalidate_caches()
    pipeline.modules.cache_clear()
    pipeline.run_kind.cache_clear()
    yield
    for name in made:
        sys.modules.pop(name, None)
    pipeline.modules.cache_clear()
    pipeline.run_kind.cache_clear()


def test_one_file_each_adds_an_analysis_a_finding_and_a_format(tmp_path, added):
    """Two operators of 30 and 5 µs on one thread."""
    report = micro.report_of(tmp_path / "run.json", [micro.op("aten::mm", 0, 30), micro.op("aten::add", 40, 5)])

    assert report.contract["thread_counts"] == [{"name": "t0", "events": 2, "longest_us": 30.0}]
    schema = pipeline.run_kind().schema()
    assert schema["$defs"]["ThreadRow"]["properties"]["longest_us"] == {
        "type": "number", "x-unit": "us", "title": "longest", "description": "duration of the longest of them",
    }  # fmt: skip
    assert "thread_counts" in schema["required"]

    text = render.render(report, "terminal", Options(only=("thread_counts",))).decode()
    assert "Events by thread" in text
    assert "30.0 µs" in text

    assert "2 events on one thread" in [f.title for f in report.findings]
    assert render.suffixes()[".lines"] == "lines"
    assert b"lonely-thread: 2 events on one thread\n" in render.render(report, "lines", Options())

    (result,) = [r for r in report.results if r.SECTION == "thread_counts"]
    assert codec.load(type(result), report.contract) == result
