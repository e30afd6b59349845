"""Lines of styled text, and how a text is made to fit into one."""

from __future__ import annotations

import io

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from analyzer import units

_ASCII = str.maketrans({
    "✗": "x", "█": "#", "░": ".", "▇": "=", "…": "~", "µ": "u", "×": "x", "–": "-", "─": "-", "→": ">", "·": "-",
    "▓": "#", "▒": "+", "╱": "/",
})  # fmt: skip
#: A text beside a figure gets this much room, or lines of its own.
LEAST_TEXT = 20


class Page:
    """Lines of styled text, never markup: names from a trace may look like any markup there is."""

    def __init__(self, width: int) -> None:
        self.width = max(width, 40)
        self.lines: list[Text] = []

    def line(self, *parts: str | tuple[str, str]) -> None:
        line = Text(no_wrap=True, overflow="crop")
        for part in parts:
            line.append(*((part,) if isinstance(part, str) else part))
        self.lines.append(line)

    def wrapped(self, text: str, indent: int, style: str = "", first: str | None = None) -> None:
        """A paragraph, indented; `first` stands in the indent of its first line."""
        room = max(self.width - indent, 20)
        rows = wrap(text, room)
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


def wrap(text: str, room: int) -> list[str]:
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


def fit(text: str, width: int) -> str:
    """A text in at most `width` cells; wide characters take two."""
    text = units.clean(text)
    short, room = text, width
    while cell_len(short) > width:
        short = units.short_name(text, room)
        room -= 1
    return short


def title_line(page: Page, title: str, aside: str = "") -> None:
    page.line()
    title = fit(title, page.width)
    pad = page.width - cell_len(title) - cell_len(aside)
    if aside and pad >= 2:
        page.line((title, "bold"), " " * pad, (aside, "dim"))
    else:
        page.line((title, "bold"))
    page.line(("─" * page.width, "dim"))
