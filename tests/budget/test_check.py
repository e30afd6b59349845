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
from analyzer.budget import check, load, make
from analyzer.budget.outcome import CHECK, Checked, Outcome
from analyzer.errors import TraceError
from analyzer.render import Options, render
from analyzer.report.document import Report
from analyzer.report.results import Results
from analyzer.sources.kineto.read import read
from tests import micro
from tests.report import toy

FIXTURES = Path(__file__).parents[2] / "fixtures"

RUN: dict[str, Any] = {
    "trace": {"path": "run.json"},
    "launches": {"per_step": 149.0, "queue_wait_us_median": None},
    "devices": [{"device": 0, "utilization": 0.5}, {"device": 1, "utilization": 0.25}],
    "annotations": [{"name": "token", "cpu_us_median": 110.0, "cpu_us_spread": 4.0}],
    "verdict": {"bound": "overhead-bound"},
    "steps": [{"name": "ProfilerStep#1"}, {"name": "ProfilerStep#2"}],
    "findings": [
        {"name": "blocking-sync", "severity": "warning", "title": "waits", "evidence": [], "advice": "do not"},
        {"name": "kernel-spike", "severity": "note", "title": "a", "evidence": [], "advice": "look"},
        {"name": "kernel-spike", "severity": "note", "title": "b", "evidence": [], "advice": "look"},
    ],
}
BEFORE = {**RUN, "annotations": [{"name": "token", "cpu_us_median": 100.0, "cpu_us_spread": 2.0}]}


def judge(toml: str, run: Any = RUN, before: Any = None) -> Checked:
    baseline = None if before is None else toy.report(before)
    outcome = check.check(load.from_table(tomllib.loads(toml), "budget.toml"), toy.report(run), baseline)
    return outcome.results[Checked]


def verdicts(toml: str, run: Any = RUN, before: Any = None) -> list[str]:
    return [line.verdict.value for line in judge(toml, run, before).limits]


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


def test_a_verdict_that_changed_breaks_a_limit() -> None:
    limit = 'limits.verdict.bound.equals = "baseline"'
    (line,) = judge(limit, RUN, {**BEFORE, "verdict": {"bound": "compute-bound"}}).limits
    assert line.verdict is Outcome.BROKEN
    assert (line.baseline, line.reason) == ("compute-bound", "it is overhead-bound, and was compute-bound")
    assert line.limit == "equals the baseline"
    assert verdicts(limit, RUN, BEFORE) == ["ok"]
    with pytest.raises(TraceError, match="no baseline"):
        judge(limit)


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("steps = 3\nlimits.launches.per_step.max = 200", ["n/a"]),
        ("steps = 2\nlimits.launches.per_step.max = 200", ["ok"]),
        ("limits.launches.per_step = {max = 200, steps = 3}", ["n/a"]),
        ("limits.launches.per_step = {max = 200, steps = 3, allow_missing = true}", ["skipped"]),
        ("steps = 3\nlimits.launches.per_step = {max = 200, steps = 0}", ["ok"]),
    ],
)
def test_fewer_steps_than_a_limit_needs_settle_nothing(toml: str, expected: list[str]) -> None:
    assert verdicts(toml) == expected
    (line,) = judge(toml).limits
    assert expected == ["ok"] or line.reason == "not enough steps: 2, and the limit needs 3"


def test_steps_that_were_found_count_where_the_profiler_has_none() -> None:
    run = {**RUN, "steps": [], "steps_found": {"steps": 26}}
    assert verdicts("steps = 20\nlimits.launches.per_step.max = 200", run) == ["ok"]
    assert verdicts("steps = 27\nlimits.launches.per_step.max = 200", run) == ["n/a"]


def test_a_change_within_the_spread_breaks_nothing() -> None:
    noisy = {**RUN, "annotations": [{"name": "token", "cpu_us_median": 110.0, "cpu_us_spread": 12.0}]}
    limit = 'limits.annotations.token.cpu_us_median = {max = "+5%"'
    (line,) = judge(limit + "}", noisy, BEFORE).limits
    assert line.verdict is Outcome.OK
    assert "within the spread" in (line.reason or "")
    assert verdicts(limit + ", ignore_spread = true}", noisy, BEFORE) == ["broken"]


