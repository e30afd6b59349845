"""Each finding on its small trace: severity, time that could be won, and words, as worked out by hand."""

from __future__ import annotations

import pytest

from analyzer import units
from tests.findings.cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_figures_are_those_worked_out_by_hand(report, name):
    case = CASES[name]()
    result = report(case.events, **case.header)
    mine = [f for f in result.findings if f.name == name]
    assert len(mine) == 1
    (found,) = mine
    assert found.severity.value == case.severity
    assert units.us(found.up_to_ns) == (None if case.up_to is None else pytest.approx(case.up_to, abs=0.002))
    text = "\n".join((found.title, *found.evidence, found.advice))
    for part in case.says:
        assert part in text, text


@pytest.mark.parametrize("name", CASES)
def test_the_share_is_that_of_the_window(report, name):
    case = CASES[name]()
    result = report(case.events, **case.header)
    window = result.contract["window"]["duration_us"]
    for found in result.contract["findings"]:
        if found["up_to_us"] is None:
            assert found["share"] is None
        else:
            assert found["share"] == pytest.approx(found["up_to_us"] / window)
            assert 0 <= found["share"] <= 1
