"""A compiled function is cut into pieces by graph breaks.

What it means
    Where Dynamo meets code that it cannot trace (a print, `.item()`, an unsupported library call), it ends the
    graph, runs that code in Python, and resumes in a new function. Each piece pays the compile tax again, and
    nothing is fused across the cut.

How it is computed
    Dynamo names the functions it resumes in `torch_dynamo_resume_in_<function>_at_<line>`. They show as Python
    frames where stacks were recorded, or in the names of regions. It fires on any such name: one is enough to
    know the line. It is a note; the cost shows in `compile-tax`, so that no time is claimed twice.

What to try
    TORCH_LOGS="graph_breaks" or torch._dynamo.explain(f)(x) says what each break was for.
        torch.compile(model, fullgraph=True)      # an error in place of a silent break
    Move logging and `.item()` out of the compiled function; torch._dynamo.config.capture_scalar_outputs = True
    traces `.item()`; torch.library.custom_op wraps what cannot be traced.

When it is wrong
    Without Python stacks breaks leave no name, and this stays silent. A break outside the hot loop costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.analyses.traits import Traits
from analyzer.findings import finding
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "graph-break"


def find(results: Results) -> Iterable[Finding]:
    places = results[Traits].traits.resumes
    if not places:
        return
    shown = ", ".join(f"{p.function}, line {p.line}" for p in places[:5])
    more = f" and {len(places) - 5:,} more" if len(places) > 5 else ""
    yield finding(
        results,
        NAME,
        Severity.NOTE,
        f"{plural(len(places), 'graph break cuts', 'graph breaks cut')} a compiled function into pieces",
        (f"resumes in {shown}{more}",),
        'TORCH_LOGS="graph_breaks" says why; torch.compile(..., fullgraph=True) makes a break an error.',
    )
