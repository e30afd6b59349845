"""What bounds a run: which part of the time is the largest, and whether it is most of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from analyzer import units
from analyzer.index.activity import Cause

#: A part must hold at least this share of the judged time to name the bound. Below one half another
#: part, or several together, would win more when removed.
MAJORITY = 0.5

#: A launch path takes microseconds. Beyond this, work that was launched and did not start waited for
#: something that the trace does not show, and no dispatching faster would help.
LATENCY_LIMIT_NS = 1_000_000

#: Idle causes by the part of the system that the device waited for.
PARTS: dict[str, tuple[Cause, ...]] = {
    "overhead": (
        Cause.DISPATCH,
        Cause.COMPILED_OVERHEAD,
        Cause.PYTHON,
        Cause.LAUNCH_LATENCY,
        Cause.ALLOCATOR,
        Cause.FIRST_USE,
        Cause.COMPILE,
    ),
    "sync": (Cause.BLOCKING_SYNC,),
    "input": (Cause.INPUT_PIPELINE,),
    "copy": (Cause.PAGEABLE_COPY,),
    "communication": (Cause.COLLECTIVE,),
    "compute": (Cause.DEVICE_TURNAROUND, Cause.GRAPH_INTERNAL),
    "dependency": (Cause.DEPENDENCY,),
    "unknown": (Cause.NO_HOST_EVENT, Cause.UNLINKED),
    "not recorded": (Cause.NOT_RECORDED,),
    "profiler": (Cause.PROFILER,),
}
_SENTENCES = {
    "overhead": "the device waits for the host to dispatch work",
    "sync": "the host blocks on the device, and the device then waits for the host",
    "input": "the device waits while the host prepares input",
    "copy": "copies take the time",
    "communication": "collectives that no compute overlaps take the time",
    "compute": "the device itself is the bottleneck",
    "dependency": "streams wait for each other",
    "unknown": "the device waits and the trace does not say for what",
}

Bound = Literal[
    "overhead-bound",
    "sync-bound",
    "input-bound",
    "copy-bound",
    "communication-bound",
    "compute-bound",
    "cpu-only",
    "mixed",
    "nothing-to-judge",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """bound as in DESIGN; reason is a sentence with its figures; parts are ns of device time."""

    bound: Bound
    reason: str
    parts: Mapping[str, int]


def judge(
    compute_ns: int, copy_ns: int, communication_ns: int, idle: Mapping[Cause, int], unexplained_ns: int = 0
) -> Verdict:
    """The bound of some stretch of device time.

    compute_ns, copy_ns, communication_ns  busy time: by compute, by copies alone, by collectives alone.
    idle                                   idle time by cause.
    unexplained_ns                         idle time whose cause in `idle` does not explain its length.
    The profiler's own time is not judged. Where launches without a device record make up half of the
    rest, nothing is: the device may have been busy all along.
    """
    parts = {part: sum(idle.get(cause, 0) for cause in causes) for part, causes in PARTS.items()}
    parts["compute"] += compute_ns
    parts["copy"] += copy_ns
    parts["communication"] += communication_ns
    parts["unknown"] += unexplained_ns
    judged = sum(parts.values()) - parts["profiler"]
    if judged <= 0:
        return Verdict("nothing-to-judge", "no device time to judge", parts)
    if parts["not recorded"] >= MAJORITY * judged:
        reason = "launches without device records hide what the device did"
        return Verdict("nothing-to-judge", reason, parts)
    ranked = sorted(_SENTENCES, key=lambda part: -parts[part])
    first, second = ranked[:2]
    share = parts[first] / judged
    text = f"{_SENTENCES[first]}: {units.duration(parts[first])} of {units.duration(judged)} ({units.share(share)})"
    if share >= MAJORITY:
        bound = "mixed" if first in ("dependency", "unknown") else f"{first}-bound"
        return Verdict(cast("Bound", bound), text, parts)
    other = f"{_SENTENCES[second]}: {units.duration(parts[second])} ({units.share(parts[second] / judged)})"
    return Verdict("mixed", f"no part holds half of the time; {text}; {other}", parts)
