"""A document's elements as any sink gets them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from analyzer.sources.kineto.document import Document
from analyzer.sources.kineto.elements import parse
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Source
from tests.sources import micro


class Collected:
    """A sink that keeps its elements as they are."""

    def __init__(self) -> None:
        self.elements: list[Any] = []

    def add(self, piece: bytes) -> None:
        self.elements += parse(piece)

    def take(self) -> dict[str, Any]:
        return {}


def walked(text: bytes) -> tuple[list[Any], Document]:
    sink, notes = Collected(), Notes()
    with Source("x.json", notes, file=io.BytesIO(text)) as source:
        document = Document(source, notes, sink, block=256, chunk=64, head=64)
        document.walk()
    return sink.elements, document


@pytest.mark.parametrize("layout", micro.LAYOUTS)
def test_a_sink_gets_every_element_once_and_in_order(layout: str) -> None:
    events = micro.mixed(3, 30)
    elements, document = walked(micro.dump(events, layout))
    assert elements == events
    assert document.notes.warnings() == ()


def test_lists_say_how_deep_they_lie_and_the_least_deep_count() -> None:
    inner, outer = [{"ph": "i"}], [{"ph": "X"}]
    elements, document = walked(json.dumps({"a": {"traceEvents": inner}, "traceEvents": outer}).encode())
    assert elements == inner + outer
    assert [events.depth for events in document.lists] == [2, 1]
    assert document.depth == 1


def test_small_members_beside_the_list_are_kept() -> None:
    _, document = walked(b'{"a": 5, "traceEvents": [{"ph": "X"}], "b": {"c": [1]}}')
    assert document.values == {"a": 5, "b": {"c": [1]}}


def test_damage_is_repaired_on_the_way() -> None:
    elements, document = walked(rb'[{"ph": "X", "name": "a\dir"}, {"ph": "X", "name": "b"}]')
    assert [e["name"] for e in elements] == ["a\\dir", "b"]
    assert [w.code for w in document.notes.warnings()] == ["invalid-escape"]


def test_of_a_cut_file_a_sink_gets_what_is_whole() -> None:
    elements, document = walked(b'{"traceEvents": [{"ph": "X"}, {"ph": "X", "na')
    assert elements == [{"ph": "X"}]
    assert document.truncated


def test_a_copy_holds_every_byte_that_was_read() -> None:
    text = micro.dump(micro.mixed(3, 30), "kineto")
    copy, notes = io.BytesIO(), Notes()
    with Source("x.json", notes, file=io.BytesIO(text), copy=copy) as source:
        Document(source, notes, Collected()).walk()
        assert source.taken == len(text)
    assert copy.getvalue() == text
