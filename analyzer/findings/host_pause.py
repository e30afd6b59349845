"""The host stops launching for a while, again and again, and the device stands still.

What it means
    Most of the device's idle time is not the price of launching but of something else that the launching thread does
    in between: a garbage collection, a checkpoint, a log file, a tokenizer, a sleep. Faster launching (CUDA graphs,
    torch.compile) would not win any of it back.

How it is computed
    Idle time in Python, in an operator or in nothing recorded is a pause where one stretch of it is many times the
    usual time from launch to launch (ten times the median and 200 µs at least, never more than a millisecond asked;
    a millisecond across threads and at the borders of steps). A place is the frame, operator or annotation that was
    open over most of it. It fires when the verdict is pause-bound, or where pauses make up a twentieth of the window;
    as a note where none comes back.
    "Up to" is all of that idle time.

What to try
    Garbage collection:      gc.freeze() after set-up, gc.disable() in the loop, gc.collect() every few hundred steps.
    Checkpoints, logs, files: another thread, or every N steps; buffer instead of flushing each time.
    Tokenizers, images:      DataLoader workers (num_workers), so that they run beside the step.
    numpy, lists, sorting:   keep it on the device, or do it in another process.
    Nothing recorded:        record again with Python stacks: python -m capture --stacks train.py.

When it is wrong
    A pause once, at the edge of a recording, may be the set-up that a longer run does not have. Without stacks the
    place is unknown. A machine with too few processors pauses a thread anywhere: then no place returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.pauses import Pause, Pauses
from analyzer.analyses.steps import Steps
from analyzer.findings import WORTH, bound, finding, grade, part_of, within
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results

NAME = "host-pause"
#: Places that are told one by one.
_LISTED = 3
_RECORD = (
    "Record again with Python stacks (python -m capture --stacks train.py): they name the line that holds the host."
)
#: What a place is by its name and its stack, the first that fits: what to do instead.
_HABITS = (
    (
        r"\bgc\.collect|function collect\b|Python GC",
        "The garbage collector: gc.freeze() after set-up and gc.disable() in the loop; gc.collect() every few hundred "
        "steps.",
    ),
    (
        r"torch/serialization|\btorch\.save|\bpickle|\bsave_(?:state|pretrained|checkpoint)|checkpoint",
        "Saving: every N steps, from a copy on the host, in another thread (torch.distributed.checkpoint.async_save).",
    ),
    (
        r"\bfsync|\bjson/|logging/|\blog\w*\b|function (?:write|flush|print|open)\b|tensorboard|wandb|\bcsv\.py",
        "Logging and files: every N steps, buffered, or from another thread; no flush or fsync in the loop.",
    ),
    (
        r"tokeniz|image_processing|preprocess|\bPIL/|torchvision/transforms|\bcv2\b|decord|librosa",
        "Preparing input: DataLoader workers (num_workers, prefetch_factor), so that it runs beside the step.",
    ),
    (r"function sleep\b|time\.sleep", "A sleep in the loop: wait for an event instead, or drop it."),
    (
        r"\bnumpy\b|\bnp\.|\bscipy|\bpandas|sklearn",
        "Work of numpy on the host: do it on the device (torch has the same functions), or in another process.",
    ),
)


def find(results: Results) -> Iterable[Finding]:
    ns, share = part_of(results, "pauses")
    pauses = [p for p in results[Pauses].pauses if p.kind != "interference"]
    judged = bound(results) == "pause-bound"
    if not pauses or not (judged or share >= WORTH):
        return
    most = pauses[0]
    up_to = min(ns, sum(p.total_ns for p in pauses))
    # What happens once is no habit of the loop, unless it is most of what was recorded.
    once = all(p.count == 1 for p in pauses)
    yield finding(
        results,
        NAME,
        Severity.ERROR if judged else grade(share, most=Severity.NOTE if once else Severity.ERROR),
        f"{_who(most)} holds the launching thread {_times(results, most)}, {units.duration(most.total_ns)} in all",
        (*(_line(p) for p in pauses[:_LISTED]), _rest(pauses[_LISTED:])),
        _advice(most),
        up_to,
    )


def _who(pause: Pause) -> str:
    return units.short_name(pause.place, 60) if pause.place else "something that was not recorded"


def _times(results: Results, pause: Pause) -> str:
    steps = len(results[Steps].steps)
    if pause.count == 1:
        return "once"
    per_step = f", {units.count(round(pause.count / steps, 1))} a step" if steps > 1 else ""
    return f"{pause.count:,} times{per_step}"


def _line(pause: Pause) -> str:
    times = units.duration(pause.max_ns)
    if pause.count > 1:
        times = f"median {units.duration(pause.median_ns)}, max {times}"
    inside = f"; in {units.short_name(pause.within, 60)}" if pause.within else ""
    path = f"; {within([units.short_name(name, 60) for name in pause.stack])}" if pause.stack and not inside else ""
    return f"{_who(pause)}: {units.plural(pause.count, 'pause')}, {times}{inside}{path}"


def _rest(pauses: list[Pause]) -> str | None:
    if not pauses:
        return None
    total = units.duration(sum(p.total_ns for p in pauses))
    return f"and {units.plural(len(pauses), 'other place')}, {total} together"


def _advice(pause: Pause) -> str:
    text = " ".join((pause.place or "", pause.within or "", *pause.stack[-4:]))
    for pattern, what in _HABITS:
        if re.search(pattern, text):
            return what
    if pause.place is None:
        return f"{_RECORD} Too few processors for the program's threads look alike."
    return f"Take it out of the loop, or do it every N steps or in another thread: {_who(pause)}."
