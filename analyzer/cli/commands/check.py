"""`tracecli check`: a run held to a budget."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from analyzer.cli import options as shared
from analyzer.cli.exits import Exit
from analyzer.cli.output import Destination
from analyzer.cli.progress import Progress


@click.command(
    epilog=shared.epilog(
        "tracecli check --init run.json.gz -o budget.toml",
        "tracecli check run.json.gz --budget budget.toml",
        "tracecli check run.json.gz --budget budget.toml --format junit -o tracecli.xml",
    )
)
@shared.trace
@click.option("--budget", type=click.Path(path_type=Path), help="Limits; default: [tool.tracecli] of pyproject.toml.")
@click.option("--baseline", help="Report that relative limits refer to; default: the one that the budget names.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "junit", "markdown"]),
    default="text",
    show_default=True,
)
@shared.output("Write to FILE.")
@click.option("--init", is_flag=True, help="Print a budget made from this run, with room; -o writes it.")
@shared.step("Judge")
@shared.jobs
@click.pass_context
def check(
    ctx: click.Context,
    trace: str,
    budget: Path | None,
    baseline: str | None,
    form: str,
    output: Path | None,
    force: bool,
    init: bool,
    step: str | None,
    jobs: int | None,
) -> None:
    """Hold a run to a budget: exit code 0 if every limit holds, 1 if one is broken.

    TRACE is a trace, or a report saved with `tracecli analyze -o report.json`.
    """
    from analyzer.budget import check as budgets
    from analyzer.budget import load, make, render, reports

    if init:
        if budget or baseline:
            raise click.UsageError("--init makes a budget: it takes neither --budget nor --baseline")
        destination = Destination(output, force, trace)
        destination.write(make.make(_contract(trace, step, jobs)).encode())
        return
    path = budget or load.find(Path.cwd())
    if path is None:
        raise click.UsageError("no --budget, and no pyproject.toml with [tool.tracecli] from here upward; see --init")
    limits = load.read(path)  # before the trace: its mistakes show at once
    if baseline is None and limits.baseline is not None:
        baseline = str(path.parent / limits.baseline)
    before = None if baseline is None else reports.read(baseline)
    destination = Destination(output, force, trace, path, baseline)
    outcome = budgets.check(limits, _contract(trace, step, jobs), before)
    destination.write(render.render(outcome, form).encode("utf-8", "backslashreplace"))
    if not outcome.holds:
        ctx.exit(Exit.BROKEN)


def _contract(trace: str, step: str | None, jobs: int | None) -> Mapping[str, Any]:
    """The report of a trace, or a saved one."""
    from analyzer import pipeline
    from analyzer.sources.kineto.read import read

    # A pipe is read once: only a file can be looked at first.
    if Path(trace).is_file() and (found := pipeline.saved(trace)) is not None:
        if step is not None:
            raise click.UsageError(f"{trace} is a report: --step is for traces")
        return found
    with Progress() as progress:
        frames = read(trace, jobs=jobs, progress=progress)
    return pipeline.run(frames, step=step).contract
