"""What `python -m capture` costs a program while it waits to record: step times with hooks and without."""

import json
import statistics
import time
from pathlib import Path
from typing import Any

from capture.recording import record
from capture.scenarios import decode, train
from capture.scenarios.base import Scenario, Work, default_device, synchronize
from capture.steps import StepHooks

#: Short blocks, many pairs: a shared machine's drift is slower than a pair, and cancels in its ratio.
_SECONDS_A_BLOCK = 0.12


def _block(work: Work, steps: int) -> float:
    """Microseconds a step, over a block with the device idle at both ends."""
    synchronize()
    start = time.perf_counter()
    for number in range(steps):
        work.step(number)
    synchronize()
    return (time.perf_counter() - start) / steps * 1e6


def _steady(work: Work, steps: int) -> float:
    """A block after three steps that are not counted: both kinds of block begin alike."""
    _block(work, 3)
    return _block(work, steps)


def compare(scenario: Scenario, values: dict[str, Any], folder: Path, pairs: int) -> dict[str, Any]:
    """Alternate blocks of plain steps and of steps with the hooks installed, and compare each pair."""
    work = scenario.build(scenario.values(values))
    try:
        _block(work, 10)
        steps = max(5, round(_SECONDS_A_BLOCK * 1e6 / _block(work, 10)))
        plain: list[float] = []
        control: list[float] = []
        hooked: list[float] = []
        seen = 0
        for pair in range(pairs):
            # Plain first, then hooked first: a drift of the clocks falls on both alike.
            for with_hooks in (False, True) if pair % 2 == 0 else (True, False):
                if not with_hooks:
                    plain.append(_steady(work, steps))
                    control.append(_steady(work, steps))
                    continue
                recorder = record(folder / "never.json.gz", wait=1 << 30, quiet=True)
                hooks = StepHooks(recorder)
                # Entered by hand: leaving it would complain that it never recorded.
                recorder.__enter__()
                hooks.install()
                hooked.append(_steady(work, steps))
                hooks.remove()
                seen += recorder.steps
                recorder.discard()
    finally:
        work.close()
    before, after = statistics.median(plain), statistics.median(hooked)
    difference, low, high = _median_ratio(plain, hooked)
    noise = _median_ratio(plain, control)
    return {
        "scenario": scenario.name,
        "device": str(default_device()),
        "pairs": pairs,
        "steps_a_block": steps,
        "steps_seen": seen,
        "plain_us": round(before, 2),
        "hooked_us": round(after, 2),
        "difference_percent": difference,
        "interval_percent": [low, high],
        "plain_against_plain_percent": list(noise),
        "fastest_difference_percent": round((min(hooked) / min(plain) - 1) * 100, 3),
        "spread_of_plain_percent": round((max(plain) - min(plain)) / before * 100, 2),
        "plain_us_all": [round(x, 2) for x in plain],
        "hooked_us_all": [round(x, 2) for x in hooked],
    }


def _median_ratio(before: list[float], after: list[float]) -> tuple[float, float, float]:
    """Median of the pairs' ratios less one, and its 95% interval, in per cent.

    The interval is that of order statistics (normal approximation to the binomial).
    """
    ratios = sorted(b / a for a, b in zip(before, after, strict=True))
    half, middle = round(0.98 * len(ratios) ** 0.5), len(ratios) // 2
    chosen = (statistics.median(ratios), ratios[max(0, middle - half)], ratios[min(len(ratios) - 1, middle + half)])
    difference, low, high = (round((r - 1) * 100, 3) for r in chosen)
    return difference, low, high


def main(folder: Path, pairs: int, *, small: bool = False) -> list[dict[str, Any]]:
    """Compare an inference and a training step; print, and write `overhead.json` into `folder`."""
    shrink = {"layers": 2, "width": 128, "heads": 4} if small else {}
    results = []
    for scenario, what in ((decode.SCENARIO, "inference"), (train.SCENARIO, "training")):
        result = compare(scenario, dict(shrink), folder, pairs)
        results.append(result)
        print(
            f"{what:10} plain {result['plain_us']:10,.1f} µs   with hooks {result['hooked_us']:10,.1f} µs   "
            f"{result['difference_percent']:+.2f}% [{result['interval_percent'][0]:+.2f}, "
            f"{result['interval_percent'][1]:+.2f}], fastest blocks {result['fastest_difference_percent']:+.2f}%, "
            f"plain against plain {result['plain_against_plain_percent']}   "
            f"(median ratio of {pairs} pairs of blocks of {result['steps_a_block']} steps, with its 95% interval; "
            f"plain blocks spread over {result['spread_of_plain_percent']:.1f}%)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "overhead.json").write_text(json.dumps(results, indent=1) + "\n")
    return results
