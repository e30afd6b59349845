"""`tracecli schema`: what our files hold."""

from __future__ import annotations

import click

from analyzer.cli import options as shared
from analyzer.cli.output import show

#: Kinds of report: `saved.kinds`, spelt out so that --help needs none of them.
_REPORTS = ("run", "file", "comparison", "check")


@click.command(epilog=shared.epilog("tracecli schema > report.schema.json", "tracecli schema events"))
@click.argument("document", type=click.Choice([*_REPORTS, *shared.FRAMES]), default="run")
def schema(document: str) -> None:
    """Print the JSON schema of a kind of report, or the columns that export writes.

    run: what analyze writes with --format json; file: info; comparison: compare; check: check.
    """
    import json

    if document in shared.FRAMES:
        from analyzer.events import export

        show(export.page(document))
        return

    from analyzer import saved

    show(json.dumps(saved.kinds()[document].schema(), indent=2, ensure_ascii=False) + "\n")
