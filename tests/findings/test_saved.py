"""A saved report is judged as a fresh one: whatever a finding goes by is in the JSON."""

from __future__ import annotations

import json

import pytest

from analyzer import pipeline
from analyzer.report import codec
from analyzer.report.document import Findings
from analyzer.report.results import Results
from tests.findings.cases import CASES
from tests.recorded import NAMES, report_of


def judged_again(contract):
    """Findings of what somebody reads who has the JSON alone."""
    plain = json.loads(json.dumps(contract, allow_nan=False))
    kinds = [kind for kind in pipeline.run_kind().results if kind is not Findings]
    return pipeline.judge(Results(codec.load(kind, plain) for kind in kinds))


@pytest.mark.parametrize("name", CASES)
def test_a_small_trace_is_judged_alike(report, name):
    case = CASES[name]()
    fresh = report(case.events, **case.header)
    again = judged_again(fresh.contract)
    assert name in {f.name for f in again}
    assert [codec.dump(f) for f in again] == fresh.contract["findings"]


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_fixture_is_judged_alike(name):
    contract = report_of(name).contract
    assert [codec.dump(f) for f in judged_again(contract)] == contract["findings"]
