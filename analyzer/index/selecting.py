"""From what is asked for, by name or time, to the part of a trace that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.errors import TraceError
from analyzer.events import select
from analyzer.index.build import build

if TYPE_CHECKING:
    from analyzer.events.schema import Trace
    from analyzer.events.select import Ints, Part, Selection


def part(trace: Trace, wanted: Selection) -> Part:
    """Raises TraceError where the trace has no such part."""
    start, end = select.intervals(trace, wanted) if wanted.phase is None else _phase(trace, wanted)
    return select.choose(trace, start, end, time=wanted.time_us is not None)


def _phase(trace: Trace, wanted: Selection) -> tuple[Ints, Ints]:
    """The host's intervals of the steps of a phase."""
    run, name = build(trace, wanted.engines).phases, str(wanted.phase)
    if run.found is None or name not in run.names:
        hint = f"the phases are: {select.listed(list(run.names))}" if run.names else "nothing recorded separates steps"
        raise TraceError(f"no phase is called {name!r}", trace.path, hint)
    mine = run.phase == run.names.index(name)
    return run.found.start[mine], run.found.end[mine]
