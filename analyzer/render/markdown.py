"""The report as Markdown, for pull requests and tickets. Text from a trace is never markup."""

from __future__ import annotations

import re

from analyzer import units
from analyzer.model import Metric, Report, Section, Table, Unit
from analyzer.render import cells

#: Long C++ names break the table for every reader; the full ones are in the JSON report.
_NAME_WIDTH = 80
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$&@:])")


def escape(text: str) -> str:
    """Text that Markdown and the HTML inside it show as it is."""
    return _SPECIAL.sub(lambda m: _ENTITIES.get(m[0], "\\" + m[0]), units.clean(text))


def render(report: Report) -> str:
    head = report.headline
    parts = [
        f"# tracecli: {escape(head.bound)}",
        f"{escape(head.reason)}",
        " · ".join(escape(part) for part in head.source),
    ]
    if report.findings:
        parts.append("## Findings")
        for f in report.findings:
            gain = f" (up to {units.duration(f.up_to_ns)})" if f.up_to_ns is not None else ""
            evidence = "".join(f"\n  - {escape(e)}" for e in f.evidence)
            parts.append(
                f"- **{f.severity.value}: {escape(f.name)}** {escape(f.title)}{gain}{evidence}\n  - {escape(f.advice)}"
            )
    for section in report.sections:
        parts += _section(section)
    parts.append("**Trust:** " + "; ".join(escape(t) for t in head.trust))
    parts += [f"**{escape(w.code)}:** {escape(w.message)}" for w in report.warnings]
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> list[str]:
    parts = [f"## {escape(section.title)}"]
    if section.metrics:
        parts.append("\n".join(_metric(m) for m in section.metrics))
    parts += [table(t) for t in section.tables]
    return [*parts, *(escape(note) for note in section.notes)]


def _metric(m: Metric) -> str:
    note = f" ({escape(m.note)})" if m.note else ""
    return f"- {escape(m.title)}: {escape(cells.text(m.value, m.unit))}{note}"


def table(t: Table) -> str:
    """One table, with its title; numbers aligned right."""
    lines = [
        f"**{escape(t.title)}**\n",
        "| " + " | ".join(escape(c.title) for c in t.columns) + " |",
        "|" + "|".join("---" if cells.is_text(c.unit) else "---:" for c in t.columns) + "|",
    ]
    formatted = [[cells.text(v, c.unit) for v, c in zip(row, t.columns, strict=True)] for row in t.rows]
    names = [units.short_names([row[i] for row in formatted], _NAME_WIDTH) for i in range(len(t.columns))]
    for row in formatted:
        texts = (
            names[i][text] if c.unit is Unit.NAME else text
            for i, (text, c) in enumerate(zip(row, t.columns, strict=True))
        )
        lines.append("| " + " | ".join(escape(text) for text in texts) + " |")
    if t.hidden:
        lines.append(f"\n{t.hidden:,} more rows are not shown")
    if t.note:
        lines.append(f"\n{escape(t.note)}")
    return "\n".join(lines)
