"""From what a command line names to the report of a run: a trace that is analysed, or a report that was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from analyzer.cli.progress import Progress

if TYPE_CHECKING:
    from analyzer.events.select import Selection
    from analyzer.report.document import Report


def report_of(path: str, *, part: Selection | None = None, jobs: int | None = None, strict: bool = False) -> Report:
    """The report of a run. Raises TraceError as the reader and the loader do."""
    from analyzer import saved
    from analyzer.sources.kineto.read import read

    if path != "-" and (found := saved.load(path, "run")) is not None:
        if part is not None:
            raise click.UsageError(f"{path} is a report: a part can be taken of a trace only, and its phases are found")
        return found
    with Progress() as progress:
        # Not bound to a name: whoever holds the frames keeps a second copy of all host events alive.
        frames = [read(path, jobs=jobs, strict=strict, progress=progress)]
    # Not before: while workers parse, the reader imports what the pipeline stands on.
    from analyzer import pipeline

    return pipeline.run(frames.pop(), part)
