"""`tracecli explain`: what a finding, a cause of idle time or a part of the verdict means."""

from __future__ import annotations

import click

from analyzer.cli import options as shared
from analyzer.cli.output import show


@click.command(epilog=shared.epilog("tracecli explain overhead-bound", "tracecli explain launch_latency"))
@click.argument("name")
def explain(name: str) -> None:
    """Say what a finding means, how it is computed, what to try, and when it is wrong.

    NAME may also be a cause of idle time, a part of the window or a verdict: launch_latency, pauses, sync-bound.
    """
    import inspect
    from difflib import get_close_matches

    from analyzer import findings, glossary, pipeline

    known = {module.NAME: module for module in pipeline.modules(findings)}
    said = [f"{name}\n\n{inspect.getdoc(known[name])}"] if name in known else []
    said += [text] if (text := glossary.entry(name)) else []
    if not said:
        close = get_close_matches(name, [*known, *glossary.words()], n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(close)}?" if close else "; `tracecli findings` lists all"
        raise click.UsageError(f"no finding, cause or part is called {name}{hint}")
    show("\n\n".join(said) + "\n")
