"""The first look: what a reader needs to decide what to do, in one screen.

Verdict, picture, findings, where the window went, phases, the longest gaps, the operators and kernels that matter,
trust, and the next commands. What does not fit is named at the end, and asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer import units
from analyzer.render.terminal.blocks import draw_table
from analyzer.render.terminal.frame import draw_close, draw_finding, draw_finding_line, draw_headline, findings_title
from analyzer.render.terminal.page import Page
from analyzer.report.blocks import Table
from analyzer.report.document import Report
from analyzer.report.findings import Finding, Severity

#: Lines of the first look, at a width of 100 and more.
LINES = 60
#: Rows of a table: as many as fit, at least and at most.
LEAST_ROWS, MOST_ROWS = 2, 6
#: Findings with evidence and advice; those after them, and notes, are a line each.
WHOLE, NOTES = 3, 3


def draw(report: Report, width: int, top: int | None) -> Page:
    """top: rows of each table, however long it gets; None: as many as fit."""
    tables = [section.first for section in report.sections if section.first is not None]
    rows = [min(MOST_ROWS, len(t.rows)) if top is None else top for t in tables]
    whole = WHOLE
    page = _page(report, width, tables, rows, whole)
    while top is None and len(page.lines) > LINES:
        longest = max(range(len(rows)), key=lambda i: (rows[i], i), default=None)
        if longest is not None and rows[longest] > LEAST_ROWS:
            rows[longest] -= 1
        elif whole > 1:
            whole -= 1
        else:
            break
        page = _page(report, width, tables, rows, whole)
    return page


def _page(report: Report, width: int, tables: Sequence[Table], rows: Sequence[int], whole: int) -> Page:
    page = Page(width)
    draw_headline(page, report)
    _findings(page, report.findings, whole)
    for table, count in zip(tables, rows, strict=True):
        draw_table(page, table, count, bare=True)
    shown = {section.key for section in report.sections if section.first is not None}
    draw_close(page, report, left=[s.key for s in report.sections if s.key not in shown])
    return page


def _findings(page: Page, findings: Sequence[Finding], whole: int) -> None:
    if not findings:
        return
    findings_title(page, findings)
    grave = [f for f in findings if f.severity is not Severity.NOTE]
    notes = [f for f in findings if f.severity is Severity.NOTE]
    for f in grave[:whole]:
        draw_finding(page, f, brief=True)
    if not grave and notes:
        draw_finding(page, notes[0], brief=True)
        notes = notes[1:]
    for f in grave[whole:]:
        draw_finding_line(page, f)
    for f in notes[:NOTES]:
        draw_finding_line(page, f)
    if left := notes[NOTES:]:
        page.wrapped(f"{units.plural(len(left), 'note')} more: {', '.join(f.name for f in left)}", 2, "dim")
