"""A few hundred mutated traces through the whole report; `tests.fuzz_report` runs more."""

from __future__ import annotations

from tests import fuzz_report
from tests.sources.fuzz import originals


def test_reports_on_mutated_traces_hold_their_sums() -> None:
    pool = originals()
    kinds = [fuzz_report.one(seed, pool) for seed in range(150)]
    assert kinds.count("reported") > 100
