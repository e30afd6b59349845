"""Figures by dotted name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.errors import TraceError
from analyzer.render import Options, render
from analyzer.report.names import UnknownName, parse, resolve, spell
from tests import micro
from tests.report import toy

CONTRACT: dict[str, Any] = {
    "launches": {"per_step": 149.0, "count": 745, "queue_wait_us_median": None},
    "devices": [{"device": 0, "utilization": 0.5}, {"device": 3, "utilization": 0.25}],
    "gaps": {
        "by_cause": [
            {"device": 0, "cause": "dispatch", "total_us": 5.0, "share": 0.5},
            {"device": 3, "cause": "dispatch", "total_us": 7.0, "share": 0.1},
        ],
        "longest": [{"duration_us": 9.0}, {"duration_us": 4.0}],
    },
    "kernels": [
        {"name": "gemm<1.5>", "median_us": 2.0, "grid": [8, 4, 1]}, {"name": "7", "median_us": 3.0},
        {"name": "b", "median_us": 4.0},
    ],
    "annotations": [{"name": "decode_token", "cpu_us_median": 6.0}],
    "spikes": [],
    "capture": {"torch": "2.9", "inflation": 1.5, "host": {"cpus": 8}},
    "memory": None,
    "warnings": [{"code": "truncated", "message": "cut"}],
    "verdict": {"bound": "compute-bound"},
}  # fmt: skip


REPORT = toy.report(CONTRACT)


def values(name: str, report: Any = REPORT) -> list[Any]:
    return [figure.value for figure in resolve(report, parse(name))]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("launches.per_step", [149.0]),
        ("devices.3.utilization", [0.25]),
        ("devices.*.utilization", [0.5, 0.25]),
        ("gaps.by_cause.dispatch.total_us", [5.0, 7.0]),
        ("gaps.longest.0.duration_us", [9.0]),
        ("gaps.longest.-1.duration_us", [4.0]),
        ('kernels."gemm<1.5>".median_us', [2.0]),
        ("kernels.7.median_us", [3.0]),  # by its name, though there are positions
        ("kernels.2.median_us", [4.0]),
        ("kernels.count", [3]),
        ("spikes.count", [0]),
        ("verdict.bound", ["compute-bound"]),
        ("launches.queue_wait_us_median", [None]),
        ("capture.inflation", [1.5]),  # free in form
        ("capture.host.cpus", [8]),
        ("memory.bytes", [None]),  # a group that this run has not
        ("warnings.truncated.count", [None]),  # declared, and left out where it says nothing
        ('kernels."gemm<1.5>".grid.1', [4]),
        ("gaps.by_cause.blocking_sync.share", [0]),  # one of a closed set, which cost nothing
        ("gaps.by_cause.blocking_sync.total_us", [0]),
        ("gaps.by_cause.blocking_sync.median_us", [None]),  # of nothing there is no median
        ("spikes.*.duration_us", []),
    ],
)
def test_a_name_finds_its_figures(name: str, found: list[Any]) -> None:
    assert values(name) == found


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("launch.per_step", "launches.per_step"),
        ("launches.per_stp", "launches.per_step"),
        ("annotations.decode_tokens.cpu_us_median", "annotations.decode_token.cpu_us_median"),
        ("gaps.by_cause.blocking-sync.share", "gaps.by_cause.blocking_sync.share"),
        ('kernels."gemm<1.6>".median_us', 'kernels."gemm<1.5>".median_us'),
        ("launches.per_step.max", "launches.per_step"),
        # What is declared is known even where this run has none of it.
        ("spikes.*.duratoin_us", "spikes.*.duration_us"),
        ("annotations.gone.cpu_us_medain", "annotations.gone.cpu_us_median"),
        ("memory.byte", "memory.bytes"),
    ],
)
def test_an_unknown_name_suggests(name: str, suggestion: str) -> None:
    with pytest.raises(UnknownName) as caught:
        values(name)
    assert suggestion in caught.value.suggestions
    assert caught.value.hint is not None
    assert suggestion in caught.value.hint


@pytest.mark.parametrize("name", ["launches", "devices.0", "kernels", "devices.1.utilization", "nothing.at_all"])
def test_what_is_no_figure_is_an_error_that_lists(name: str) -> None:
    with pytest.raises(UnknownName) as caught:
        values(name)
    assert caught.value.hint


def test_a_cause_costs_nothing_only_where_there_is_a_device_that_could_wait() -> None:
    nothing = {"by_cause": [], "longest": []}
    idle_free = toy.report({**CONTRACT, "gaps": nothing})
    without = toy.report({**CONTRACT, "gaps": nothing, "devices": []})
    assert values("gaps.by_cause.dispatch.total_us", idle_free) == [0]
    assert values("gaps.by_cause.dispatch.total_us", without) == [None]


def test_an_element_that_is_not_there_is_told_from_a_name_that_means_nothing() -> None:
    with pytest.raises(UnknownName) as caught:
        values("annotations.gone.calls")
    assert caught.value.element
    with pytest.raises(UnknownName) as caught:
        values("annotations.gone.called")
    assert not caught.value.element


@pytest.mark.parametrize("name", ["", "a..b", ".a", 'a."b', 'a."b"c'])
def test_a_malformed_name_is_an_error(name: str) -> None:
    with pytest.raises(TraceError):
        parse(name)


@given(st.lists(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), min_size=1), min_size=1))
def test_what_is_spelt_is_parsed(parts: list[str]) -> None:
    assert parse(spell(parts)) == tuple(parts)


def leaves(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All figures of a report with the names that mean every element of each list on the way."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list):
        for value in node:
            yield from leaves(value, (*path, "*"))
    else:
        yield path, node


def test_every_figure_of_a_run_has_a_name(report: Any) -> None:
    """Slow oracle: whatever stands in the JSON is found, in its order, under its path."""
    run = report(micro.everything(), tracecli_capture={"torch": "2.9.0", "unprofiled_step_us": 10.0})
    found: dict[tuple[str, ...], list[Any]] = {}
    for path, value in leaves(json.loads(render(run, "json", Options())), ()):
        found.setdefault(path, []).append(value)
    assert len(found) > 100
    for path, expected in found.items():
        assert [f.value for f in resolve(run, path) if f.value is not None] == [v for v in expected if v is not None]
