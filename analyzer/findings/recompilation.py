"""A compiled function was compiled again, or gave up and runs eagerly.

What it means
    `torch.compile` specialises on shapes, types and values. What does not fit is compiled anew; after a number
    of tries (torch._dynamo.config.recompile_limit, 8 by default) Dynamo gives up, and the function silently
    runs eagerly: it pays for a guard lookup on every call and gains nothing.

How it is computed
    A region is named "frame/version": two or more versions of one frame in one trace mean that calls alternate
    between specialisations (one version above 0 alone is the usual switch to dynamic shapes, and stays
    silent). From half the default limit on it is a warning. Guard lookups with no compiled region anywhere in the
    trace, three or more, mean that the function runs eagerly. "Up to" is the compile time in the trace where it
    was recorded; else it cannot be told.

What to try
    TORCH_LOGS="recompiles" names the guard that failed. Mark what varies:
        torch._dynamo.mark_dynamic(x, 0)          # or torch.compile(f, dynamic=True)
    Pad to a few sizes, pass Python numbers as tensors, keep modules' attributes constant. To be told:
        torch._dynamo.config.error_on_recompile = True

When it is wrong
    Two modules of one class share a frame, and their versions are not a recompilation but two instances. Lookups
    without a region also come from functions that were skipped on purpose (torch.compiler.disable).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.compile import Compilation, Compile
from analyzer.findings import WORTH, finding, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "recompilation"
#: Half of Dynamo's default limit of 8 versions a function.
MANY = 4
#: A lookup or two without a region is a helper that Dynamo skipped.
LOOKUPS = 3
_VERSION = re.compile(r"(\S+)/(\d+)$")


def find(results: Results) -> Iterable[Finding]:
    compiled = results[Compile].compile
    if not compiled.regions and compiled.lookups_without_region >= LOOKUPS:
        yield _silent(results, compiled)
        return
    versions: dict[str, list[int]] = {}
    calls: dict[str, int] = {}
    for region in compiled.regions:
        if match := _VERSION.search(region.name):
            versions.setdefault(match[1], []).append(int(match[2]))
            calls[match[1]] = calls.get(match[1], 0) + region.calls
    several = {frame: seen for frame, seen in versions.items() if len(seen) > 1}
    if not several:
        return
    highest = max(max(seen) for seen in several.values())
    took = compiled.compile_time_ns
    yield finding(
        results,
        NAME,
        Severity.WARNING if highest >= MANY or share_of(results, took) >= WORTH else Severity.NOTE,
        f"{plural(len(several), 'compiled function runs', 'compiled functions run')} in several versions",
        (
            *(
                f"function {frame}: versions {', '.join(map(str, sorted(seen)))} in {plural(calls[frame], 'call')}"
                for frame, seen in list(several.items())[:3]
            ),
            f"compiling took {units.duration(took)} of host time" if took else None,
        ),
        'TORCH_LOGS="recompiles" names the guard that fails; mark what varies with torch._dynamo.mark_dynamic, or pad '
        "to a few sizes.",
        took or None,
    )


def _silent(results: Results, compiled: Compilation) -> Finding:
    return finding(
        results,
        NAME,
        Severity.WARNING,
        "a compiled function silently runs eagerly",
        (f"{compiled.lookups_without_region:,} guard lookups, and no compiled region follows any of them",),
        'Dynamo gave up, most likely after too many recompilations: TORCH_LOGS="recompiles,graph_breaks" says why; '
        "mark what varies with torch._dynamo.mark_dynamic, or drop torch.compile here.",
    )
