"""`tracecli findings`: all findings there are."""

from __future__ import annotations

import click

from analyzer.cli import options as shared
from analyzer.cli.output import show


@click.command(epilog=shared.epilog("tracecli findings"))
def findings() -> None:
    """List all findings, one line each."""
    from analyzer import findings as judgements
    from analyzer import pipeline

    known = {module.NAME: (module.__doc__ or "").partition("\n")[0] for module in pipeline.modules(judgements)}
    width = max(map(len, known))
    lines = [f"{name:<{width}}  {known[name]}\n" for name in sorted(known)]
    end = "tracecli explain NAME says what one means, how it is computed, what to try, and when it is wrong.\n"
    show("".join([*lines, "\n", end]))