def test_the_worst_of_several_figures_is_shown() -> None:
    (line,) = judge('limits.devices."*".utilization.min = 0.6').limits
    assert (line.name, line.value) == ("devices.1.utilization", 0.25)
    assert "2 of 2" in (line.reason or "")


def test_what_fails_says_why_and_what_to_run_next() -> None:
    (figure, finding) = judge('limits.launches.per_step.max = 100\n[findings]\nforbid = ["blocking-sync"]').limits
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
        ("limits.launches.per_step = {max = 1, steps = 1.5}", "a whole number of steps"),
        ("steps = -1", "a whole number of steps"),
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


HOSTILE = 'evil\n::error::x ]]> </testcase> |"&<script> \x1b[31m \ufffe\x00 ]] --> %0A'


def hostile() -> Report:
    run: Any = copy.deepcopy(RUN)
    run["trace"]["path"] = HOSTILE
    run["annotations"] = [{"name": HOSTILE, "cpu_us_median": 5.0}]
    run["findings"] = [
        {"name": "blocking-sync", "severity": "error", "title": HOSTILE, "evidence": [], "advice": HOSTILE}
    ]
    limit = load.Limit(("annotations", HOSTILE, "cpu_us_median"), "max", 1, why=HOSTILE)
    budget = load.Budget(HOSTILE, (limit,), (load.FindingLimit("blocking-sync", 0),))
    return check.check(budget, toy.report(run))


@pytest.mark.parametrize("form", ["terminal", "json", "github", "junit", "markdown"])
def test_names_of_strangers_are_never_markup(form: str) -> None:
    text = render(hostile(), form, Options(width=200)).decode()
    assert text.endswith("\n")
    assert "\x1b" not in text
    assert "\x00" not in text
    if form == "junit":
        suite = ET.fromstring(text)
        assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
        cases = suite.findall("./testsuite/testcase")
        assert [len(case.findall("failure")) for case in cases] == [1, 1]
        assert "evil\\n::error::x ]]> </testcase>" in (cases[0][0].text or "")
    elif form == "json":
        assert json.loads(text)["limits"][0]["verdict"] == "broken"
    elif form == "github":
        lines = text.splitlines()
        assert len(lines) == 3
        for line in lines:
            head, _, data = line.removeprefix("::").partition("::")
            assert re.fullmatch(r"error (?:file=[^,:]*,)?title=[^,:]*", head)
            assert not re.search(r"%(?!25|0A|0D)", data)
    elif form == "markdown":
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert len(rows) == 4
        assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)
        assert "<script" not in text
    else:
        assert not any(line.startswith(("::", "evil")) and "\\n" not in line for line in text.splitlines())


def test_github_says_what_a_person_needs_at_the_budget_file() -> None:
    budget = load.from_table(
        tomllib.loads('limits.launches.per_step = {max = 100, why = "a token\'s, 5% more"}'), "ci/budget.toml"
    )
    text = render(check.check(budget, toy.report(RUN)), "github", Options()).decode()
    assert text.splitlines() == [
        "::error file=ci/budget.toml,title=tracecli check%3A launches.per_step::launches.per_step is 149, "
        "limit max 100: over by 49 (49.0%25)%0Aa token's, 5%25 more%0Atracecli analyze run.json --only launches",
        "::error title=tracecli check::run.json: 1 of 1 limit broken",
    ]


