"""Figures of a recorded trace, counted plainly: what was announced against what came out."""

import bisect
import gzip
import json
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
# A program that compiles annotates hundreds of its passes.
_ANNOTATIONS = 12

_CALLS = ("cuda_runtime", "cuda_driver")


def measure(path: Path) -> dict[str, Any]:
    """Events, device work, how much is linked and busy, and the median device events in each annotation."""
    raw = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
    events = json.loads(raw)["traceEvents"]
    work = [e for e in events if e.get("ph") == "X" and e.get("cat") in _WORK]
    per_launch = Counter(e["args"].get("correlation", 0) for e in work)
    launches: dict[Any, list[tuple[float, int]]] = defaultdict(list)
    linked = 0
    for e in events:
        if e.get("ph") == "X" and e.get("cat") in _CALLS:
            count = per_launch.get(e["args"].get("correlation"), 0)
            if count and e["args"].get("correlation"):
                launches[e["tid"]].append((e["ts"], count))
                linked += count
    for calls in launches.values():
        calls.sort()
    found: dict[str, list[int]] = defaultdict(list)
    steps = 0
    for e in events:
        if e.get("ph") != "X" or e.get("cat") != "user_annotation":
            continue
        if e["name"].startswith("ProfilerStep#"):
            steps += 1
            continue
        calls = launches.get(e["tid"], [])
        first = bisect.bisect_left(calls, (e["ts"], -1))
        last = bisect.bisect_right(calls, (e["ts"] + e["dur"], 1 << 60))
        found[e["name"]].append(sum(count for _, count in calls[first:last]))
    medians = {name: statistics.median(counts) for name, counts in found.items()}
    figures: dict[str, Any] = {
        "events": len(events),
        "steps": steps,
        "device_events": len(work),
        "linked": linked,
        "annotations": dict(sorted(medians.items(), key=lambda m: (-m[1], m[0]))[:_ANNOTATIONS]),
    }
    if work:
        figures.update(_busy(work))
    return figures


def _busy(work: list[dict[str, Any]]) -> dict[str, float]:
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in work)
    busy, end = 0.0, spans[0][0]
    for start, stop in spans:
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    span = end - spans[0][0]
    return {
        "span_us": round(span, 3),
        "busy_us": round(busy, 3),
        "busy_share": round(busy / span, 4) if span else 1.0,
    }


def differences(measured: dict[str, Any], expected: dict[str, int]) -> list[str]:
    """A line for each announced count that the trace does not have."""
    lines = []
    for name, count in expected.items():
        got = measured["annotations"].get(name)
        if got != count:
            lines.append(f"{name}: {got} device events, {count} were announced")
    return lines
