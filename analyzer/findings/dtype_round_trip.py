"""Tensors are converted to a wider number format and straight back.

What it means
    `x.float()`, a point-wise operator, `.to(torch.bfloat16)`: three passes over memory, two of which only change the
    format. The operator between them would compute in fp32 inside anyway, whatever the format of its tensors.

How it is computed
    Two conversions that the program asks for itself (`.to`, `.float()`; not those that autocast or a backward pass
    makes), one to a wider format and the next on the same stream back to a narrower, with at most two point-wise
    kernels between them, and of equal size where sizes were recorded. A reduction or a longer chain between them is a
    computation that was meant to be precise, and is left out. "Up to" is the device time in which only conversions
    ran; what the operator between them takes longer in the wide format comes on top. It fires from a hundredth of the
    window on, as a warning from a twentieth, and not where the run waits for its host.

What to try
    Leave the format alone: torch's point-wise kernels load 16-bit numbers, compute in fp32 and store 16-bit ones.
    Where precision is needed over several operators, `torch.compile` fuses them with both conversions into one pass.

When it is wrong
    Without recorded shapes the pair is told by its neighbourhood. Rounding on purpose (simulated quantization) needs
    the conversions.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.conversions import Conversions
from analyzer.findings import SEEN, finding, grade, host_bound, share_of, within
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "dtype-round-trip"
LISTED = 3


def find(results: Results) -> Iterable[Finding]:
    found = results[Conversions].conversions
    share = share_of(results, found.round_trips_ns)
    if share < SEEN or host_bound(results):
        return
    first = found.round_trips[0]
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"{plural(sum(t.count for t in found.round_trips), 'tensor')} go from {first.narrow} to {first.wide} and "
        "straight back",
        (
            f"{t.count:,} × {t.narrow} > {t.wide} > {t.narrow}, back in {within(t.path) or 'no operator'}: conversions "
            f"take {units.duration(t.device_ns)}"
            for t in found.round_trips[:LISTED]
        ),
        f"Leave the tensors in {first.narrow}: point-wise kernels compute in fp32 inside anyway. Where several "
        "operators need the precision, torch.compile fuses them with the conversions.",
        found.round_trips_ns,
    )
