"""`tracecli analyze`: the report of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli import options as shared
from analyzer.cli.output import ReportOptions
from analyzer.cli.progress import Progress

if TYPE_CHECKING:
    from analyzer.model import Report


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
@shared.top
@click.option("--only", metavar="SECTION,..", help="Show these sections only, or all; an unknown name lists them.")
@shared.step("Analyse")
@shared.jobs
@click.option("--strict", is_flag=True, help="Refuse a file that needs any repair (exit code 2).")
def analyze(
    trace: str, options: ReportOptions, top: int, only: str | None, step: str | None, jobs: int | None, strict: bool
) -> None:
    """Say what holds a run back: verdict, idle time by cause, operators, kernels, spikes.

    TRACE is a .json or .json.gz of PyTorch's profiler, or - for standard input.
    """
    from analyzer import pipeline
    from analyzer.sources.kineto.read import read

    destination = options.to(trace)
    with Progress() as progress:
        # Not bound to a name: whoever holds the frames keeps a second copy of all host events alive.
        frames = [read(trace, jobs=jobs, strict=strict, progress=progress)]
    report = pipeline.run(frames.pop(), top=top, step=step)
    destination.write(_only(report, only))


def _only(report: Report, only: str | None) -> Report:
    """The report with some sections. The contract stays whole: a reader of JSON selects by key."""
    from dataclasses import replace

    if only is None:
        return replace(report, sections=[s for s in report.sections if not s.detail])
    if only == "all":
        return report

    wanted = [name.strip() for name in only.split(",") if name.strip()]
    known = [*(s.key for s in report.sections), "findings"]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise click.UsageError(f"no section {', '.join(unknown) or 'named'} in this report; it has: {', '.join(known)}")
    return replace(
        report,
        sections=[s for s in report.sections if s.key in wanted],
        findings=report.findings if "findings" in wanted else (),
    )
