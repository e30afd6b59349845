"""`tracecli compare`: runs side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from analyzer.cli import options as shared
from analyzer.cli.output import ReportOptions
from analyzer.cli.runs import report_of


@click.command(
    epilog=shared.epilog(
        "tracecli compare eager.json.gz compiled.json.gz",
        "tracecli compare before.json after.json -o difference.md",
    )
)
@click.argument("runs", nargs=-1, required=True)
@shared.report
@shared.jobs
def compare(runs: tuple[str, ...], options: ReportOptions, jobs: int | None) -> None:
    """Put runs side by side: per step or call, so that unequal counts compare fairly.

    RUNS are two or more traces, or reports saved with -o report.json. Two runs: the differences; more: a
    table of variants with the best marked.
    """
    from analyzer.compare.report import compare as compare_reports

    if len(runs) < 2:
        raise click.UsageError("compare needs two runs or more")
    destination = options.to(*runs)
    destination.write(compare_reports([report_of(run, jobs=jobs).results for run in runs], _labels(runs)))


def _labels(paths: Sequence[str]) -> list[str]:
    """Short names for runs: what tells the files apart, without what they all begin and end with."""
    names = [re.sub(r"(\.pt)?(\.trace)?\.json(\.gz)?$", "", path) for path in paths]
    words = [re.split(r"(?<=[/\\_.-])", name) for name in names]
    while len({w[0] for w in words}) == 1 and all(len(w) > 1 for w in words):
        words = [w[1:] for w in words]
    ends = [re.split(r"(?=[_.-])", "".join(w)) for w in words]
    while len({e[-1] for e in ends}) == 1 and all(len(e) > 1 for e in ends):
        ends = [e[:-1] for e in ends]
    labels = ["".join(e) for e in ends]
    return labels if len(set(labels)) == len(labels) else [f"{name} ({i})" for i, name in enumerate(labels, 1)]
