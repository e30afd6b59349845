"""Real traces against the oracle, and inputs made after bug reports against their exact figures."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyzer.errors import TraceError
from analyzer.events.schema import HOST_CALLS, Trace
from analyzer.sources.kineto.read import read
from tests.sources import oracle
from tests.sources.compare import differences
from tests.sources.shared import CASES, TRACES, small_traces, text_of

SMALL = 150_000

needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="no shared traces beside this checkout")
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="no shared cases beside this checkout")


@needs_traces
@pytest.mark.parametrize("path", small_traces(SMALL), ids=lambda p: p.stem)
def test_real_traces_equal_the_oracle(path: Path) -> None:
    assert differences(read(path, jobs=1), oracle.facts(text_of(path))) == []


@needs_traces
def test_mtia_lanes_do_not_nest() -> None:
    trace = read(TRACES / "public" / "hta" / "mtia_inference_trace" / "mtia_inference_rank_0.json.gz")
    assert trace.header.producer == "Kineto (MTIA)"
    assert set(trace.device["device"]) == {17}
    for _, lane in trace.device.sort("ts").group_by("thread"):
        assert (lane["ts"] + lane["dur"]).shift(1).le(lane["ts"]).all()


def busy(trace: Trace) -> dict[str, dict[str, int]]:
    """device -> busy, span and idle in ns, by plain loops."""
    intervals: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for device, ts, dur in trace.device.select("device", "ts", "dur").iter_rows():
        intervals[str(device)].append((ts, ts + dur))
    out = {}
    for device, pairs in intervals.items():
        total, end = 0, min(start for start, _ in pairs)
        for start, stop in sorted(pairs):
            total += max(0, stop - max(start, end))
            end = max(end, stop)
        span = end - min(start for start, _ in pairs)
        out[device] = {"busy": total, "span": span, "idle": span - total}
    return out


def figures(trace: Trace) -> dict[str, Any]:
    """What the index of the cases speaks of, as far as frames hold it."""
    calls = set(trace.host.filter(pl.col("cat").is_in([int(c) for c in HOST_CALLS]))["correlation"]) - {0}
    work = trace.device["correlation"].to_list()
    devices = busy(trace)
    out: dict[str, Any] = {
        "events": trace.events,
        "linked": sum(c in calls for c in work),
        "unlinked": sum(c not in calls for c in work),
        "truncated_at": trace.truncated_at_byte,
    }
    for key in ("busy", "span", "idle"):
        out[key] = sum(d[key] for d in devices.values())
    return out


def single_files() -> list[Any]:
    if not CASES.is_dir():
        return []
    out = []
    for case in json.loads((CASES / "INDEX.json").read_text()):
        path, expected = CASES / case["input"], case["expected"]
        files = {path / name: want for name, want in expected.get("files", {}).items()}
        if path.is_file():
            files[path] = expected
        out += [pytest.param(p, want, id=f"{case['case']}-{p.stem}") for p, want in files.items()]
    return out


@needs_cases
@pytest.mark.parametrize(("path", "want"), single_files())
def test_cases_have_their_exact_figures(path: Path, want: dict[str, Any]) -> None:
    trace = read(path)
    got = figures(trace)
    for key in ("events", "linked", "unlinked", "truncated_at"):
        if key in want:
            assert got[key] == want[key], key
    for key in ("busy", "span", "idle"):
        if key in want:
            assert got[key] == round(float(want[key]) * 1000), key
    for device, expected in want.get("per_device", {}).items():
        for key, us in expected.items():
            assert busy(trace)[device][key] == us * 1000
    if "events_min" in want:
        assert want["events_min"] <= trace.events <= want.get("events_max", trace.events)
    named = {w.byte for w in trace.warnings if w.byte is not None}
    for key in ("damage_offset", "extra_data_at"):
        if key in want:
            assert want[key] in named, key
    if "damage_range" in want:
        low, high = want["damage_range"]
        assert any(low <= byte <= high for byte in named)
    if "invalid_gpu" in want:
        assert [w.count for w in trace.warnings if w.code == "bad-duration"] == [want["invalid_gpu"]]


@needs_cases
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("15-folder-with-strangers/et_observer.json", "execution trace"),
        ("15-folder-with-strangers/sidecar.json", "none has a phase"),
        ("15-folder-with-strangers/notes.txt", "not JSON"),
        ("17-nothing-to-analyse/zero-bytes.json", "empty"),
    ],
)
def test_strangers_among_the_cases(name: str, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        read(CASES / name)


@needs_cases
@pytest.mark.parametrize("name", ["empty-list.json", "metadata-only.json"])
def test_nothing_to_analyse(name: str) -> None:
    assert "no-events" in {w.code for w in read(CASES / "17-nothing-to-analyse" / name).warnings}
