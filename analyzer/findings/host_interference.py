"""Another thread, or another process, keeps the launching thread from running.

What it means
    The thread that launches has work to do and does not get on: Python's interpreter lock (the GIL) is held by another
    thread of the program, which gives it up every 5 ms, or there are more busy threads than processors. The device
    waits. No change of the launching code would help.

How it is computed
    Idle time of the host's own part that comes in multiples of one quantum of about 5 ms, fifteen times or more: the
    interval after which CPython makes a thread give up the lock (`sys.getswitchinterval`). It fires where this makes
    up a twentieth of the window. "Up to" is all of it.

What to try
    Move the other thread's Python work into a process (multiprocessing, DataLoader workers), or into code that
    releases the lock; give the program as many processors as it has busy threads; torch.set_num_threads for CPU work.

When it is wrong
    Work that is itself timed in steps of 5 ms (a poll, a sleep of that length) looks alike; and where too few
    processors hold the thread up, the steps are those of the scheduler, and nothing fires.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.pauses import Pauses
from analyzer.findings import WORTH, bound, finding, grade, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "host-interference"


def find(results: Results) -> Iterable[Finding]:
    found = [p for p in results[Pauses].pauses if p.kind == "interference"]
    total = sum(p.total_ns for p in found)
    share = share_of(results, total)
    if not found or share < WORTH:
        return
    most = found[0]
    yield finding(
        results,
        NAME,
        Severity.ERROR if bound(results) == "pause-bound" and share >= 0.5 else grade(share),
        f"the launching thread is kept from running {units.plural(most.count, 'time')}, {units.duration(total)} in all",
        (
            f"median {units.duration(most.median_ns)}, max {units.duration(most.max_ns)}: multiples of the 5 ms after "
            "which Python passes the interpreter's lock on",
        ),
        "Move the other thread's Python work into a process, and see that there are as many processors as busy "
        "threads; record with Python stacks to see who holds the lock.",
        total,
    )
