"""The whole report on mutated traces: nothing raised, and the sums that must hold, hold.

    python -m tests.fuzz_report --runs 10000 --seed 0

The inputs are those of `tests.sources.fuzz`; a run is repeated exactly by its seed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from typing import Any

from analyzer import pipeline
from analyzer.errors import TraceError
from analyzer.render import Options, render
from tests.sources.compare import read_bytes
from tests.sources.fuzz import mutate, originals

SLOW_S = 10.0


def hold(report: Any) -> None:
    """Invariants of any report, whatever the trace. Raises AssertionError."""
    contract = json.loads(render(report, "json", Options()), parse_constant=lambda word: _no(word))
    for device in contract["devices"]:
        busy, idle, span = device["busy_us"], device["idle_us"], device["span_us"]
        assert math.isclose(busy + idle, span, abs_tol=1e-3), "busy + idle = span"
        assert 0 <= busy <= span
        assert device["exposed_communication_us"] <= device["communication_us"] + 1e-3
        causes = sum(g["total_us"] for g in contract["gaps"]["by_cause"] if g["device"] == device["device"])
        assert math.isclose(causes, idle, abs_tol=1e-3 + 1e-9 * idle), "causes add up to idle"
    links = contract["links"]
    assert links["linked"] + links["unlinked"] == sum(d["events"] for d in contract["devices"])
    kernels = sum(k["calls"] for k in contract["kernels"])
    assert kernels == links["linked"] + links["unlinked"], "every device event is in the table of kernels"
    for operator in contract["operators"]:
        assert 0 <= operator["self_cpu_us"] <= operator["cpu_us"] + 1e-3 or operator["calls"] > 1, operator
        assert operator["self_device_us"] <= operator["device_us"] + 1e-3, operator
    for width in (40, 110):
        render(report, "terminal", Options(width=width, only=("all",)))
    render(report, "markdown", Options(only=("all",)))


def _no(word: str) -> None:
    raise AssertionError(f"{word} in the JSON report")


def one(seed: int, pool: list[bytes]) -> str:
    """Run the input of a seed. Raises AssertionError with what repeats it."""
    case = mutate(random.Random(seed), pool)
    try:
        trace = read_bytes(case.text)
    except TraceError:
        return "refused"
    started = time.perf_counter()
    try:
        hold(pipeline.run(trace))
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}\n{case.text!r}") from error
    assert time.perf_counter() - started < SLOW_S, f"seed {seed} is slow"
    return "reported"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input; the next one's is one more")
    options = parser.parse_args()
    pool = originals()
    kinds: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.runs):
        try:
            kinds[one(seed, pool)] += 1
        except AssertionError as error:
            kinds["FAILED"] += 1
            sys.stdout.write(f"{str(error)[:1500]}\n")
    sys.stdout.write(f"{sum(kinds.values()):,} inputs: {dict(kinds)}\n")
    return int(bool(kinds["FAILED"]))


if __name__ == "__main__":
    sys.exit(main())
