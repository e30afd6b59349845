"""The report for a person at a terminal: verdict, picture, findings, figures, trust, next step."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from analyzer import units
from analyzer.render import Options, chosen
from analyzer.report import values
from analyzer.report.blocks import Metric, Note, Section, Strip, Table
from analyzer.report.columns import Column, Unit
from analyzer.report.document import Report
from analyzer.report.findings import Finding, Severity, Warning

SUFFIXES = (".txt",)
KINDS = None

_MARK = {
    Severity.ERROR: ("✗", "bold red"),
    Severity.WARNING: ("!", "bold yellow"),
    Severity.NOTE: ("·", "bold blue"),
}
_ASCII = str.maketrans({
    "✗": "x", "█": "#", "░": ".", "▇": "=", "…": "~", "µ": "u", "×": "x", "–": "-", "─": "-", "→": ">", "·": "-",
    "▓": "#", "▒": "+",
})  # fmt: skip
#: Bars cost width and say the least: they are drawn only where the table leaves room.
_BAR = 10
_LEAST_NAME = 14
#: A text beside a figure gets this much room, or lines of its own.
_LEAST_TEXT = 20
_MOST_NAME = 72


def render(report: Report, options: Options) -> bytes:
    """The report in lines of at most `options.width` cells."""
    page = _Page(options.width, options.top)
    sections, with_findings = chosen(report, options)
    _headline(page, report)
    if with_findings:
        _findings(page, report.findings)
    for section in sections:
        _section(page, section)
    _close(page, report)
    return page.text(options.color, options.ascii_only).encode("utf-8", "backslashreplace")


class _Page:
    """Lines of styled text, never markup: names from a trace may look like any markup there is."""

    def __init__(self, width: int, top: int) -> None:
        self.width = max(width, 40)
        self.top = top
        self.lines: list[Text] = []

    def line(self, *parts: str | tuple[str, str]) -> None:
        line = Text(no_wrap=True, overflow="crop")
        for part in parts:
            line.append(*((part,) if isinstance(part, str) else part))
        self.lines.append(line)

    def wrapped(self, text: str, indent: int, style: str = "", first: str | None = None) -> None:
        """A paragraph, indented; `first` stands in the indent of its first line."""
        room = max(self.width - indent, 20)
        rows = _wrap(text, room)
        for i, row in enumerate(rows):
            lead = first if i == 0 and first is not None else ""
            self.line(lead.ljust(indent), (row, style))

    def text(self, color: bool, ascii_only: bool) -> str:
        out = io.StringIO()
        console = Console(
            file=out, width=self.width, force_terminal=color, color_system="standard" if color else None,
            no_color=not color, highlight=False, markup=False, emoji=False, legacy_windows=False,
        )  # fmt: skip
        for line in self.lines:
            line.rstrip()
            # A command to copy keeps its length; all other lines were made to fit.
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
        text = out.getvalue()
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode() if ascii_only else text


def _wrap(text: str, room: int) -> list[str]:
    rows, row = [], ""
    for word in text.split(" "):
        if row and cell_len(row) + 1 + cell_len(word) > room:
            rows.append(row)
            row = word
        else:
            row = f"{row} {word}" if row else word
        if cell_len(row) > room:
            *full, row = chop_cells(row, room)
            rows += full
    return [*rows, row] if row or not rows else rows


def _headline(page: _Page, report: Report) -> None:
    head = report.headline
    page.wrapped("  ·  ".join(units.clean(part) for part in head.source), 0, "dim")
    page.line()
    good = report.kind.name in ("file", "comparison") or head.bound in ("compute-bound", "cpu-only", "holds")
    style = "bold green" if good else "bold yellow" if head.bound in ("mixed", "nothing-to-judge") else "bold red"
    label = head.bound.upper()
    rows = _wrap(units.clean(head.reason), page.width - len(label) - 2)
    page.line((label, style), "  ", rows[0] if rows else "")
    for row in rows[1:]:
        page.line(" " * (len(label) + 2), row)
    if head.strips:
        page.line()
    for strip in head.strips:
        _strip(page, strip)


def _strip(page: _Page, strip: Strip) -> None:
    lead = f"  {strip.title}  "
    room = max(10, min(len(strip.shares), page.width - len(lead)))
    shares = _resample(strip.shares, room)
    page.line((lead, "dim"), *((_shade(x), "green" if x >= 0.5 else "yellow" if x > 0 else "dim") for x in shares))
    cell = strip.cell_ns * len(strip.shares) / room
    page.wrapped(
        f"█ busy {units.duration(strip.busy_ns)}   ░ idle {units.duration(strip.idle_ns)}"
        f"   1 cell = {units.duration(cell)}",
        len(lead),
        "dim",
    )


def _resample(shares: Sequence[float], n: int) -> list[float]:
    """Mean of the shares that fall into each of n equal values."""
    size = len(shares) / n
    out = []
    for i in range(n):
        lo, hi = i * size, (i + 1) * size
        total = 0.0
        k = int(lo)
        while k < hi and k < len(shares):
            total += shares[k] * (min(hi, k + 1) - max(lo, k))
            k += 1
        out.append(total / size)
    return out


def _shade(share: float) -> str:
    return "█" if share >= 0.75 else "▓" if share >= 0.5 else "▒" if share >= 0.1 else "░"


def _findings(page: _Page, findings: Sequence[Finding]) -> None:
    if not findings:
        return
    counts = [(s, sum(f.severity is s for f in findings)) for s in Severity]
    summary = " · ".join(f"{n} {s.value}{'s' * (n > 1)}" for s, n in counts if n)
    _title(page, "Findings", summary)
    for f in findings:
        mark, style = _MARK[f.severity]
        gain = "" if f.up_to_ns is None else f"up to {units.duration(f.up_to_ns)}"
        if gain and f.share is not None:
            gain += f", {units.share(f.share)}"
        lead = f"{mark} {f.name}  "
        room = page.width - cell_len(lead) - cell_len(gain) - 2
        if room >= _LEAST_TEXT:
            rows = _wrap(units.clean(f.title), room)
            pad = " " * (page.width - cell_len(lead) - cell_len(rows[0]) - cell_len(gain))
            page.line((f"{mark} ", style), (f.name, style), "  ", rows[0], pad, (gain, "bold"))
            for row in rows[1:]:
                page.line(" " * cell_len(lead), row)
        else:
            page.line((f"{mark} ", style), (f.name, style))
            page.wrapped(units.clean(f.title), 8)
            if gain:
                page.wrapped(gain, 8, "bold")
        for evidence in f.evidence:
            page.wrapped(units.clean(evidence), 8, "dim")
        page.wrapped(units.clean(f.advice), 10, first="        →")


def _section(page: _Page, section: Section) -> None:
    """The blocks in their order. A table that comes first brings its own title."""
    titled = False
    for block in section.blocks:
        if not titled and not isinstance(block, Table):
            _title(page, section.title)
        titled = True
        match block:
            case Table():
                _table(page, block)
            case Metric():
                _metric(page, block)
            case Strip():
                _strip(page, block)
            case Note():
                page.wrapped(units.clean(block.text), 2)


def _metric(page: _Page, metric: Metric) -> None:
    title, value = units.clean(metric.title), values.text(metric.value, metric.unit)
    lead = f"  {title:<26} {value:>10}"
    if cell_len(lead) > page.width:
        page.wrapped(f"{title}  {value}", 2)
        lead = ""
    note = units.clean(metric.note or "")
    room = page.width - cell_len(lead) - 3
    if lead and room >= _LEAST_TEXT:
        first, *rest = _wrap(note, room)
        page.line(lead, (f"   {first}", "dim"))
        for row in rest:
            page.line(" " * (cell_len(lead) + 3), (row, "dim"))
        return
    if lead:
        page.line(lead)
    if note:
        page.wrapped(note, 4, "dim")


def _title(page: _Page, title: str, aside: str = "") -> None:
    page.line()
    title = _fit(title, page.width)
    pad = page.width - cell_len(title) - cell_len(aside)
    if aside and pad >= 2:
        page.line((title, "bold"), " " * pad, (aside, "dim"))
    else:
        page.line((title, "bold"))
    page.line(("─" * page.width, "dim"))


def _table(page: _Page, table: Table) -> None:
    declared = [c.column for c in table.columns]
    columns = list(range(len(declared)))
    shown = table.shown(page.top)
    formatted = [[values.text(v, c.unit) for v, c in zip(row, declared, strict=True)] for row in shown]
    widths = _widths(page.width, declared, formatted, columns)
    bar = next((i for i in columns if declared[i].bar), None)
    used = sum(widths[i] for i in columns) + 2 * (len(columns) - 1)
    bars = bar is not None and page.width - used >= _BAR + 2
    _title_row(page, table.title, declared, columns, widths)
    most = (
        max((abs(v) for row in shown if isinstance(v := row[bar], int | float)), default=0)
        if bars and bar is not None
        else 0
    )
    names = {
        i: units.short_names([texts[i] for texts in formatted], widths[i])
        for i in columns
        if declared[i].unit is Unit.NAME
    }
    for row, texts in zip(shown, formatted, strict=True):
        parts: list[str | tuple[str, str]] = []
        for i in columns:
            text = names[i][texts[i]] if i in names else texts[i]
            parts.append(_cell(text, widths[i], declared[i].unit))
            parts.append("  ")
        if bars and bar is not None and most and isinstance(value := row[bar], int | float):
            parts.append(("▇" * round(_BAR * abs(value) / most), "cyan"))
        page.line(*parts)
    if hidden := len(table.rows) - len(shown):
        how = "" if table.most is not None and len(shown) == table.most else f"; --top {len(table.rows)} shows all"
        page.line((f"… {hidden:,} more{how}", "dim"))
    if table.note:
        page.wrapped(units.clean(table.note), 0, "dim")


def _title_row(
    page: _Page, title: str, declared: Sequence[Column], columns: Sequence[int], widths: Sequence[int]
) -> None:
    titles = []
    for i in columns:
        c = declared[i]
        titles.append(c.title.ljust(widths[i]) if values.is_text(c.unit) else c.title.rjust(widths[i]))
    rest = "  ".join(titles[1:])
    # The table's own title stands over its first column, and may run into the space of the second.
    room = widths[columns[0]] + 2 + cell_len(rest) - cell_len(rest.lstrip())
    page.line()
    if values.is_text(declared[columns[0]].unit) and cell_len(title) + 2 <= room:
        page.line((title.ljust(room), "bold"), (rest.lstrip(), "dim"))
    else:
        page.wrapped(title, 0, "bold")
        page.line((f"{titles[0]}  {rest}", "dim"))
    page.line(("─" * page.width, "dim"))


def _widths(width: int, columns: Sequence[Column], formatted: Sequence[Sequence[str]], chosen: list[int]) -> list[int]:
    """Width of each column; takes columns out of `chosen` from the right where even the least does not fit."""
    natural = [
        max([cell_len(c.title), *(cell_len(row[i]) for row in formatted)]) for i, c in enumerate(columns)
    ]  # fmt: skip
    names = [i for i, c in enumerate(columns) if c.unit in (Unit.NAME, Unit.TEXT)]
    for i in names:
        natural[i] = min(natural[i], _MOST_NAME)

    def least(i: int) -> int:
        return min(natural[i], _LEAST_NAME) if i in names else natural[i]

    while len(chosen) > 2 and sum(least(i) for i in chosen) + 2 * (len(chosen) - 1) > width:
        chosen.pop()
    room = width - 2 * (len(chosen) - 1) - sum(natural[i] for i in chosen if i not in names)
    _share_out(natural, [i for i in chosen if i in names], room)
    return natural


def _share_out(widths: list[int], names: Sequence[int], room: int) -> None:
    """Cut the widest name columns until all of them fit into the room."""
    while names and sum(widths[i] for i in names) > room:
        widest = max(names, key=lambda i: widths[i])
        if widths[widest] <= 1:
            return
        widths[widest] -= 1


def _cell(text: str, width: int, unit: Unit) -> str:
    if not values.is_text(unit):
        return text.rjust(width)
    text = _fit(text, width)
    return text + " " * (width - cell_len(text))


def _fit(text: str, width: int) -> str:
    """A text in at most `width` cells; wide characters take two."""
    text = units.clean(text)
    short, room = text, width
    while cell_len(short) > width:
        short = units.short_name(text, room)
        room -= 1
    return short


def _close(page: _Page, report: Report) -> None:
    page.line()
    if report.headline.trust:
        page.wrapped("; ".join(units.clean(t) for t in report.headline.trust), 10, first="Trust")
    for warning in _worth_saying(report.warnings):
        at = f" (byte {warning.byte:,})" if warning.byte is not None else ""
        page.wrapped(units.clean(f"{warning.code}: {warning.message}{at}"), 10, "yellow", first="Warning")
    page.line()
    for i, step in enumerate(_next(report)):
        page.line(("Next" if i == 0 else "").ljust(10), step)


def _worth_saying(warnings: Iterable[Warning]) -> list[Warning]:
    """Each code once: the same fault in many places is one thing to know."""
    seen: dict[str, Warning] = {}
    for w in warnings:
        seen.setdefault(w.code, w)
    return list(seen.values())


def _next(report: Report) -> list[str]:
    if not report.headline.path:
        return []
    path = units.shell_path(report.headline.path)
    steps = []
    if report.findings:
        steps.append(f"tracecli explain {report.findings[0].name}")
    steps.append(f"tracecli analyze {path} --only all")
    steps.append(f"tracecli analyze {path} -o report.json")
    return steps
