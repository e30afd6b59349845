"""`tracecli info`: what a file is."""

from __future__ import annotations

import click

from analyzer.cli import options as shared
from analyzer.cli.output import ReportOptions
from analyzer.cli.progress import Progress


@click.command(epilog=shared.epilog("tracecli info run.json.gz", "tracecli info run.json --format json"))
@shared.trace
@shared.report
@shared.jobs
def info(trace: str, options: ReportOptions, jobs: int | None) -> None:
    """Say what a file is: producer, devices, counts, what was recorded. Judges nothing."""
    from analyzer.info import describe
    from analyzer.sources.kineto.read import read

    destination = options.to(trace)
    with Progress() as progress:
        frames = read(trace, jobs=jobs, progress=progress)
    destination.write(describe(frames))
