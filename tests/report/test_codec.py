"""Rows to JSON and back: times in µs outside and in ns inside, and what is not of the declared form is refused."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.report import codec
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, Share, Unit, column, columns_of, keys_of, members_of
from analyzer.report.results import Result


class Part(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("part", "of it")]
    pair_ns: Annotated[tuple[Ns, Ns], column("", "before and after")]


class Whole(Result, frozen=True, kw_only=True):
    kind: Annotated[Literal["a", "b"], column("", "one of two")]
    calls: Annotated[Count, column("calls", "how often")]
    mean_ns: Annotated[MeanNs | None, column("mean", "null: no calls")]
    share: Annotated[Share, column("share", "of all")]
    by_cause_ns: Annotated[dict[str, MeanNs], column("", "times by cause")]
    free: Annotated[dict[str, Any] | None, column("", "whatever")]
    one: Part | None
    parts: tuple[Part, ...]


TIMES = st.integers(-(2**52), 2**52)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
PARTS = st.builds(Part, name=TEXTS, pair_ns=st.tuples(TIMES, TIMES))
WHOLES = st.builds(
    Whole,
    kind=st.sampled_from("ab"),
    calls=st.integers(0, 2**53),
    mean_ns=st.none() | st.floats(-1e15, 1e15),
    share=st.floats(0, 1),
    by_cause_ns=st.dictionaries(TEXTS, st.floats(0, 1e15), max_size=3),
    free=st.none() | st.dictionaries(TEXTS, st.integers(-9, 9) | TEXTS, max_size=3),
    one=st.none() | PARTS,
    parts=st.lists(PARTS, max_size=3).map(tuple),
)


@given(WHOLES)
def test_what_is_written_is_read_back_to_the_ns(row: Whole) -> None:
    plain = json.loads(json.dumps(codec.dump(row)))
    again = codec.load(Whole, plain)
    assert codec.dump(again) == plain
    assert (again.one, again.parts, again.calls, again.free) == (row.one, row.parts, row.calls, row.free)
    assert again.by_cause_ns == pytest.approx(row.by_cause_ns, abs=1, rel=1e-15)
    assert codec.as_read(again) == again


@given(WHOLES)
def test_what_is_written_is_as_the_schema_says(row: Whole) -> None:
    body, definitions = codec.schema([Whole])
    jsonschema.validate(json.loads(json.dumps(codec.dump(row))), {**body, "$defs": definitions})


GOOD = {
    "kind": "a", "calls": 3, "mean_us": 1.5, "share": 0.5, "by_cause_us": {"dispatch": 2.5}, "free": None, "one": None,
    "parts": [{"name": "x", "pair_us": [1.5, 2]}],
}  # fmt: skip


def test_times_are_ns_inside_wherever_they_stand() -> None:
    row = codec.load(Whole, GOOD)
    assert (row.mean_ns, row.by_cause_ns, row.parts[0].pair_ns) == (1500, {"dispatch": 2500}, (1500, 2000))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"calls": "3"}, "$.calls"),
        ({"calls": 3.5}, "$.calls"),
        ({"kind": "c"}, "$.kind"),
        ({"mean_us": True}, "$.mean_us"),
        ({"by_cause_us": {"dispatch": "much"}}, "$.by_cause_us"),
        ({"parts": {}}, "$.parts"),
        ({"parts": [{"name": "x"}]}, "$.parts[0]"),
        ({"parts": [{"name": None, "pair_us": [1, 2]}]}, "$.parts[0].name"),
        ({"parts": [{"name": "x", "pair_us": [1, 1e300]}]}, "$.parts[0].pair_us[1]"),  # no time fits that
        ({"parts": [{"name": "x", "pair_us": [1]}]}, "$.parts[0].pair_us"),
        ({"one": [1]}, "$.one"),
    ],
)
def test_what_is_not_of_the_declared_form_is_refused_with_its_place(change: dict[str, Any], place: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        codec.load(Whole, {**GOOD, **change})
    assert place in str(caught.value)


@pytest.mark.parametrize("key", sorted(GOOD))
def test_a_key_that_is_missing_is_named(key: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=key):
        codec.load(Whole, {k: v for k, v in GOOD.items() if k != key})


def test_keys_that_are_not_declared_are_left_alone() -> None:
    assert codec.load(Whole, {**GOOD, "added_later": 1}) == codec.load(Whole, GOOD)


def test_a_mapping_of_figures_is_a_figure_and_a_closed_set_is_known() -> None:
    columns = columns_of(Whole)
    assert (columns["by_cause_ns"].unit, columns["by_cause_ns"].key) == (Unit.NS, "by_cause_us")
    assert columns["kind"].choices == ("a", "b")
    assert (columns["calls"].whole, columns["mean_ns"].whole) == (True, False)
    assert {field: m.many for field, m in members_of(Whole).items()} == {"free": False, "one": False, "parts": True}
    assert list(keys_of(Part)) == ["name", "pair_us"]
