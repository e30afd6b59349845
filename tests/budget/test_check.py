"""Limits against reports, and what is said about them."""

from __future__ import annotations

import copy
import json
import re
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from analyzer import pipeline
from analyzer.budget import check, load, make, render
from analyzer.budget.check import Outcome, Verdict
from analyzer.errors import TraceError
from analyzer.sources.kineto.read import read

FIXTURES = Path(__file__).parents[2] / "fixtures"

RUN: dict[str, Any] = {
    "trace": {"path": "run.json"},
    "launches": {"per_step": 149.0, "queue_wait_us_median": None},
    "devices": [{"device": 0, "utilization": 0.5}, {"device": 1, "utilization": 0.25}],
    "annotations": [{"name": "token", "cpu_us_median": 110.0, "cpu_us_spread": 4.0}],
    "verdict": {"bound": "overhead-bound"},
    "findings": [
        {"name": "blocking-sync", "severity": "warning", "title": "waits"},
        {"name": "kernel-spike", "severity": "note", "title": "a"},
        {"name": "kernel-spike", "severity": "note", "title": "b"},
    ],
}
BEFORE = {**RUN, "annotations": [{"name": "token", "cpu_us_median": 100.0, "cpu_us_spread": 2.0}]}


def judge(toml: str, run: Any = RUN, before: Any = None) -> Outcome:
    return check.check(load.from_table(tomllib.loads(toml), "budget.toml"), run, before)


def verdicts(toml: str, run: Any = RUN, before: Any = None) -> list[str]:
    return [line.verdict.value for line in judge(toml, run, before).lines]


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("limits.launches.per_step.max = 149", ["ok"]),
        ("limits.launches.per_step.max = 148.9", ["broken"]),
        ("limits.launches.per_step = {min = 100, max = 120}", ["broken", "ok"]),
        ('limits."launches.per_step".equals = 149', ["ok"]),
        ('limits.verdict.bound.equals = "compute-bound"', ["broken"]),
        ("limits.devices.0.utilization.min = 0.4", ["ok"]),
        ('limits.devices."*".utilization.min = 0.4', ["broken"]),
        ("limits.launches.queue_wait_us_median.max = 5", ["n/a"]),
        ("limits.launches.queue_wait_us_median = {max = 5, allow_missing = true}", ["skipped"]),
        ("limits.annotations.gone.calls = {max = 5, allow_missing = true}", ["skipped"]),
        ('findings.forbid = ["blocking-sync"]', ["broken"]),
        ('findings.forbid = ["graph-break"]', ["ok"]),
        ("findings.at_most = {kernel-spike = 2, note = 1, error = 0}", ["ok", "broken", "ok"]),
    ],
)
def test_limits(toml: str, expected: list[str]) -> None:
    assert sorted(verdicts(toml)) == sorted(expected)
    assert judge(toml).holds == all(v in ("ok", "skipped") for v in expected)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ('max = "+10%"', "ok"),
        ('max = "+5%"', "broken"),
        ('max = "+7%"', "broken"),
        ('min = "-5%"', "ok"),
        ('min = "+20%"', "broken"),
    ],
)
def test_limits_relative_to_a_baseline(limit: str, expected: str) -> None:
    assert verdicts(f"limits.annotations.token.cpu_us_median = {{{limit}}}", RUN, BEFORE) == [expected]


def test_a_change_within_the_spread_breaks_nothing() -> None:
    noisy = {**RUN, "annotations": [{"name": "token", "cpu_us_median": 110.0, "cpu_us_spread": 12.0}]}
    limit = 'limits.annotations.token.cpu_us_median = {max = "+5%"'
    (line,) = judge(limit + "}", noisy, BEFORE).lines
    assert line.verdict is Verdict.OK
    assert "within the spread" in line.reason
    assert verdicts(limit + ", ignore_spread = true}", noisy, BEFORE) == ["broken"]


def test_the_worst_of_several_figures_is_shown() -> None:
    (line,) = judge('limits.devices."*".utilization.min = 0.6').lines
    assert (line.name, line.value) == ("devices.1.utilization", 0.25)
    assert "2 of 2" in line.reason


