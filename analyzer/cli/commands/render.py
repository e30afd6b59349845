"""`tracecli render`: a saved report in another form."""

from __future__ import annotations

import click

from analyzer.cli import options as shared
from analyzer.cli.output import ReportOptions


@click.command(
    epilog=shared.epilog(
        "tracecli render report.json",
        "tracecli render report.json --only kernels --top 50",
        "tracecli render report.json -o report.md",
    )
)
@click.argument("report")
@shared.report
def render(report: str, options: ReportOptions) -> None:
    """Show a report that was saved as JSON, of whatever kind, in any format.

    REPORT is what analyze, info, compare or check wrote with -o FILE.json or --format json.
    """
    from analyzer import saved
    from analyzer.errors import TraceError

    destination = options.to(report)
    found = saved.load(report)
    if found is None:
        raise TraceError("no saved report", report, "a trace is read by `tracecli analyze`")
    destination.write(found)
