"""Work that was queued in time starts late, because another stream's work holds the device or the link.

What it means
    Streams let independent work overlap, but they share the processors and the copy engines. A long kernel or copy
    of one stream that holds them makes the short work of another wait, although it was launched long before: the
    device is busy, and the stream that sets the pace stands still.

How it is computed
    Time from the end of the work before it on its stream to a piece's start, beyond the usual of the same neighbours
    (five at least), where it was launched before that time began, no `cudaStreamWaitEvent` told the stream to wait,
    and another stream's work that needs the same processors, or the same direction of the link, ran for four fifths
    of it. Delays below 50 µs are the hardware's own scheduling. "Up to" adds the delays up, each moment of a device
    once. A warning from a fiftieth of the window on: queued work should hardly ever wait.

What to try
    Give the stream that sets the pace a higher priority, so that its blocks are placed first:
        stream = torch.cuda.Stream(priority=-1)
    Cut the long kernel or copy into pieces, or issue it where the other stream has nothing to run. Copies inside the
    device need its memory: let fewer run, or use a buffer in place of a copy.

When it is wrong
    If both streams are needed for the same result, one waits for the other in any order, and nothing is won.
    Launches from two threads: nothing recorded says that their order was meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer import units
from analyzer.analyses.spikes import Contention, Spikes
from analyzer.findings import SEEN, finding, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "stream-contention"
LEAST = 0.02
LISTED = 3


def find(results: Results) -> Iterable[Finding]:
    late = results[Spikes].contention
    lost = _once(late)
    share = share_of(results, lost)
    if share < SEEN:
        return
    pairs: dict[tuple[str, str], list[int]] = {}
    for one in late:
        pairs.setdefault((one.name, one.by), []).append(one.late_ns)
    largest = sorted(pairs.items(), key=lambda pair: (-sum(pair[1]), pair[0]))[:LISTED]
    yield finding(
        results,
        NAME,
        Severity.WARNING if share >= LEAST else Severity.NOTE,
        f"{plural(len(late), 'queued launch starts', 'queued launches start')} late behind another stream's work",
        (
            f"{len(ns):,} × {units.short_name(name, 48)} behind {units.short_name(by, 48)}: "
            f"{units.duration(sum(ns))} late, {units.duration(max(ns))} at most"
            for (name, by), ns in largest
        ),
        "Issue the long work where the other stream has nothing to run, or in pieces; or give the stream that sets "
        "the pace a higher priority: torch.cuda.Stream(priority=-1).",
        lost,
    )


def _once(late: Sequence[Contention]) -> int:
    """Time in which anything was late, each moment of a device once (ns)."""
    total, until = 0, dict[int, int]()
    for one in sorted(late, key=lambda c: c.start_ns - c.late_ns):
        start = max(one.start_ns - one.late_ns, until.get(one.device, 0))
        total += max(one.start_ns - start, 0)
        until[one.device] = max(one.start_ns, until.get(one.device, 0))
    return total
