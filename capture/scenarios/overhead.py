"""What `python -m capture` costs a program while it waits to record: step times with hooks and without."""

import json
import statistics
import time
from pathlib import Path
from typing import Any

from capture.recorder import record
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


def compare(scenario: Scenario, values: dict[str, Any], folder: Path, pairs: int) -> dict[str, Any]:
    """Alternate blocks of plain steps and of steps with the hooks installed, and compare each pair."""
    work = scenario.build(scenario.values(values))
    try:
        _block(work, 10)
        steps = max(5, round(_SECONDS_A_BLOCK * 1e6 / _block(work, 10)))
        plain: list[float] = []
        hooked: list[float] = []
        seen = 0
        for pair in range(pairs):
            # Plain first, then hooked first: a drift of the clocks falls on both alike.
            for with_hooks in (False, True) if pair % 2 == 0 else (True, False):
                if not with_hooks:
                    _block(work, 3)
                    plain.append(_block(work, steps))
                    continue
                recorder = record(folder / "never.json.gz", wait=1 << 30, quiet=True)
                hooks = StepHooks(recorder)
                # Entered by hand: leaving it would complain that it never recorded.
                recorder.__enter__()
                hooks.install()
                _block(work, 3)
                hooked.append(_block(work, steps))
                hooks.remove()
                seen += recorder.steps
                recorder.discard()
    finally:
        work.close()
    before, after = statistics.median(plain), statistics.median(hooked)
    ratios = sorted(b / a for a, b in zip(plain, hooked, strict=True))
    # 95% interval of a median from order statistics (normal approximation to the binomial).
    half = round(0.98 * len(ratios) ** 0.5)
    middle = len(ratios) // 2
    low, high = ratios[max(0, middle - half)], ratios[min(len(ratios) - 1, middle + half)]
    return {
        "scenario": scenario.name,
        "device": str(default_device()),
        "pairs": pairs,
        "steps_a_block": steps,
        "steps_seen": seen,
        "plain_us": round(before, 2),
        "hooked_us": round(after, 2),
        "difference_percent": round((statistics.median(ratios) - 1) * 100, 3),
        "interval_percent": [round((low - 1) * 100, 3), round((high - 1) * 100, 3)],
        "fastest_difference_percent": round((min(hooked) / min(plain) - 1) * 100, 3),
        "spread_of_plain_percent": round((max(plain) - min(plain)) / before * 100, 2),
        "plain_us_all": [round(x, 2) for x in plain],
        "hooked_us_all": [round(x, 2) for x in hooked],
    }


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
            f"{result['interval_percent'][1]:+.2f}], fastest blocks {result['fastest_difference_percent']:+.2f}%   "
            f"(median ratio of {pairs} pairs of blocks of {result['steps_a_block']} steps, with its 95% interval; "
            f"plain blocks spread over {result['spread_of_plain_percent']:.1f}%)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "overhead.json").write_text(json.dumps(results, indent=1) + "\n")
    return results
