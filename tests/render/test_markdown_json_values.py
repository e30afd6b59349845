"""Markdown and JSON: text of strangers is never markup; values by their unit."""

from __future__ import annotations

import json
import re

import pytest

from analyzer.render import Options, markdown, render
from analyzer.report import values
from analyzer.report.blocks import Section, Table
from analyzer.report.columns import Unit
from tests.render.samples import columns, hard, of_micro_trace, shaped


def page(report):
    return render(report, "markdown", Options(only=("all",))).decode()


# -- Markdown ------------------------------------------------------------------------------------------------


def test_the_page_looks_like_its_snapshot(tmp_path, snapshot):
    report = of_micro_trace(tmp_path)
    wanted = [s for s in report.sections if s.key in ("gaps", "launches", "operators", "spikes")]
    snapshot("markdown", page(shaped(report, headline=report.headline, sections=wanted)))


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    """A bar in a name is no border: only those that no backslash escapes are."""
    table = next(s for s in hard().sections if s.key == "b").blocks[0]
    lines = [line for line in markdown.table(table, 100).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + table.most
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines} == {len(table.columns) + 1}


@pytest.mark.parametrize("character", list("`*_[]<>|#!~$@:"))
def test_markup_characters_of_a_name_are_escaped(character):
    escaped = markdown.escape(f"a{character}b")
    assert escaped in (f"a\\{character}b", {"<": "a&lt;b", ">": "a&gt;b"}.get(character))


def test_no_html_and_no_control_character_comes_through():
    text = page(hard())
    assert "<" not in text
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text) is None


def test_a_backslash_before_markup_does_not_undo_the_escape():
    r"""`\<` would otherwise become `\\<`: a backslash and a tag."""
    assert markdown.escape("\\<b>") == "\\\\&lt;b&gt;"
    assert markdown.escape("\\`") == "\\\\\\`"


def test_a_name_cannot_start_a_line_of_its_own():
    text = page(hard())
    assert not re.search(r"^# title", text, re.MULTILINE)


def test_hidden_rows_are_counted():
    table = Table("Things", columns(("name", Unit.NAME)), (("a",),) * 1235)
    assert "1,234 more rows" in markdown.table(table, 1)


# -- JSON ----------------------------------------------------------------------------------------------------------


def test_names_come_through_json_whole():
    report = hard()
    assert json.loads(render(report, "json", Options()))["names"] == report.contract["names"]


def test_json_holds_no_character_that_a_terminal_obeys():
    """Somebody will print it: control and bidirectional characters are escaped, as JSON allows."""
    text = render(hard(), "json", Options()).decode()
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", text) is None


# -- cells -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, Unit.NS, "n/a"),
        (None, Unit.TEXT, "n/a"),
        (8384, Unit.NS, "8.38 µs"),
        (2048, Unit.BYTES, "2.00 KiB"),
        (0.5, Unit.SHARE, "50%"),
        (2, Unit.RATIO, "2.00×"),
        (1e9, Unit.RATE, "1.00 GB/s"),
        (1234, Unit.COUNT, "1,234"),
        ("", Unit.NS, ""),  # a cell left empty on purpose
        ("a\nb", Unit.NAME, "a\\nb"),
        (7, Unit.TEXT, "7"),
    ],
)
def test_a_value_is_written_by_its_unit(value, unit, text):
    assert values.text(value, unit) == text


def test_every_unit_can_be_written():
    assert all(isinstance(values.text(1, unit), str) for unit in Unit)


def test_sections_without_anything_do_no_harm():
    text = page(shaped(hard(), sections=(Section("x", "Empty", ()),)))
    assert "## Empty" in text
