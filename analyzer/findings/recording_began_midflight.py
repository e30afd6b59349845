"""The recording began while the device was at work.

What it means
    A profiler was attached to a running program, or a host ran far ahead: the device first worked through what had
    been queued before. What of it was recorded belongs to earlier steps; what was not looks like idle time.

How it is computed
    Device work that was launched before the window's first launch, or is unlinked and starts before its stream's
    first work launched in the window; and time in which the first work of a device stood in a queue for over a
    millisecond though nothing recorded ran. Both are part `earlier_work`: never the bound, and out of the shares.
    It fires as a note where they make up a twentieth of the window or more.

What to try
    Synchronize before the profiler starts, or skip a step with its schedule:
        torch.cuda.synchronize(); prof.start()
        schedule(wait=1, warmup=2, active=5)
    With a server, record for longer than its queue is deep.

When it is wrong
    A first kernel that waits for another process or for a host callback looks alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.recording import Recording
from analyzer.findings import WORTH, finding, part_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "recording-began-midflight"


def find(results: Results) -> Iterable[Finding]:
    found = results[Recording].recording
    _, share = part_of(results, "earlier_work")
    if not found.began_midflight or share < WORTH:
        return
    yield finding(
        results,
        NAME,
        Severity.NOTE,
        f"for {units.duration(found.earlier_work_ns)} ({units.share(share)}) the device works through what was "
        "launched before",
        (found.effect_on_verdict,),
        "Synchronize before the profiler starts, or skip steps with schedule(wait=1, warmup=2, active=5).",
        None,
    )
