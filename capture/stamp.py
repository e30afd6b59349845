"""What is written into the trace about how it was recorded: never a host name, a user name or a path."""

import json
import math
import platform
from typing import Any

import torch

from capture.clock import StepClock

KEY = "tracecli_capture"
VERSION = 1

# A list of single steps helps to judge a median; a list of thousands only makes the file larger.
_STEPS_LISTED = 50


def build(
    *,
    scenario: str | None,
    flags: dict[str, Any],
    unprofiled: StepClock,
    unprofiled_wall_us: float | None,
    profiled: StepClock,
    facts: dict[str, Any],
) -> dict[str, Any]:
    """The stamp. Times in microseconds of host time; a figure that was not measured is left out.

    `unprofiled_step_us` and `profiled_step_us` are medians of the same thing, host time from one step to
    the next, each counted from an idle device: their ratio is what the profiler costs the CPU.
    `unprofiled_wall_step_us` is the mean over a block with the device idle at both ends: the real time of
    a step, which is longer where the GPU is the bottleneck and the host runs ahead.
    """
    stamp: dict[str, Any] = {
        "version": VERSION,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}".strip(),
        "scenario": scenario,
        "flags": flags,
        **facts,
    }
    if (median := unprofiled.median_us()) is not None:
        stamp["unprofiled_step_us"] = median
        stamp["unprofiled_steps"] = len(unprofiled.laps_ns)
        if len(unprofiled.laps_ns) <= _STEPS_LISTED:
            stamp["unprofiled_step_us_all"] = unprofiled.laps_us()
    if unprofiled_wall_us is not None:
        stamp["unprofiled_wall_step_us"] = unprofiled_wall_us
    if (median := profiled.median_us()) is not None:
        stamp["profiled_step_us"] = median
        stamp["profiled_steps"] = len(profiled.laps_ns)
        if len(profiled.laps_ns) <= _STEPS_LISTED:
            stamp["profiled_step_us_all"] = profiled.laps_us()
    return stamp


def as_json(stamp: dict[str, Any]) -> str:
    """One line without a backslash: the profiler turns each into a slash, and an escape would break the file.

    Quotes and backslashes inside texts become their nearest harmless relatives, control characters spaces.
    """
    return json.dumps(_harmless(stamp), ensure_ascii=False)


def _harmless(value: Any) -> Any:
    if isinstance(value, dict):
        return {_harmless(str(k)): _harmless(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless(v) for v in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # JSON has no word for the others.
        return value if math.isfinite(value) else None
    text = str(value).replace('"', "'").replace("\\", "/")
    return "".join(c if c.isprintable() else " " for c in text)
