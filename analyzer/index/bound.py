"""What bounds a run: which part of the window is the largest, and whether it is most of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analyzer import units

if TYPE_CHECKING:
    from analyzer.index.parts import Part

#: A part must hold at least this share of the judged time to name the bound: below one half another part, or
#: several together, would win more when removed. A part that is so much larger than the next needs less.
MAJORITY, PLURALITY, AHEAD = 0.5, 0.4, 1.5

#: A launch path takes microseconds. Beyond this, work that was launched and did not start waited for
#: something that the trace does not show, and no dispatching faster would help.
LATENCY_LIMIT_NS = 1_000_000

#: Where half of the window or more is earlier work or was not recorded, and no more than this is left, nothing is
#: judged: a millisecond is a few launches.
LEFT_NS = 1_000_000

_SENTENCES = {
    "compute": "the device itself is the bottleneck",
    "communication": "collectives that no compute overlaps take the time",
    "copies": "copies that no kernel overlaps take the time",
    "dispatch": "the device waits for the host to dispatch work",
    "pauses": "the host stops launching, and the device stands still",
    "input": "the device waits while the host prepares input",
    "waits": "the host blocks on the device, and the device then waits for the host",
    "allocator": "the device waits while the host allocates or frees memory",
    "startup": "what is done once takes the time: first use, compilation or graph capture",
    "unknown": "the device waits and the trace does not say for what",
}
#: The same parts, where several share the time.
_NAMES = {
    "compute": "the device's own work",
    "communication": "collectives that no compute overlaps",
    "copies": "copies that no kernel overlaps",
    "dispatch": "dispatch",
    "pauses": "pauses of the host",
    "input": "the input pipeline",
    "waits": "blocking waits of the host",
    "allocator": "allocation",
    "startup": "first use and compilation",
    "unknown": "waiting that the trace does not explain",
}
_ASIDE = ("profiler", "earlier_work", "not_recorded")

Bound = Literal[
    "compute-bound",
    "communication-bound",
    "copy-bound",
    "overhead-bound",
    "pause-bound",
    "input-bound",
    "sync-bound",
    "allocator-bound",
    "startup-bound",
    "mixed",
    "cpu-only",
    "nothing-to-judge",
]

BOUNDS: Mapping[str, Bound] = {
    "compute": "compute-bound",
    "communication": "communication-bound",
    "copies": "copy-bound",
    "dispatch": "overhead-bound",
    "pauses": "pause-bound",
    "input": "input-bound",
    "waits": "sync-bound",
    "allocator": "allocator-bound",
    "startup": "startup-bound",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """bound as in DESIGN; reason is a sentence with its figures; parts are ns, adding up to the window."""

    bound: Bound
    reason: str
    parts: Mapping[str, int]


def judge(parts: Mapping[Part, int], ranks: int = 1) -> Verdict:
    """The bound of some stretch of device time, from its parts (ns).

    ranks  of the run that this is one of. The profiler's time, earlier work and what was not recorded are not judged.
    """
    found = {part.key: ns for part, ns in parts.items()}
    whole = sum(found.values())
    judged = whole - sum(found[part] for part in _ASIDE)
    if whole <= 0:
        return Verdict("nothing-to-judge", "no device time to judge", found)
    hidden = _hidden(found, whole, judged)
    if hidden is not None:
        return Verdict("nothing-to-judge", hidden, found)
    weigh = {part: found[part] for part in _SENTENCES}
    weigh["compute"] += found["device"]  # the device's own turnaround is its own time
    first, second = sorted(weigh, key=lambda part: -weigh[part])[:2]
    share = weigh[first] / judged
    of = f"{units.duration(weigh[first])} of {units.duration(judged)} ({units.share(share)})"
    text = f"{_SENTENCES[first]}: {of}"
    if first == "communication" and ranks > 1:
        text += "; from one rank alone, whether they transfer or wait for other ranks is unknown"
    if first in BOUNDS and (share >= MAJORITY or (share >= PLURALITY and weigh[first] >= AHEAD * weigh[second])):
        return Verdict(BOUNDS[first], text, found)
    rest = f"{_NAMES[second]} {units.duration(weigh[second])} ({units.share(weigh[second] / judged)})"
    if share >= MAJORITY:  # of a part that names no bound
        return Verdict("mixed", f"{text}; then {rest}", found)
    return Verdict("mixed", f"no part holds half of the time: {_NAMES[first]} {of}, {rest}", found)


def _hidden(found: Mapping[str, int], whole: int, judged: int) -> str | None:
    """Why nothing can be judged, if so."""
    if found["not_recorded"] >= MAJORITY * (whole - found["profiler"]):
        return "launches without device records hide what the device did"
    if found["earlier_work"] >= MAJORITY * whole and judged < LEFT_NS:
        return (
            f"the device still worked through what was launched before: {units.duration(found['earlier_work'])} of "
            f"{units.duration(whole)} ({units.share(found['earlier_work'] / whole)}), and "
            f"{units.duration(judged)} are left"
        )
    return "no device time to judge" if judged <= 0 else None
