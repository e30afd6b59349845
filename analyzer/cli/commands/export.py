"""`tracecli export`: the events as a table."""

from __future__ import annotations

from pathlib import Path

import click

from analyzer.cli import options as shared
from analyzer.cli.output import wrote
from analyzer.cli.progress import Progress
from analyzer.output import Output


@click.command(
    epilog=shared.epilog(
        "tracecli export run.json.gz -o events.parquet",
        "tracecli export run.json.gz -o kernels.csv --frame device",
    )
)
@shared.trace
@shared.output("FILE to write: .parquet, .arrow, .ipc, .feather or .csv.", required=True)
@click.option(
    "--frame",
    type=click.Choice(shared.FRAMES),
    default="events",
    show_default=True,
    help="Which events; `tracecli schema FRAME` prints the columns.",
)
@shared.jobs
def export(trace: str, output: Path, force: bool, frame: str, jobs: int | None) -> None:
    """Write the events as a table, for DuckDB, Polars, pandas, Spark."""
    from analyzer.events import export as frames
    from analyzer.sources.kineto.read import read

    if output.suffix.lower() not in frames.SUFFIXES:
        raise click.UsageError(f"{output}: no format has this suffix; use {', '.join(frames.SUFFIXES)}")
    target = Output(output, force=force, inputs=[trace])
    with Progress() as progress:
        events = read(trace, jobs=jobs, progress=progress)
    frames.write(events, target, frame)
    wrote(output)
