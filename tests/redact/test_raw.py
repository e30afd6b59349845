"""The stream of raw pieces."""

from __future__ import annotations

import io
import json
import sys
from unittest import mock

import pytest

from analyzer.redact.raw import Piece, pieces
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Source
from tests.sources import micro


def pieces_of(text: bytes) -> tuple[list[Piece], Notes]:
    notes = Notes()
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(text))), Source("-", notes) as source:
        return list(pieces(source, notes)), notes


@pytest.mark.parametrize("layout", micro.LAYOUTS)
def test_runs_hold_all_events_and_the_rest_is_untouched(layout: str) -> None:
    events = micro.mixed(3, 30)
    text = micro.dump(events, layout, baseTimeNanoseconds=5)
    out, notes = pieces_of(text)
    assert notes.warnings() == ()
    got = [e for piece in out if piece.events for e in json.loads(b"[" + piece.text + b"]")]
    assert got == events
    for piece in out:
        if piece.events:
            assert text[piece.offset : piece.offset + len(piece.text)] == piece.text
    around = b"".join(piece.text for piece in out if not piece.events)
    head, tail = text.index(b"traceEvents"), text.rindex(b"]")
    assert around.startswith(text[: head + 11])
    assert around.endswith(text[tail:][-20:])


def test_several_lists_come_in_order() -> None:
    text = b'{"traceEvents": [{"ph": "X"}], "x": 1, "traceEvents": [{"ph": "i"}], "y": [2]}'
    out, _ = pieces_of(text)
    assert [(p.events, p.text) for p in out] == [
        (False, b'{"traceEvents": ['),
        (True, b'{"ph": "X"}'),
        (False, b'], "x": 1, "traceEvents": ['),
        (True, b'{"ph": "i"}'),
        (False, b'], "y": [2]}'),
    ]
    assert [p.offset for p in out] == [0, 17, 28, 55, 66]


def test_damage_is_repaired_on_the_way() -> None:
    text = rb'[{"ph": "X", "name": "a\dir"}, {"ph": "X", "name": "b"}]'
    out, notes = pieces_of(text)
    runs = [json.loads(b"[" + p.text + b"]") for p in out if p.events]
    assert [e["name"] for run in runs for e in run] == ["a\\dir", "b"]
    assert [w.code for w in notes.warnings()] == ["invalid-escape"]


def test_a_cut_file_keeps_its_tail() -> None:
    out, _ = pieces_of(b'{"traceEvents": [{"ph": "X"}, {"ph": "X", "na')
    assert [p.text for p in out if p.events] == [b'{"ph": "X"}']
    assert out[-1].text == b'{"ph": "X", "na'
