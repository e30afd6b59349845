"""`tracecli explain`: what a finding means."""

from __future__ import annotations

import click

from analyzer.cli import options as shared
from analyzer.cli.output import show


@click.command(epilog=shared.epilog("tracecli explain overhead-bound"))
@click.argument("name")
def explain(name: str) -> None:
    """Say what a finding means, how it is computed, what to try, and when it is wrong."""
    import inspect
    from difflib import get_close_matches

    from analyzer import findings, pipeline

    known = {module.NAME: module for module in pipeline.modules(findings)}
    if name not in known:
        close = get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(close)}?" if close else "; `tracecli findings` lists all"
        raise click.UsageError(f"no finding is called {name}{hint}")
    show(f"{name}\n\n{inspect.getdoc(known[name])}\n")
