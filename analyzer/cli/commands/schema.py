"""`tracecli schema`: what our files hold."""

from __future__ import annotations

import click

from analyzer.cli import options as shared
from analyzer.cli.output import show


@click.command(epilog=shared.epilog("tracecli schema > report.schema.json", "tracecli schema events"))
@click.argument("document", type=click.Choice(["report", "events", "host", "device", "memory"]), default="report")
def schema(document: str) -> None:
    """Print the JSON schema of the report that --format json writes, or the columns that export writes."""
    import json

    if document != "report":
        from analyzer.events import export

        show(export.page(document))
        return

    from analyzer.render.schema import REPORT

    show(json.dumps(REPORT, indent=2, ensure_ascii=False) + "\n")
