"""`tracecli check`: a run held to a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli import options as shared
from analyzer.cli import parts
from analyzer.cli.exits import Exit
from analyzer.cli.output import Destination, ReportOptions
from analyzer.cli.runs import report_of

if TYPE_CHECKING:
    from analyzer.events.select import Selection


@click.command(
    epilog=shared.epilog(
        "tracecli check --init run.json.gz -o budget.toml",
        "tracecli check run.json.gz --budget budget.toml",
        "tracecli check run.json.gz --budget budget.toml -o tracecli.xml",
    )
)
@shared.trace
@click.option("--budget", type=click.Path(path_type=Path), help="Limits; default: [tool.tracecli] of pyproject.toml.")
@click.option("--baseline", help="Report that relative limits refer to; default: the one that the budget names.")
@click.option("--init", is_flag=True, help="Print a budget made from this run, with room; -o writes it.")
@shared.report
@parts.part("Judge")
@shared.jobs
@click.pass_context
def check(
    ctx: click.Context,
    trace: str,
    budget: Path | None,
    baseline: str | None,
    init: bool,
    options: ReportOptions,
    part: Selection | None,
    jobs: int | None,
) -> None:
    """Hold a run to a budget: exit code 0 if every limit holds, 1 if one is broken.

    TRACE is a trace, or a report saved with `tracecli analyze -o report.json`.
    """
    from analyzer import saved
    from analyzer.budget import check as budgets
    from analyzer.budget import load, make
    from analyzer.errors import TraceError

    if init:
        if budget or baseline:
            raise click.UsageError("--init makes a budget: it takes neither --budget nor --baseline")
        text = Destination(options.path, options.force, trace)
        text.write(make.make(report_of(trace, part=part, jobs=jobs)).encode())
        return
    path = budget or load.find(Path.cwd())
    if path is None:
        raise click.UsageError("no --budget, and no pyproject.toml with [tool.tracecli] from here upward; see --init")
    limits = load.read(path)  # before the trace: its mistakes show at once
    if baseline is None and limits.baseline is not None:
        baseline = str(path.parent / limits.baseline)
    before = None if baseline is None else saved.load(baseline, "run")
    if baseline is not None and before is None:
        raise TraceError("a baseline is a saved report", baseline, "tracecli analyze TRACE -o report.json writes one")
    destination = options.to(trace, path, baseline)
    outcome = budgets.check(limits, report_of(trace, part=part, jobs=jobs), before)
    destination.write(outcome)
    if outcome.headline.bound != "holds":
        ctx.exit(Exit.BROKEN)
