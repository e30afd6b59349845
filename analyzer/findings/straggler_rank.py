"""This rank waited for others inside its collectives.

What it means
    A collective ends on all ranks at about the same time, so that a rank that arrives early spends the
    difference inside the collective's kernel. Long collectives here mean a slow rank elsewhere.

How it is computed
    From one trace: the same collective of each step (by its place in the step's order, so that it moves the same
    data; all-to-all is left out, since what it moves varies) is compared with its own fastest run. What lies above
    that is waiting, or a busy link. It needs three steps with equally many collectives, counts the places of a step
    whose typical run takes half again its fastest (less is the spread of a network), and fires where their waiting is
    a tenth of the window. "Up to" is that waiting. With less to go by it is silent: compare several ranks.

What to try
    Find the slow rank: the one whose collectives are short. Record all ranks, and look at that one for input, host
    work, or clocks:
        tracecli compare rank-0.json.gz rank-1.json.gz

When it is wrong
    Other traffic on the links, or a switch to another algorithm, lengthens collectives too. If every run waits, even
    the fastest does, and the figure is too small.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.collective_waits import CollectiveWaits
from analyzer.findings import finding, share_of, spread
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "straggler-rank"
LEAST = 0.1
TYPICAL = 1.5


def find(results: Results) -> Iterable[Finding]:
    places = [p for p in results[CollectiveWaits].collective_waits if p.runs.median_ns >= TYPICAL * p.fastest_ns]
    excess = sum(p.excess_ns for p in places)
    if share_of(results, excess) < LEAST:
        return
    worst = places[0]
    yield finding(
        results,
        NAME,
        Severity.WARNING,
        f"this rank waited {units.duration(excess)} in collectives, most likely for a slower one",
        (
            f"collective {worst.place + 1} of each step: fastest {units.duration(worst.fastest_ns)}, "
            f"{spread(worst.runs)} over {plural(worst.runs.count, 'step')}",
            f"{plural(len(places), 'place')} of a step where the typical run takes {TYPICAL:g} times its fastest",
        ),
        "Record the other ranks and look at the one whose collectives are short: it is the slow one.",
        excess,
    )
