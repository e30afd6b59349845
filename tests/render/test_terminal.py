"""The terminal report: what each section looks like, widths, colour, and text that is never markup."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from analyzer.render import Options, render
from analyzer.report.blocks import Metric, Note, Section, Strip, Table
from analyzer.report.columns import Unit
from analyzer.report.document import Findings, Report
from analyzer.report.results import Results
from tests.render.samples import HOSTILE, columns, hard, of_micro_trace, shaped

WIDTHS = (60, 80, 110, 200)
SECTIONS = (
    "verdict", "phases", "devices", "gaps", "annotations", "steps", "launches", "chains", "operators", "waits",
    "kernels", "copies", "compile", "attention", "spikes", "memory", "capture",
)  # fmt: skip
CODES = re.compile(r"\x1b\[[0-9;]*m")


def plain(report, width=110, **options):
    return render(report, "terminal", Options(width=width, **{"only": ("all",), **options})).decode()


def shown(report, section, width=110, top=10):
    """The lines of one section, without what stands before and after it."""
    silent = Report(report.kind, Results(r for r in report.results if not isinstance(r, Findings)))
    head = report.headline
    bare = plain(shaped(silent, headline=head, sections=()), width)
    cut = bare.index("\nTrust")
    whole = plain(shaped(silent, headline=head, sections=(section,)), width, top=top)
    assert whole.startswith(bare[:cut])
    assert whole.endswith(bare[cut:])
    return whole[cut : len(whole) - len(bare) + cut]


# -- snapshots: what a person sees ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", SECTIONS)
def test_a_section_looks_like_its_snapshot(tmp_path, snapshot, key):
    report = of_micro_trace(tmp_path)
    (section,) = [s for s in report.sections if s.key == key]
    snapshot(f"section_{key}", shown(report, section))


def test_every_section_of_the_report_has_a_snapshot(tmp_path):
    assert {s.key for s in of_micro_trace(tmp_path).sections} == set(SECTIONS)


def test_the_frame_of_the_page_looks_like_its_snapshot(tmp_path, snapshot):
    """Headline, verdict, picture, findings, trust, next step."""
    snapshot("page", plain(of_micro_trace(tmp_path, sections=())))


def test_a_narrow_page_looks_like_its_snapshot(tmp_path, snapshot):
    report = of_micro_trace(tmp_path)
    wanted = [s for s in report.sections if s.key in ("gaps", "operators", "kernels")]
    snapshot("narrow", plain(shaped(report, headline=report.headline, sections=wanted), 60))


# -- width ---------------------------------------------------------------------------------------------------


def next_lines(lines):
    """Commands to copy keep their length."""
    start = next((i for i, line in enumerate(lines) if line.startswith("Next")), len(lines))
    return lines[:start]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("sample", ["micro", "hard"])
def test_no_line_is_wider_than_the_terminal(tmp_path, sample, width):
    report = of_micro_trace(tmp_path) if sample == "micro" else hard()
    lines = next_lines(plain(report, width).splitlines())
    assert [line for line in lines if cell_len(line) > width] == []


def test_the_next_command_keeps_its_length():
    lines = plain(hard(), 60).splitlines()
    assert any(line.startswith("Next") for line in lines)
    assert "tracecli analyze 'some folder/[/foo]\\x1b[31m.json' --all" in "\n".join(lines)


def test_columns_stand_under_their_titles(tmp_path):
    """Numbers end where their title ends."""
    titles = columns(("name", Unit.NAME), ("calls", Unit.COUNT), ("time", Unit.NS))
    table = Table("Things", titles, (("short", 1, 10**6), ("a much longer name", 123_456, 5)))
    title, _, *rows = shown(of_micro_trace(tmp_path), Section("x", "X", (table,))).strip("\n").splitlines()
    for word, texts in (("calls", ("1", "123,456")), ("time", ("1.00 ms", "5 ns"))):
        end = title.index(word) + len(word)
        assert [row[:end].rsplit("  ", 1)[-1].strip() for row in rows] == list(texts)


def test_hidden_rows_are_counted_and_the_option_that_shows_them_is_named(tmp_path):
    rows = tuple((f"row{i}",) for i in range(79))
    table = Table("Things", columns(("name", Unit.NAME)), rows)
    text = shown(of_micro_trace(tmp_path), Section("x", "X", (table,)), top=2)
    assert "77 more; --top 79 shows all" in text
    assert [line for line in text.splitlines() if line.startswith("row")] == ["row0", "row1"]


def test_a_table_of_a_fixed_length_names_no_option_that_would_not_help(tmp_path):
    table = Table("Things", columns(("name", Unit.NAME)), tuple((f"n{i}",) for i in range(9)), most=3)
    text = shown(of_micro_trace(tmp_path), Section("x", "X", (table,)), top=100)
    assert "6 more" in text
    assert "--top" not in text


def test_blocks_stand_in_their_order(tmp_path):
    table = Table("Things", columns(("name", Unit.NAME)), (("row",),))
    blocks = (Note("first"), Metric("second", 1, Unit.COUNT), table, Note("last"))
    text = shown(of_micro_trace(tmp_path), Section("x", "The title", blocks))
    places = [text.index(word) for word in ("The title", "first", "second", "Things", "row", "last")]
    assert places == sorted(places)


def test_earlier_work_has_a_sign_of_its_own_in_the_strip(tmp_path):
    """Ten cells of 1 ms: three of earlier work, busy or not, then idle, half busy, busy."""
    busy = (0.0, 1.0, 0.0, 0.0, 0.2, 0.5, 1.0, 1.0, 1.0, 1.0)
    strip = Strip("GPU 0", busy, 1e6, 5_700_000, 1_300_000, (1.0, 1.0, 0.9, 0.1, 0, 0, 0, 0, 0, 0))
    picture, legend = shown(of_micro_trace(tmp_path), Section("x", "X", (strip,))).splitlines()[-2:]
    assert picture == "  GPU 0  ╱╱╱░▒▓████"
    assert legend.split("   ")[3:] == [
        "█ busy 5.70 ms", "░ idle 1.30 ms", "╱ earlier work 3.00 ms", "1 cell = 1.00 ms",
    ]  # fmt: skip


def test_what_is_not_known_is_not_shown_as_nothing(tmp_path):
    table = Table("Things", columns(("name", Unit.NAME), ("time", Unit.NS)), (("a", None), ("b", 0)))
    lines = shown(of_micro_trace(tmp_path), Section("x", "X", (table,))).splitlines()
    assert [line.split() for line in lines if line.startswith(("a", "b"))] == [["a", "n/a"], ["b", "0", "ns"]]


# -- text of strangers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_no_control_character_of_a_name_reaches_the_terminal(width):
    text = plain(hard(), width)
    assert re.search(r"[^\n -~\u00a0-\uffff]|[\u200b-\u200f\u2028-\u202e\u2066-\u2069]", text) is None


def test_a_name_that_looks_like_markup_is_shown_as_it_is(tmp_path):
    table = Table("Things", columns(("name", Unit.NAME)), tuple((h,) for h in HOSTILE))
    text = shown(of_micro_trace(tmp_path), Section("x", "X", (table,)), top=len(HOSTILE))
    for expected in ("[/foo] [bold red]x[/]", "\\x1b[31mred\\x1b[0m", "<script>alert(1)</script>", "abc\\u202edcba",
                     "two\\nlines\\r\\n# title", ":smile: @someone"):  # fmt: skip
        assert expected in text


def test_colour_adds_codes_and_nothing_else():
    """Without its colour codes the coloured page is the plain one."""
    coloured = plain(hard(), color=True)
    assert CODES.search(coloured)
    assert CODES.sub("", coloured) == plain(hard())


def test_without_colour_there_is_no_code(tmp_path):
    assert "\x1b" not in plain(of_micro_trace(tmp_path))


# -- terminals without UTF-8 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("color", [False, True])
def test_the_fallback_is_pure_ascii(color):
    assert plain(hard(), color=color, ascii_only=True).isascii()


def test_the_fallback_keeps_the_picture_and_the_rules(tmp_path):
    utf8, ascii_text = plain(of_micro_trace(tmp_path)), plain(of_micro_trace(tmp_path), ascii_only=True)
    assert len(ascii_text.splitlines()) == len(utf8.splitlines())
    assert [len(line) for line in ascii_text.splitlines()] == [len(line) for line in utf8.splitlines()]
    assert "# busy" in ascii_text
    assert "us" in ascii_text
