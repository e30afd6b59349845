"""The host stands still for the device, and the device then waits for the host.

What it means
    A synchronize, `.item()`, `nonzero()`, `bool(tensor)`, `.cpu()` or a pageable copy holds the host until all
    queued work is done. While it waits it queues nothing, so that the device has nothing to do when it
    ends. A wait is rarely idle time itself: its price is the head start that the host loses.

How it is computed
    Time inside synchronize calls, and the blocking part of pageable copies. What a wait costs is the idle gap
    that follows on the device, as far as dispatch, Python or the wait itself is its cause, and never more than
    the wait took: without it the host would be ahead by just that. "Up to" adds this up. It fires when the
    verdict is sync-bound, or the cost is at least a hundredth of the window; and as a note when three waits or more
    hold the host for a quarter of the window but the device worked meanwhile, or when an operator reads something
    back in every step of a run that its host holds back: such a wait is short because the device is idle already. A
    final synchronize that only flushes the profiler is not counted.

What to try
    Keep values on the device: `torch.where(mask, a, b)` in place of `if mask.any():`, accumulate the loss in a
    tensor and call `.item()` every hundred steps, `torch.nonzero` only where its size is needed. Constants:
    `torch.tensor(x, device="cuda")` copies from pageable memory each call; make it once, outside the loop.
    Inputs: `pin_memory=True` and `.to("cuda", non_blocking=True)`. To find them all:
        torch.cuda.set_sync_debug_mode("warn")

When it is wrong
    Some waits are needed (a result must be read, a stopping rule decided): then move them to where the
    device has other work queued. The gain is an upper bound: other host work may take the wait's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer import units
from analyzer.analyses.steps import Steps
from analyzer.analyses.verdict import Verdict
from analyzer.analyses.wait_cost import WaitCost, WaitPrice
from analyzer.analyses.waits import Wait, Waits
from analyzer.findings import HOLDS, SEEN, bound, finding, grade, in_phase, share_of, within
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "blocking-sync"
#: Waits are listed by operator, the longest in total first.
LISTED = 4
#: A wait or two is the end of a step; what comes back keeps the host from running ahead.
REPEATED = 3
#: Runs whose host is late in every step; a start-up is over after the first.
LATE_HOST = ("overhead-bound", "pause-bound", "input-bound")


def find(results: Results) -> Iterable[Finding]:
    cost, waits = results[WaitCost].wait_cost, results[Waits].waits.by_operator
    if not cost.count:
        return
    share = share_of(results, cost.idle_ns)
    by_verdict = bound(results) == "sync-bound"
    hidden = share < SEEN and not by_verdict
    if hidden and not _holds(results, cost):
        yield from _short(results, waits)
        return
    steps = len(results[Steps].steps)
    per_step = f", {units.count(round(cost.count / steps, 1))} a step" if steps else ""
    held = units.duration(cost.held_ns)
    title = f"{plural(cost.count, 'wait holds', 'waits hold')} the host for {held}{per_step}"
    if hidden:
        yield finding(
            results,
            NAME,
            Severity.NOTE,
            f"{title}, hidden: the device had work queued meanwhile",
            _lines(waits),
            "The waits themselves cost little, but the host could prepare the next work meanwhile: queue it first, "
            "then wait.",
        )
        return
    severity = Severity.ERROR if by_verdict else grade(share)
    where = in_phase(results, ("blocking_sync", "pageable_copy"))
    yield finding(results, NAME, severity, title + where, _lines(waits), _advice(waits), cost.idle_ns)


def _short(results: Results, waits: Sequence[Wait]) -> Iterable[Finding]:
    """A value read back in every step: the wait is short only because the device has nothing left to do."""
    often = max(REPEATED, len(results[Steps].steps))
    reads = [w for w in waits if w.operator is not None and w.operator.startswith("aten::")]
    count = sum(w.count for w in reads)
    if count < often or bound(results) not in LATE_HOST:
        return
    held = units.duration(sum(w.total_ns for w in reads))
    yield finding(
        results,
        NAME,
        Severity.NOTE,
        f"{plural(count, 'wait holds', 'waits hold')} the host for {held}: short, but nothing is queued beyond "
        f"{'it' if count == 1 else 'them'}",
        _lines(reads),
        f"They cost little while the host is late anyway; once it is faster, they keep it from running ahead. "
        f"{_advice(reads)}",
    )


def _holds(results: Results, cost: WaitPrice) -> bool:
    """Whether waits hold the host for a good part of the window, again and again, while the device works."""
    window = results[Verdict].window.duration_ns or 0
    # More than the window: several threads wait for the same work, and the sum says nothing.
    if cost.followed < REPEATED or not HOLDS * window <= cost.followed_held_ns <= window:
        return False
    return cost.followed_busy_ns >= cost.followed_held_ns // 2


def _lines(waits: Sequence[Wait]) -> list[str]:
    """One line for each place: call, operator, count and spread."""
    listed = [w for w in waits if w.path or w.count > 1]
    rows = listed[:LISTED]
    lines = [
        f"{w.count:,} × {w.call} in {within(w.path) or 'no operator'}: total {units.duration(w.total_ns)}, "
        f"median {units.duration(w.median_ns)}, max {units.duration(w.max_ns)}{_meaning(w)}"
        for w in rows
    ]
    rest = len(listed) - len(rows)
    return [*lines, f"and {plural(rest, 'other place', 'other places')}"] if rest > 0 else lines


def _meaning(wait: Wait) -> str:
    """The Python that usually stands behind an operator path."""
    operators = set(wait.path)
    if "aten::is_nonzero" in operators:
        return " (bool() of a tensor)"
    if operators & {"aten::item", "aten::_local_scalar_dense"}:
        return " (.item() or a comparison)"
    if "aten::nonzero" in operators:
        return " (nonzero: the host needs its size)"
    if "aten::copy_" in operators:
        return " (a copy that blocks: pageable memory, or .cpu())"
    return ""


def _advice(waits: Sequence[Wait]) -> str:
    operators = {name for w in waits for name in w.path}
    said = []
    if operators & {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"}:
        said.append("keep values on the device (torch.where for `if tensor:`; .item() only every N steps)")
    if "aten::nonzero" in operators:
        said.append("replace nonzero and boolean indexing by masks of fixed size")
    if "aten::copy_" in operators:
        said.append("make constants once outside the loop, and pin inputs: .to(device, non_blocking=True)")
    if not said:
        said.append("drop synchronizes that only time or log, or queue the next work before them")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}. torch.cuda.set_sync_debug_mode('warn') names each line."
