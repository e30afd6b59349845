"""Figures by dotted name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.budget.names import UnknownName, parse, resolve, spell
from analyzer.errors import TraceError

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
        {"name": "gemm<1.5>", "median_us": 2.0}, {"name": "7", "median_us": 3.0}, {"name": "b", "median_us": 4.0},
    ],
    "annotations": [{"name": "decode_token", "cpu_us_median": 6.0}],
    "spikes": [],
    "capture": None,
    "verdict": {"bound": "compute-bound"},
}  # fmt: skip


def values(name: str) -> list[Any]:
    return [figure.value for figure in resolve(CONTRACT, parse(name))]


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
        ("capture.inflation", [None]),  # a group that this run has not
        ("gaps.by_cause.blocking_sync.share", [0]),  # a cause that cost nothing
        ("spikes.*.ratio", []),
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


@pytest.mark.parametrize("name", ["", "a..b", ".a", 'a."b', 'a."b"c'])
def test_a_malformed_name_is_an_error(name: str) -> None:
    with pytest.raises(TraceError):
        parse(name)


@given(st.lists(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), min_size=1), min_size=1))
def test_what_is_spelt_is_parsed(parts: list[str]) -> None:
    assert parse(spell(parts)) == tuple(parts)
