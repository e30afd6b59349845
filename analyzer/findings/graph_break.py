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

from collections.abc import Iterable, Mapping

from analyzer.findings import finding
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

NAME = "graph-break"
_RESUME = r"torch_dynamo_resume_in_([\w.<>]+?)_at_(\d+)"


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    names = chains.trace.names
    found = names.str.extract_groups(_RESUME)
    places = sorted(
        {(f, line) for f, line in zip(found.struct[0].to_list(), found.struct[1].to_list(), strict=True) if f}
    )
    if not places:
        return
    shown = ", ".join(f"{function}, line {line}" for function, line in places[:5])
    more = f" and {len(places) - 5:,} more" if len(places) > 5 else ""
    yield finding(
        NAME,
        Severity.NOTE,
        f"{plural(len(places), 'graph break cuts', 'graph breaks cut')} a compiled function into pieces",
        (f"resumes in {shown}{more}",),
        'TORCH_LOGS="graph_breaks" says why; torch.compile(..., fullgraph=True) makes a break an error.',
        None,
        chains,
    )
