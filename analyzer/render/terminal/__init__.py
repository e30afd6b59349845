"""The report for a person at a terminal: verdict, picture, findings, figures, trust, next step.

Without a word on sections it is the first look: what fits one screen.
"""

from __future__ import annotations

from analyzer.render import TOP, Options, chosen
from analyzer.render.terminal import look
from analyzer.render.terminal.blocks import draw_section
from analyzer.render.terminal.frame import draw_close, draw_findings, draw_headline
from analyzer.render.terminal.page import Page
from analyzer.report.document import Report

SUFFIXES = (".txt",)
KINDS = None


def render(report: Report, options: Options) -> bytes:
    """The report in lines of at most `options.width` cells."""
    if options.only is None and any(section.first for section in report.sections):
        page = look.draw(report, options.width, options.top)
    else:
        page = Page(options.width)
        sections, with_findings = chosen(report, options)
        draw_headline(page, report)
        if with_findings:
            draw_findings(page, report.findings)
        for section in sections:
            draw_section(page, section, options.top or TOP)
        draw_close(page, report)
    return page.text(options.color, options.ascii_only).encode("utf-8", "backslashreplace")
