"""Compiled regions cost the host time around the operators and kernels that they run.

What it means
    Every call of a compiled function evaluates guards, runs a prologue, and goes through the generated Python
    code. For small work that costs more than eager dispatch would; for large work it hides behind the device.

How it is computed
    Tax of a call = guard lookup + the region's own time outside operators and host calls (prologue, generated
    code, wrappers), less the profiler's. Of each call, the time that the device waited for a late launch, at most
    the tax, is exposed; "up to" adds that up. It needs three calls (one call is a first call), and a tax of a
    hundredth of the window. It is hidden, and a note, where the median call leaves less than a quarter of its
    tax exposed, or where its host time is shorter than its device time: then the host runs ahead for good.
    Copies beside the replay of a CUDA graph, most likely of its inputs, are told apart from a hundredth on.

What to try
    Compile larger pieces (the whole model or step, not each layer), so that one call's tax serves more kernels.
    For static shapes let a CUDA graph replay the launches:
        torch.compile(model, mode="reduce-overhead")
    For a few small operators stay eager. Guards: torch.compiler.set_stance("fail_on_recompile") and fewer
    Python objects in the closure.

When it is wrong
    The profiler inserts its own record for each part of a region, which costs a few µs a call. Kernels that the
    compiler fused away have no time to be compared with: hold an eager recording against this one with
    `tracecli compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from analyzer import units
from analyzer.analyses.compiled import Compiled, Region
from analyzer.findings import SEEN, finding, grade, named, share_of, spread, take
from analyzer.index import exposure
from analyzer.index.activity import REGION_ROLES
from analyzer.index.build import Call, Chains, Role
from analyzer.index.within import work_of
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Rows

NAME = "compile-tax"
#: The first call of a region is never typical; three make a median that is not it.
CALLS = 3
#: Below this share of the tax the device hardly noticed.
HIDDEN = 0.25


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    host, role = chains.host, chains.role
    regions = np.nonzero((role == Role.REGION) & (host.enclosing(role == Role.REGION) < 0))[0].astype(np.int32)
    if len(regions) < CALLS or not chains.device.height:
        return
    yield from _graph_copies(chains, regions)
    lookups = np.nonzero(role == Role.GUARDS)[0]
    own = np.where(np.isin(role, REGION_ROLES), np.maximum(host.self_ns - chains.profiler_ns, 0), 0)
    tax = host.below(own)[regions]
    guards = int((host.end - host.start - chains.profiler_ns)[lookups].sum())
    total = int(tax.sum()) + guards
    if share_of(chains, total) < SEEN:
        return
    length = (host.end - host.start)[regions]
    exposed = np.minimum(tax, exposure.waited_during(chains, host.start[regions], host.end[regions]))
    waited = int(exposed.sum() + exposure.waited_during(chains, host.start[lookups], host.end[lookups]).sum())
    waited = min(waited, total)
    ahead = bool(
        np.median(length) + guards / len(regions) < np.median(work_of(chains, regions.astype(np.int64)).device_ns)
    )
    hidden = ahead or bool(np.median(exposed) < HIDDEN * np.median(tax))
    usual = float(np.median(tax)) + guards / len(regions)
    yield finding(
        NAME,
        Severity.NOTE if hidden else grade(share_of(chains, waited)),
        f"torch.compile's own code takes {units.duration(usual)} of host time a call"
        + (", hidden behind the device" if hidden else ""),
        (*_split(results), _waits(exposed, ahead)),
        "Nothing to win while the device is the bottleneck: it is busy while this code runs."
        if hidden
        else 'Compile a larger piece at once, or use mode="reduce-overhead" with static shapes. Work this small may be '
        "faster in eager: record both and use tracecli compare.",
        None if hidden else waited,
        chains,
    )


def _split(results: Mapping[str, Result]) -> list[str]:
    """The two costliest regions, median per call."""
    return [
        f"{r.name}: {plural(r.calls, 'call')}, each {units.duration(r.cpu_ns)} of CPU, {units.duration(r.device_ns)} "
        f"of device work: {named((name, ns) for name, ns in _parts(r) if ns)}"
        for r in take(results, Compiled).regions[:2]
    ]


def _parts(r: Region) -> list[tuple[str, int]]:
    return [
        ("own", int(r.overhead_ns)),
        ("prologue", int(r.prologue_ns)),
        ("generated code with its launches", int(r.generated_ns)),
        ("operators", int(r.operators_ns)),
        ("guards before it", int(r.guard_ns or 0)),
    ]


def _waits(exposed: Ints, ahead: bool) -> str:
    text = f"the device waited for {spread(exposed.tolist())} of it a call"
    return f"{text}; its work outlasts the host's, so that the host gets ahead in a longer run" if ahead else text


def _graph_copies(chains: Chains, regions: Rows) -> Iterable[Finding]:
    """A region that replays a graph copies its inputs to where the graph expects them."""
    graph = chains.host.below((chains.call == Call.GRAPH).astype(np.int64))[regions] > 0
    if not graph.any():
        return
    copies = exposure.launched_ns(chains, (exposure.kinds(chains) == "copy").to_numpy())
    per_call = chains.host.below(np.where(chains.call == Call.GRAPH, 0, copies))[regions][graph]
    total = int(per_call.sum())
    share = share_of(chains, total)
    if share < SEEN:
        return
    yield finding(
        NAME,
        grade(share, Severity.WARNING),
        "inputs are copied into the CUDA graph's memory at every call",
        (f"{plural(int(graph.sum()), 'call')} that replay a graph, with copies of {spread(per_call.tolist())} each",),
        "Keep inputs at fixed addresses, torch._dynamo.mark_static_address(x) for those that never move, or copy only "
        "what changed; compile without CUDA graphs where the copies outweigh the launches.",
        total,
        chains,
    )
