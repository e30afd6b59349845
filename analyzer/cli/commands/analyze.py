"""`tracecli analyze`: the report of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli import options as shared
from analyzer.cli import parts
from analyzer.cli.output import ReportOptions
from analyzer.cli.runs import report_of

if TYPE_CHECKING:
    from analyzer.events.select import Selection


@click.command(
    epilog=shared.epilog(
        "tracecli analyze run.json.gz",
        "tracecli analyze run.json --only kernels,gaps --top 20",
        "tracecli analyze run.json --step 15 -o report.json",
        "gzip -dc run.json.gz | tracecli analyze -",
    )
)
@shared.trace
@shared.report
@parts.part("Analyse")
@shared.jobs
@click.option("--strict", is_flag=True, help="Refuse a file that needs any repair (exit code 2).")
def analyze(trace: str, options: ReportOptions, part: Selection | None, jobs: int | None, strict: bool) -> None:
    """Say what holds a run back: verdict, idle time by cause, operators, kernels, spikes.

    TRACE is a .json or .json.gz of PyTorch's profiler, or - for standard input; a report that was saved with
    -o report.json is shown again.
    """
    destination = options.to(trace)
    destination.write(report_of(trace, part=part, jobs=jobs, strict=strict))
