"""Where results and messages go: standard output or a file, and standard error."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.errors import TraceError
from analyzer.output import Output

if TYPE_CHECKING:
    from analyzer.report.document import Report

#: Width where no terminal says one: wide enough for names, narrow enough for a mail.
_PIPED_WIDTH = 110


def say(text: str) -> None:
    """A message on standard error: safe to show, whatever names are in it."""
    from analyzer.units import clean

    # Where nobody can be told, the exit code still says it.
    with suppress(OSError):
        click.echo("\n".join(map(clean, text.split("\n"))), err=True)


def wrote(path: Path) -> None:
    from analyzer.units import shell_path

    say(f"wrote {shell_path(str(path))}")


def show(content: bytes | str) -> None:
    """A result on standard output. Raises TraceError where it cannot be written."""
    if sys.stdout is None:
        raise TraceError("standard output is closed")
    if isinstance(content, str):
        content = content.encode(sys.stdout.encoding or "ascii", "backslashreplace")
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as e:
        raise TraceError(f"cannot write: {e.strerror or e}", "standard output") from e


class Destination:
    """Where a result goes: the file of -o, which is checked now, or standard output."""

    def __init__(self, path: Path | None, force: bool, *inputs: str | Path | None) -> None:
        used = [name for name in inputs if name is not None]
        self.file = None if path is None else Output(path, force=force, inputs=used)

    def write(self, content: bytes) -> None:
        if self.file is None:
            show(content)
            return
        with self.file.open() as file:
            file.write(content)
        wrote(self.file.path)


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the options say of a report: the file and whether it may be overwritten, format, colour, rows, sections."""

    path: Path | None
    force: bool
    form: str | None
    color: str
    top: int | None
    only: tuple[str, ...] | None

    def to(self, *inputs: str | Path | None, default: str = "terminal") -> ReportDestination:
        """Checks the options, before the work. inputs: the files that are read; default: the format."""
        form = self.form or self._suffix_form() or default
        return ReportDestination(form, self, Destination(self.path, self.force, *inputs))

    def _suffix_form(self) -> str | None:
        if self.path is None:
            return None
        from analyzer.render import suffixes

        known = suffixes()
        if self.path.suffix not in known:
            raise click.UsageError(f"{self.path}: no format has this suffix; use {', '.join(known)}, or --format")
        return known[self.path.suffix]


@dataclass(frozen=True, slots=True)
class ReportDestination:
    """Where a report goes, and in which form."""

    form: str
    options: ReportOptions
    destination: Destination

    def write(self, report: Report) -> None:
        from analyzer.render import Options, render

        to_file = self.destination.file is not None
        encoding = "utf-8" if to_file else getattr(sys.stdout, "encoding", None) or "ascii"
        color = self.options.color
        shown = Options(
            width=_PIPED_WIDTH if to_file else shutil.get_terminal_size((_PIPED_WIDTH, 40)).columns,
            color=color == "always" or (color == "auto" and not to_file and _wants_color()),
            ascii_only=encoding.lower().replace("-", "") not in ("utf8", "utf16", "utf8sig"),
            top=self.options.top,
            only=self.options.only,
        )
        self.destination.write(render(report, self.form, shown))


def _wants_color() -> bool:
    """Colour for a terminal that can; the usual variables overrule (no-color.org, FORCE_COLOR)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
