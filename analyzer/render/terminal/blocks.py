"""Blocks of a section: tables, figures, pictures and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from analyzer import units
from analyzer.render.terminal.page import LEAST_TEXT, Page, fit, title_line, wrap
from analyzer.report import values
from analyzer.report.blocks import Metric, Note, Section, Strip, Table
from analyzer.report.columns import Column, Unit

#: Bars cost width and say the least: they are drawn only where the table leaves room.
_BAR = 10
_LEAST_NAME = 14
_MOST_NAME = 72


def draw_section(page: Page, section: Section, top: int) -> None:
    """The blocks in their order. A table that comes first brings its own title."""
    titled = False
    for block in section.blocks:
        if not titled and not isinstance(block, Table):
            title_line(page, section.title)
        titled = True
        match block:
            case Table():
                draw_table(page, block, top)
            case Metric():
                _metric(page, block)
            case Strip():
                draw_strip(page, block)
            case Note():
                page.wrapped(units.clean(block.text), 2)


def _metric(page: Page, metric: Metric) -> None:
    title, value = units.clean(metric.title), values.text(metric.value, metric.unit)
    lead = f"  {title:<26} {value:>10}"
    if cell_len(lead) > page.width:
        page.wrapped(f"{title}  {value}", 2)
        lead = ""
    note = units.clean(metric.note or "")
    room = page.width - cell_len(lead) - 3
    if lead and room >= LEAST_TEXT:
        first, *rest = wrap(note, room)
        page.line(lead, (f"   {first}", "dim"))
        for row in rest:
            page.line(" " * (cell_len(lead) + 3), (row, "dim"))
        return
    if lead:
        page.line(lead)
    if note:
        page.wrapped(note, 4, "dim")


def draw_strip(page: Page, strip: Strip) -> None:
    lead = f"  {strip.title}  "
    room = max(10, min(len(strip.shares), page.width - len(lead)))
    shares = _resample(strip.shares, room)
    earlier = _resample(strip.earlier, room) if strip.earlier else [0.0] * room
    page.line((lead, "dim"), *map(_sign, shares, earlier))
    cell = strip.cell_ns * len(strip.shares) / room
    before = f"   ╱ earlier work {units.duration(strip.earlier_ns)}" if strip.earlier else ""
    page.wrapped(
        f"█ busy {units.duration(strip.busy_ns)}   ░ idle {units.duration(strip.idle_ns)}{before}"
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


def _sign(busy: float, earlier: float) -> tuple[str, str]:
    """The sign of a cell, and its style."""
    if earlier >= 0.5:
        return "╱", "cyan"
    return _shade(busy), "green" if busy >= 0.5 else "yellow" if busy > 0 else "dim"


def _shade(share: float) -> str:
    return "█" if share >= 0.75 else "▓" if share >= 0.5 else "▒" if share >= 0.1 else "░"


def draw_table(page: Page, table: Table, top: int, *, bare: bool = False) -> None:
    """A table of `top` rows; bare: without a word on the rows that are left out, and without its note."""
    declared = [c.column for c in table.columns]
    columns = list(range(len(declared)))
    shown = table.shown(top)
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
    if bare:
        return
    if hidden := len(table.rows) - len(shown):
        how = "" if table.most is not None and len(shown) == table.most else f"; --top {len(table.rows)} shows all"
        page.line((f"… {hidden:,} more{how}", "dim"))
    if table.note:
        page.wrapped(units.clean(table.note), 0, "dim")


def _title_row(
    page: Page, title: str, declared: Sequence[Column], columns: Sequence[int], widths: Sequence[int]
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
    text = fit(text, width)
    return text + " " * (width - cell_len(text))
