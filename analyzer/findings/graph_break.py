"""A compiled function is cut into pieces by graph breaks.

What it means
    Where Dynamo meets code that it cannot trace (a print, `.item()`, an unsupported library call), it ends the
    graph, runs that code in Python, and resumes in a new function. Each piece pays the compile tax again, and
    nothing is fused across the cut.

How it is computed
    A compiled region inside another is what resumes after a break; where Python stacks were recorded, Dynamo also
    names the functions it resumes in, `torch_dynamo_resume_in_<function>_at_<line>`. "Up to" is the device's idle time
    from the end of what the outer region ran to the start of the inner one: the user's code at the break, and the
    guards after it. How grave it is follows from that time, not from the number of breaks.

What to try
    TORCH_LOGS="graph_breaks" or torch._dynamo.explain(f)(x) says what each break was for.
        torch.compile(model, fullgraph=True)      # an error in place of a silent break
    Move logging and `.item()` out of the compiled function; torch._dynamo.config.capture_scalar_outputs = True
    traces `.item()`; torch.library.custom_op wraps what cannot be traced.

When it is wrong
    A compiled function that calls another compiled one, which was not inlined, looks alike. A break outside the hot
    loop costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.compile import Compile
from analyzer.analyses.traits import Traits
from analyzer.findings import finding, grade, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "graph-break"


def find(results: Results) -> Iterable[Finding]:
    compiled, places = results[Compile].compile, results[Traits].traits.resumes
    inner = [r for r in compiled.regions if r.parent is not None]
    count = max(len(places), compiled.graph_breaks or 0)
    if not count:
        return
    shown = ", ".join(f"{p.function}, line {p.line}" for p in places[:5])
    more = f" and {len(places) - 5:,} more" if len(places) > 5 else ""
    user = sum(r.user_ns_at_breaks for r in compiled.regions)
    cost = compiled.break_ns
    yield finding(
        results,
        NAME,
        grade(share_of(results, cost), Severity.ERROR),
        f"{plural(count, 'graph break cuts', 'graph breaks cut')} a compiled function into pieces",
        (
            f"resumes in {shown}{more}" if places else None,
            *(f"{r.name} resumes inside {r.parent}: {plural(r.calls, 'call')}" for r in inner[:5]),
            f"the user's code at the breaks takes {units.duration(user)} of the host" if user else None,
            f"the device waits for {units.duration(cost)} of it, guards included" if cost else None,
        ),
        'TORCH_LOGS="graph_breaks" says why; torch.compile(..., fullgraph=True) makes a break an error.',
        cost or None,
    )
