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

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.compile import Compile, Region
from analyzer.analyses.devices import Devices
from analyzer.analyses.region_tax import RegionTax
from analyzer.findings import SEEN, finding, grade, named, share_of, spread, words
from analyzer.report.durations import Durations
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "compile-tax"
#: The first call of a region is never typical; three make a median that is not it.
CALLS = 3
#: Below this share of the tax the device hardly noticed.
HIDDEN = 0.25


def find(results: Results) -> Iterable[Finding]:
    tax = results[RegionTax].region_tax
    calls, exposed = tax.calls, tax.exposed
    if calls is None or exposed is None or calls.count < CALLS or not results[Devices].devices:
        return
    yield from _graph_inputs(results)
    if share_of(results, calls.total_ns + tax.guards_ns) < SEEN:
        return
    hidden = tax.host_ahead or exposed.median_ns < HIDDEN * calls.median_ns
    usual = calls.median_ns + tax.guards_ns / calls.count
    yield finding(
        results,
        NAME,
        Severity.NOTE if hidden else grade(share_of(results, tax.exposed_ns)),
        f"torch.compile's own code takes {units.duration(usual)} of host time a call"
        + (", hidden behind the device" if hidden else ""),
        (*(_split(region) for region in results[Compile].compile.regions[:2]), _waits(exposed, tax.host_ahead)),
        "Nothing to win while the device is the bottleneck: it is busy while this code runs."
        if hidden
        else 'Compile a larger piece at once, or use mode="reduce-overhead" with static shapes. Work this small may be '
        "faster in eager: record both and use tracecli compare.",
        None if hidden else tax.exposed_ns,
    )


def _split(r: Region) -> str:
    """A region's usual call, by its parts."""
    parts = (
        ("own", r.overhead_ns_median),
        ("prologue", r.prologue_ns_median),
        ("generated code with its launches", r.generated_ns_median),
        ("operators", r.operators_ns_median),
        ("guards before it", r.guard_ns_median or 0),
    )
    return (
        f"{r.name}: {plural(r.calls, 'call')}, each {units.duration(r.cpu_ns_median)} of CPU, "
        f"{units.duration(r.device_ns_median)} of device work: {named((name, int(ns)) for name, ns in parts if ns)}"
    )


def _waits(exposed: Durations, ahead: bool) -> str:
    text = f"the device waited for {spread(exposed)} of it a call"
    return f"{text}; its work outlasts the host's, so that the host gets ahead in a longer run" if ahead else text


def _graph_inputs(results: Results) -> Iterable[Finding]:
    """A region that replays a graph copies its inputs to where the graph expects them."""
    inputs = results[RegionTax].region_tax.graph_inputs
    if inputs is None or (share := share_of(results, inputs.device_ns)) < SEEN:
        return
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"inputs are copied into the {words(results).graph}'s memory at every call",
        (f"{plural(inputs.calls.count, 'call')} that replay a graph, with copies of {spread(inputs.calls)} each",),
        "Keep inputs at fixed addresses, torch._dynamo.mark_static_address(x) for those that never move, or copy only "
        f"what changed; compile without {words(results).graph}s where the copies outweigh the launches.",
        inputs.device_ns,
    )
