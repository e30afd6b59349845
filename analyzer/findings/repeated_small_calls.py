"""A module is called many times in a row on small pieces: one call with all of them would do.

What it means
    A loop over samples, crops, heads or time steps calls the same module again and again, and each call launches the
    same few small kernels. The device is through with a piece before the host has dispatched the next one.

How it is computed
    Needs module frames (with_stack=True or with_modules=True). Modules side by side in one call of the module around
    them, or in one profiler step, with no launch between the calls: what the host makes of one call's result, a token
    or a scheduler's step, is launched, and such a loop is none. It fires where one and the same module is called eight
    times or more in such a row, launches twice or more a call, and the host takes longer for a call than the device.
    "Up to" is what the device waited for late launches in these calls, less one call's share a row.

What to try
        y = torch.stack([net(x) for x in pieces])     # one pass of the launch path for each piece
        y = net(torch.stack(pieces))                  # one for all: pad, or sort by length, where shapes differ
    A recurrence over time: nn.LSTM, nn.GRU or a scan in place of a loop over cells; else capture the loop in a graph.
    Weights that differ from call to call: torch.func.stack_module_state with vmap, or a grouped product.

When it is wrong
    Pieces that need the result of the one before them cannot be batched; memory may not hold all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.repeated_modules import RepeatedModule
from analyzer.findings import SEEN, finding, grade, repeated_calls, share_of
from analyzer.report.findings import Finding
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "repeated-small-calls"


def find(results: Results) -> Iterable[Finding]:
    small = repeated_calls(results)
    spare = sum(r.spare_ns for r in small)
    if share_of(results, spare) < SEEN:
        return
    first = small[0]
    yield finding(
        results,
        NAME,
        grade(share_of(results, spare)),
        f"{first.name} is called {units.count(first.calls_a_row)} times in a row on small pieces",
        (
            *(_line(r) for r in small[:3]),
            f"the device waits {units.duration(sum(r.waited_ns for r in small))} for the launches of these calls",
        ),
        "Stack the pieces and call the module once (pad where shapes differ); a recurrence: nn.LSTM, nn.GRU or a graph "
        "of the loop.",
        spare,
    )


def _line(r: RepeatedModule) -> str:
    where = f"in one call of {r.around}" if r.around else "in one step"
    return (
        f"{r.name}: {units.count(r.calls_a_row)} calls {where}, {plural(r.rows, 'time')}; a call launches "
        f"{units.count(r.launches_median)}, takes the host {units.duration(r.host_ns_median)} and the device "
        f"{units.duration(r.device_ns_median)}"
    )
