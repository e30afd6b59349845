"""What commands share: arguments and options, each declared once, and the end of their help."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from analyzer.cli.exits import MEANINGS
from analyzer.cli.output import ReportOptions
from analyzer.render import names as formats

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

#: Kinds of frames: the keys of `events.export.FRAMES`, spelt out so that --help imports no frames.
FRAMES = ("events", "host", "device", "memory", "collectives")

trace = click.argument("trace")
jobs = click.option("--jobs", type=click.IntRange(min=1), help="Processes that parse; default: one a core.")
force = click.option("--force", is_flag=True, help="Overwrite an existing FILE.")


def output(what: str, required: bool = False) -> Decorator:
    """-o and --force, as `output` and `force`."""
    option = click.option("-o", "--output", type=click.Path(path_type=Path), required=required, help=what)
    return lambda command: option(force(command))


def report(command: Callable[..., Any]) -> Callable[..., Any]:
    """Where a report goes, in which form, how much of it, and in colour or not, as `options`: a ReportOptions."""

    @wraps(command)
    def with_options(
        *,
        output: Path | None,
        force: bool,
        form: str | None,
        color: str,
        top: int | None,
        only: str | None,
        whole: bool,
        **others: Any,
    ) -> Any:
        if whole and only is not None:
            raise click.UsageError("--all shows every section, --only some: give one of them")
        options = ReportOptions(output, force, form, color, top, ("all",) if whole else _sections(only))
        return command(options=options, **others)

    wrapped: Callable[..., Any] = with_options
    for option in (
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True),
        output("Write to FILE; the suffix tells the format."),
        click.option(
            "--format", "form", type=click.Choice(formats()), help="Default: by the suffix of -o, else terminal."
        ),
        click.option("--only", metavar="SECTION,..", help="Show these sections only; an unknown name lists them."),
        click.option("--all", "whole", is_flag=True, help="Show every section, with the figures behind the figures."),
        click.option(
            "--top", type=click.IntRange(min=1), help="Rows a table shows; default: 10, in a first look what fits."
        ),
    ):
        wrapped = option(wrapped)
    return wrapped


def _sections(only: str | None) -> tuple[str, ...] | None:
    if only is None:
        return None
    wanted = tuple(name.strip() for name in only.split(",") if name.strip())
    if not wanted:
        raise click.UsageError("--only names no section; an unknown name lists them")
    return wanted


def epilog(*examples: str) -> str:
    """The end of a command's help: examples, and what the exit codes mean."""
    lines = "".join(f"  {example}\n" for example in examples)
    codes = "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items())
    return f"\b\nExamples:\n{lines}\nExit codes: {codes}."
