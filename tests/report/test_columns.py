"""A figure is declared once: key, unit, title and meaning come from the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest

from analyzer.report import codec
from analyzer.report.columns import MeanNs, Name, Ns, Row, Unit, column, columns_of, key_of, members_of


class Inner(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("name", "of it")]


class Outer(Row, frozen=True, kw_only=True):
    total_ns: Annotated[Ns | None, column("total", "sum; null: none", bar=True)]
    clock_ns: Annotated[int, column("", "of the file's clock")] = msgspec.field(name="clock_ns")
    color: Annotated[Literal["red", "blue"], column("color", "of the two")]
    inner: tuple[Inner, ...]
    free: Annotated[Mapping[str, Any], column("", "whatever")]


@pytest.mark.parametrize(
    ("field", "key"),
    [("total_ns", "total_us"), ("cpu_ns_median", "cpu_us_median"), ("ns", "us"), ("spans", "spans"), ("runs", "runs")],
)
def test_a_time_is_in_us_outside(field, key):
    assert key_of(field) == key


def test_a_figure_has_its_unit_title_and_meaning():
    total = columns_of(Outer)["total_ns"]
    assert (total.key, total.unit, total.title, total.doc, total.bar) == (
        "total_us", Unit.NS, "total", "sum; null: none", True,
    )  # fmt: skip


def test_a_field_with_a_name_of_its_own_has_that_key_and_is_not_scaled():
    assert columns_of(Outer)["clock_ns"].key == "clock_ns"
    row = Outer(total_ns=1500, clock_ns=1500, color="red", inner=(), free={})
    plain = codec.dump(row)
    assert (plain["total_us"], plain["clock_ns"]) == (1.5, 1500)
    assert codec.load(Outer, plain) == row


def test_a_closed_set_of_texts_is_a_figure_and_an_object_is_a_member():
    assert columns_of(Outer)["color"].doc == "of the two"
    assert {field: member.row for field, member in members_of(Outer).items()} == {"inner": Inner, "free": None}


def test_what_is_not_in_the_closed_set_is_refused():
    plain = codec.dump(Outer(total_ns=None, clock_ns=0, color="red", inner=(), free={}))
    with pytest.raises(msgspec.ValidationError, match="green"):
        codec.load(Outer, {**plain, "color": "green"})


def test_a_mean_keeps_three_decimals_of_a_us():
    class Mean(Row, frozen=True, kw_only=True):
        ns: Annotated[MeanNs, column("", "mean")]

    assert codec.dump(Mean(ns=1234.56)) == {"us": 1.235}