def test_junit_tells_failures_from_what_was_skipped() -> None:
    toml = """
        limits.launches.per_step.max = 100
        limits.annotations.gone.calls = {max = 1, allow_missing = true}
        limits.devices.0.utilization.min = 0.1
    """
    outcome = check.check(load.from_table(tomllib.loads(toml), "budget.toml"), toy.report(RUN))
    suites = ET.fromstring(render(outcome, "junit", Options()))
    (suite,) = suites
    for element in (suites, suite):
        counts = {key: element.get(key) for key in ("tests", "failures", "errors", "skipped")}
        assert counts == {"tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    inside = {case.get("name"): [child.tag for child in case] for case in suite}
    assert inside == {
        "launches.per_step max 100": ["failure"],
        "annotations.gone.calls max 1": ["skipped"],
        "devices.0.utilization min 0.1": [],
    }


def test_a_page_says_first_what_does_not_hold_and_cuts_nothing() -> None:
    """Twelve limits hold and the last one does not: all are shown, whatever number of rows is asked for."""
    limits = "limits.annotations.token.cpu_us_median.max = 1000\n"
    limits += 'limits.launches.per_step = {max = 100, why = "a launch costs 5 µs"}\n'
    outcome = judge(limits)
    many = Checked(
        trace=outcome.trace, budget=outcome.budget, holds=False, limits=(outcome.limits[0],) * 12 + outcome.limits[1:]
    )
    report = Report(CHECK, Results([many]))
    lines = render(report, "terminal", Options(top=1)).decode().splitlines()
    assert lines[2] == "BROKEN  1 of 13 limits broken"
    rows = [line.split() for line in lines if "max" in line.split()]
    assert len(rows) == 13
    assert rows[0][:5] == ["broken", "launches.per_step", "149", "max", "100"]
    assert {row[0] for row in rows[1:]} == {"ok"}
    assert "  launches.per_step: over by 49 (49.0%); a launch costs 5 µs" in lines
    assert "  → tracecli analyze run.json --only launches" in lines


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json.gz")), ids=lambda p: p.name.removesuffix(".json.gz"))
def test_a_budget_made_from_a_run_holds_for_it(path: Path) -> None:
    report = pipeline.run(read(str(path), jobs=1))
    text = make.make(report)
    outcome = check.check(load.from_table(tomllib.loads(text), "budget.toml"), report, report)
    checked = outcome.results[Checked]
    assert checked.holds, render(outcome, "terminal", Options()).decode()
    assert len(checked.limits) > 5
    assert "# was " in text or not report.contract["devices"]


def test_a_budget_has_what_a_run_can_tell(report: Any) -> None:
    """Figures of a row stand together, with the room that their kind needs; what is n/a is left out.

    One step; one kernel of 20 µs; two calls of 40 and 60 µs, of which the first launched it.
    """
    run = report([
        micro.step(1, 0, 200), micro.annotation("token", 5, 40), *micro.chain("aten::mm", 10, 1, 40, 20),
        micro.annotation("token", 50, 60),
    ])  # fmt: skip
    lines = make.make(run).splitlines()
    figures = [line.partition(" = ")[0] for line in lines[lines.index("[limits]") :] if ".max = " in line]
    assert figures == [
        "launches.per_step.max",
        "launches.bare_latency_us_median.max",
        "waits.per_step.max",
        "annotations.token.cpu_us_median.max",
        "annotations.token.device_us_median.max",
        "annotations.token.launches_median.max",
    ]
    assert "waits.per_step.max = 0.0  # was 0; blocking waits" in lines
    assert "annotations.token.cpu_us_median.max = 65  # was 50" in lines
    assert "annotations.token.device_us_median.max = 11  # was 10" in lines
    assert "devices.0.utilization.min = 0.7  # was 1; share of its span that the device was busy" in lines


def test_launches_are_counted_whole_where_there_are_no_steps(report: Any) -> None:
    text = make.make(report(micro.chain("aten::mm", 10, 1, 40, 20)))
    assert "launches.count.max = 2  # was 1" in text
    assert "per_step" not in text


def test_a_budget_whose_file_name_is_no_text_is_said(tmp_path: Path) -> None:
    """A name in another encoding than this system's."""
    budget = load.Budget("caf\udce9.toml", (load.Limit(("launches", "per_step"), "max", 1),), ())
    outcome = check.check(budget, toy.report(RUN))
    for form in ("terminal", "json", "github", "junit", "markdown"):
        assert b"udce9" in render(outcome, form, Options())


def test_a_budget_is_made_of_any_name(report: Any) -> None:
    run = report([micro.annotation('a "b".c\\d', 0, 5), micro.annotation(HOSTILE, 10, 5)])
    outcome = check.check(load.from_table(tomllib.loads(make.make(run)), "budget.toml"), run)
    names = [line.name for line in outcome.results[Checked].limits]
    assert r'annotations."a \"b\".c\\d".cpu_us_median' in names
    assert not any("evil" in name for name in names)