def test_what_fails_says_why_and_what_to_run_next() -> None:
    (figure, finding) = judge('limits.launches.per_step.max = 100\n[findings]\nforbid = ["blocking-sync"]').lines
    assert figure.reason == "over by 49 (49.0%)"
    assert figure.next == "tracecli analyze run.json --only launches"
    assert finding.next == "tracecli explain blocking-sync"


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("", "limits nothing"),
        ("limit.launches.per_step.max = 3", "did you mean limits"),
        ("limits.launches.per_step = 3", "which limit"),
        ("limits.launches.per_step.maximum = 3", "did you mean max"),
        ('limits.launches.per_step.max = "fast"', "neither a number nor a percentage"),
        ("limits.launches.per_step.max = true", "a number is wanted"),
        ("limits.launches.per_step.max = nan", "a number is wanted"),
        ("limits.launches.per_step = {allow_missing = true}", "no limit given"),
        ("limits.launches.per_step = {max = 1, allow_missing = 1}", "true or false"),
        ("limits = 3", "a table is wanted"),
        ('findings.forbid = "blocking-sync"', "a list of names"),
        ('findings.forbid = ["blocking-synk"]', "did you mean blocking-sync"),
        ("findings.at_most.kernel-spike = -1", "a whole number"),
        ("findings.ban = []", "unknown key"),
        ("baseline = 3", "a path is wanted"),
        ("limits.launch.per_step.max = 3", "did you mean launches.per_step"),
        ("limits.annotations.token.cpu_us_medain = {max = 3, allow_missing = true}", "did you mean"),
        ('limits.launches.per_step.max = "+5%"', "no baseline"),
        ("limits.verdict.bound.max = 3", "no number"),
    ],
)
def test_mistakes_are_errors_that_help(toml: str, said: str) -> None:
    with pytest.raises(TraceError, match=re.escape(said)):
        judge(toml)


HOSTILE = 'evil\n::error::x ]]> </testcase> |"&<script> \x1b[31m \ud800 ]] --> %0A'


def hostile() -> Outcome:
    run = copy.deepcopy(RUN)
    run["trace"]["path"] = HOSTILE
    run["annotations"] = [{"name": HOSTILE, "cpu_us_median": 5.0}]
    run["findings"] = [{"name": "blocking-sync", "severity": "error", "title": HOSTILE}]
    limit = load.Limit(("annotations", HOSTILE, "cpu_us_median"), "max", 1, why=HOSTILE)
    budget = load.Budget(HOSTILE, (limit,), (load.FindingLimit("blocking-sync", 0),))
    return check.check(budget, run)


@pytest.mark.parametrize("form", render.FORMATS)
def test_names_of_strangers_are_never_markup(form: str) -> None:
    text = render.render(hostile(), form)
    assert text.endswith("\n")
    assert "\x1b" not in text
    if form == "junit":
        suite = ET.fromstring(text)
        assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
        assert len(suite.findall(".//failure")) == 2
    elif form == "json":
        assert json.loads(text)["limits"][0]["verdict"] == "broken"
    elif form == "github":
        lines = text.splitlines()
        assert len(lines) == 3
        for line in lines:
            head, _, data = line.removeprefix("::").partition("::")
            assert re.fullmatch(r"error (?:file=[^,:]*,)?title=[^,:]*", head)
            assert not re.search(r"%(?!25|0A|0D)", data)
    elif form == "text":
        assert len(text.splitlines()) == 8
    else:
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert len(rows) == 4
        assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)
        assert "<script" not in text


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json.gz")), ids=lambda p: p.name.removesuffix(".json.gz"))
def test_a_budget_made_from_a_run_holds_for_it(path: Path) -> None:
    contract = pipeline.run(read(path, jobs=1)).contract
    text = make.make(contract)
    outcome = check.check(load.from_table(tomllib.loads(text), "budget.toml"), contract, contract)
    assert outcome.holds, render.text(outcome)
    assert len(outcome.lines) > 5
    assert "# was " in text or not contract["devices"]


def test_a_budget_is_made_of_any_name() -> None:
    run = {**RUN, "annotations": [{"name": 'a "b".c\\d', "cpu_us_median": 5.0}, {"name": HOSTILE, "cpu_us_median": 1}]}
    outcome = judge(make.make(run), run)
    names = [line.name for line in outcome.lines]
    assert r'annotations."a \"b\".c\\d".cpu_us_median' in names
    assert not any("evil" in name for name in names)
