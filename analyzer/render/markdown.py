"""The report as Markdown, for pull requests and tickets. Text from a trace is never markup."""

from __future__ import annotations

import re

from analyzer import units
from analyzer.render import TOP, Options, chosen
from analyzer.report import values
from analyzer.report.blocks import Block, Metric, Note, Section, Strip, Table
from analyzer.report.columns import Unit
from analyzer.report.document import Report

SUFFIXES = (".md",)
KINDS = None

#: Long C++ names break the table for every reader; the full ones are in the JSON report.
_NAME_WIDTH = 80
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$&@:])")


def escape(text: str) -> str:
    """Text that Markdown and the HTML inside it show as it is."""
    return _SPECIAL.sub(lambda m: _ENTITIES.get(m[0], "\\" + m[0]), units.clean(text))


def render(report: Report, options: Options) -> bytes:
    head = report.headline
    sections, with_findings = chosen(report, options)
    parts = [
        f"# tracecli: {escape(head.bound)}",
        f"{escape(head.reason)}",
        " · ".join(escape(part) for part in head.source),
    ]
    if report.findings and with_findings:
        parts.append("## Findings")
        for f in report.findings:
            gain = f" (up to {units.duration(f.up_to_ns)})" if f.up_to_ns is not None else ""
            evidence = "".join(f"\n  - {escape(e)}" for e in f.evidence)
            parts.append(
                f"- **{f.severity.value}: {escape(f.name)}** {escape(f.title)}{gain}{evidence}\n  - {escape(f.advice)}"
            )
    for section in sections:
        parts += _section(section, options.top or TOP)
    if head.trust:
        parts.append("**Trust:** " + "; ".join(escape(t) for t in head.trust))
    parts += [f"**{escape(w.code)}:** {escape(w.message)}" for w in report.warnings]
    return ("\n\n".join(parts) + "\n").encode("utf-8", "backslashreplace")


def _section(section: Section, top: int) -> list[str]:
    parts = [f"## {escape(section.title)}"]
    before: Block | None = None
    for block in section.blocks:
        text = _block(block, top)
        if isinstance(block, Metric) and isinstance(before, Metric):
            parts[-1] += f"\n{text}"  # one list
        else:
            parts.append(text)
        before = block
    return parts


def _block(block: Block, top: int) -> str:
    match block:
        case Table():
            return table(block, top)
        case Metric():
            note = f" ({escape(block.note)})" if block.note else ""
            return f"- {escape(block.title)}: {escape(values.text(block.value, block.unit))}{note}"
        case Strip():
            busy, idle = units.duration(block.busy_ns), units.duration(block.idle_ns)
            earlier = f", earlier work {units.duration(block.earlier_ns)}" if block.earlier else ""
            return f"{escape(block.title)}: busy {busy}, idle {idle}{earlier}"
        case Note():
            return escape(block.text)


def table(t: Table, top: int) -> str:
    """One table, with its title; numbers aligned right."""
    columns = [c.column for c in t.columns]
    lines = [
        f"**{escape(t.title)}**\n",
        "| " + " | ".join(escape(c.title) for c in columns) + " |",
        "|" + "|".join("---" if values.is_text(c.unit) else "---:" for c in columns) + "|",
    ]
    shown = t.shown(top)
    formatted = [[values.text(v, c.unit) for v, c in zip(row, columns, strict=True)] for row in shown]
    names = [units.short_names([row[i] for row in formatted], _NAME_WIDTH) for i in range(len(columns))]
    for row in formatted:
        texts = (
            names[i][text] if c.unit is Unit.NAME else text
            for i, (text, c) in enumerate(zip(row, columns, strict=True))
        )
        lines.append("| " + " | ".join(escape(text) for text in texts) + " |")
    if hidden := len(t.rows) - len(shown):
        lines.append(f"\n{hidden:,} more rows are not shown")
    if t.note:
        lines.append(f"\n{escape(t.note)}")
    return "\n".join(lines)
