"""A report of each kind, of micro-traces."""

from __future__ import annotations

from pathlib import Path

from analyzer import pipeline
from analyzer.budget import check, load
from analyzer.compare.report import compare
from analyzer.info import describe
from analyzer.report.document import Report
from analyzer.sources.kineto.read import read
from tests import micro

BUDGET = {
    "limits": {
        "launches": {"count": {"max": 1, "why": "a launch costs 5 µs"}},
        "annotations": {"gone": {"calls": {"max": 1, "allow_missing": True}}},
        "verdict": {"bound": {"equals": "compute-bound"}},
        "kernels": {"count": {"max": 10_000}},
    }
}


def of_each(folder: Path) -> dict[str, Report]:
    """Kind -> report: a run of a little of everything, its file, two and three runs compared, a broken budget."""
    stamp = {"torch": "2.9.0", "scenario": "demo", "unprofiled_step_us": 10.0, "profiled_step_us": 12.5}
    path = micro.write(folder / "run.json", micro.everything(), tracecli_capture=stamp)
    other = micro.write(folder / "other.json", micro.everything()[:-3], devices=())
    run, second = (pipeline.run(read(str(p), jobs=1)) for p in (path, other))
    return {
        "run": run,
        "file": describe(read(str(path), jobs=1)),
        "comparison": compare([run.results, second.results], ["run", "other"]),
        "check": check.check(load.from_table(BUDGET, "budget.toml"), run),
    }
