"""A trace written anew: the figures stay, the part is whole, the file is smaller."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analyzer import pipeline
from analyzer.errors import TraceError
from analyzer.events.select import Selection
from analyzer.redact.share import share
from analyzer.sources.kineto.read import read
from tests import micro

FIXTURES = Path(__file__).parents[2] / "fixtures"
EVERY = sorted(FIXTURES.glob("*.json.gz"))
#: What a report says of the file itself.
OF_THE_FILE = ("path", "bytes", "format", "events", "complete_events")


def contract(path: Path, part: Selection | None = None) -> dict[str, Any]:
    """The report without what it says of the file, and without order among equals."""
    found = json.loads(json.dumps(pipeline.run(read(path, jobs=1), part).contract))
    for key in OF_THE_FILE:
        del found["trace"][key]
    # Chains with equal figures stand in the order of their names, which differ: their figures are compared alone.
    names = ("path", "host_calls", "launch", "device_work")
    chains = ({k: v if k not in names else None for k, v in chain.items()} for chain in found["chains"])
    found["chains"] = sorted(chains, key=json.dumps)
    return found


def events_of(path: Path) -> list[dict[str, Any]]:
    text = path.read_bytes()
    return json.loads(gzip.decompress(text) if path.suffix == ".gz" else text)["traceEvents"]


def alike(before: Any, after: Any, names: dict[str, str], at: str = "") -> None:
    """The same figures and findings; a text that differs stands for one other text, wherever it stands."""
    if isinstance(before, dict):
        assert before.keys() == after.keys(), at
        for key in before:
            alike(before[key], after[key], names, f"{at}.{key}")
    elif isinstance(before, list):
        assert len(before) == len(after), at
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            alike(one, other, names, f"{at}[{i}]")
    elif isinstance(before, str) and before != after:
        assert at.rpartition(".")[2] not in FIXED, (at, before, after)
        assert names.setdefault(before, after) == after, (at, before)
    else:
        assert before == after, at


#: Texts that are the report's own words.
FIXED = ("bound", "cause", "kind", "part", "severity", "unit", "limited_by", "backend", "precision", "reason", "id")


@pytest.mark.parametrize("path", EVERY, ids=lambda p: p.name.removesuffix(".json.gz"))
def test_the_whole_of_a_fixture_has_the_same_figures(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "shared.json.gz"
    done = share(path, target)
    assert done.events_after == done.events_before
    assert done.text_after < done.text_before
    names: dict[str, str] = {}
    alike(contract(path), contract(target), names)
    assert len({*names.values()}) == len(names)


def parts_of(path: Path) -> dict[str, Selection]:
    """One part of each kind that the trace has."""
    found = pipeline.run(read(path, jobs=1)).contract
    start, end = found["window"]["start_us"], found["window"]["end_us"]
    out = {"time": Selection(time_us=(start + (end - start) / 3, start + (end - start) / 2))}
    if names := found["trace"]["steps"]:
        out["step"] = Selection(steps=(names[len(names) // 2],) * 2)
        out["steps"] = Selection(steps=(names[0], names[len(names) // 2]))
    if found["annotations"]:
        name = found["annotations"][-1]["name"]
        if "#" not in name:  # several that are folded into one
            out |= {"annotation": Selection(annotation=(name, None)), "call": Selection(annotation=(name, -1))}
    return out | {f"phase {p['name']}": Selection(phase=p["name"]) for p in found["phases"][:2]}


@pytest.mark.parametrize("path", EVERY, ids=lambda p: p.name.removesuffix(".json.gz"))
def test_a_part_has_the_same_figures_shared_or_not(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "part.json"
    for what, part in parts_of(path).items():
        done = share(path, target, part, keep=("names",))
        assert 0 < done.events_after <= done.events_before, what
        shared, whole = contract(target), contract(path, part)
        for found in (shared, whole):
            del found["trace"]["base_ns"]
        alike(_from_zero(whole), _from_zero(shared), {}, what)


def _from_zero(found: dict[str, Any]) -> dict[str, Any]:
    """Times of a report counted from its window: a part begins earlier or later than the whole."""
    start = found["window"]["start_us"]

    def shift(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: shift(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [shift(v, key) for v in value]
        moved = key in ("start_us", "end_us", "starts_us") and isinstance(value, int | float)
        return round(value - start, 3) if moved else value

    return shift(found)


def test_steps_are_found_by_name_number_and_position(tmp_path: Path) -> None:
    path = FIXTURES / "decode_eager.json.gz"
    texts = []
    for steps in (("ProfilerStep#16", "ProfilerStep#17"), ("16", "17"), ("1", "2"), ("-4", "-3"), ("17", "16")):
        share(path, tmp_path / "out.json", Selection(steps=steps))
        texts.append((tmp_path / "out.json").read_bytes())
    assert len(set(texts)) == 1
    steps = [e["name"] for e in events_of(tmp_path / "out.json") if e.get("name", "").startswith("ProfilerStep")]
    assert sorted(set(steps)) == ["ProfilerStep#16", "ProfilerStep#17"]


def test_an_annotation_keeps_its_figures(tmp_path: Path) -> None:
    path, target = FIXTURES / "decode_eager.json.gz", tmp_path / "out.json"
    share(path, target, Selection(annotation=("decode_token", None)))

    def row(found: dict[str, Any]) -> dict[str, Any]:
        (only,) = (a for a in found["annotations"] if a["name"] == "decode_token")
        return {k: v for k, v in only.items() if not k.startswith("verdict")}

    assert row(contract(target)) == row(contract(path))
    share(path, target, Selection(annotation=("decode_token", -1)))
    assert row(contract(target))["calls"] == 1


TWO_CHAINS = [
    micro.annotation("epoch", 0, 400),
    micro.step(1, 0, 200),
    micro.op("aten::mm", 10, 30),
    micro.launch("cudaLaunchKernel", 15, 5, 11),
    {"ph": "s", "id": 11, "pid": micro.HOST, "tid": micro.MAIN, "ts": 15, "cat": "ac2g", "name": "ac2g"},
    micro.op("aten::relu", 60, 30),
    micro.launch("cudaLaunchKernel", 65, 5, 12),
    {"ph": "s", "id": 12, "pid": micro.HOST, "tid": micro.MAIN, "ts": 65, "cat": "ac2g", "name": "ac2g"},
    micro.kernel("gemm", 100, 50, 11),
    {"ph": "f", "id": 11, "pid": 0, "tid": 7, "ts": 100, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    micro.kernel("relu", 160, 40, 12),
    {"ph": "f", "id": 12, "pid": 0, "tid": 7, "ts": 160, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
    {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 390},
    micro.step(2, 200, 200),
    micro.op("aten::add", 210, 10),
]


def test_a_stretch_of_time_keeps_chains_whole(tmp_path: Path) -> None:
    path = micro.write(tmp_path / "in.json", TWO_CHAINS)
    share(path, tmp_path / "out.json", Selection(time_us=(120, 155)))
    kept = events_of(tmp_path / "out.json")
    # The kernel runs then; its launch, the operator and the annotations around are long before.
    assert [e["name"] for e in kept if e["ph"] == "X"] == [
        "epoch", "ProfilerStep#1", "aten::mm", "cudaLaunchKernel", "gemm",
    ]  # fmt: skip
    assert [e["name"] for e in kept if e["ph"] == "M"] == ["process_labels"]


def test_a_step_keeps_its_flows_and_what_is_around_it(tmp_path: Path) -> None:
    path = micro.write(tmp_path / "in.json", TWO_CHAINS)
    share(path, tmp_path / "out.json", Selection(steps=("2", "2")))
    assert [e["name"] for e in events_of(tmp_path / "out.json")] == [
        "epoch", "process_labels", "Record Window End", "ProfilerStep#2", "aten::add",
    ]  # fmt: skip
    share(path, tmp_path / "out.json", Selection(steps=("1", "1")))
    kept = events_of(tmp_path / "out.json")
    assert [e["id"] for e in kept if e["ph"] in "sf"] == [11, 12, 11, 12]
    assert "aten::add" not in [e["name"] for e in kept]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(steps=("9", "9")), "no step '9'"),
        (Selection(annotation=("gone", None)), "no annotation"),
        (Selection(annotation=("epoch", 3)), "no call 3"),
        (Selection(time_us=(500, 600)), "nothing happens"),
        (Selection(time_us=(50, 20)), "nothing happens"),
    ],
)
def test_a_part_that_is_not_there_is_an_error(selection: Selection, said: str, tmp_path: Path) -> None:
    path = micro.write(tmp_path / "in.json", TWO_CHAINS)
    with pytest.raises(TraceError, match=said):
        share(path, tmp_path / "out.json", selection)
    assert not (tmp_path / "out.json").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["in.json"]


@pytest.mark.parametrize(
    "digits", ["5113803061637.120", "1665536373659346.7", "1.50", "0.001", "12", "1700000000000000123", "2.5e3"]
)
def test_times_keep_every_digit(digits: str, tmp_path: Path) -> None:
    path, target = tmp_path / "in.json", tmp_path / "out.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "\\"ts\\": 1.0", "pid": 1, "tid": 1, '
        f'"ts": {digits}, "dur": {digits}' + "}]}"
    )
    share(path, target)
    text = target.read_text()
    assert f'"ts":{digits},' in text
    assert f'"dur":{digits}}}' in text
    assert json.loads(text)["traceEvents"][0]["name"] == '"ts": 1.0'


def test_any_layout_becomes_an_object_that_viewers_take(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    for text in (json.dumps(TWO_CHAINS), "\n".join(map(json.dumps, TWO_CHAINS)), json.dumps(TWO_CHAINS)[:-40]):
        (tmp_path / "in.json").write_text(text)
        share(tmp_path / "in.json", target)
        document = json.loads(target.read_text())
        assert document["tracecli_share"] == {"version": 1, "whole": True}
        assert [e["ph"] for e in document["traceEvents"]][:3] == ["X", "X", "X"]


def test_standard_input_is_read_twice(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": TWO_CHAINS}).encode()
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(text))):
        done = share("-", tmp_path / "out.json.gz", Selection(steps=("1", "1")))
    assert done.file_before == len(text)
    assert done.events_after == 13


def test_what_is_no_trace_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    for text in ("", "{}", "hello", '{"a": [1]}'):
        (tmp_path / "in.json").write_text(text)
        with pytest.raises(TraceError):
            share(tmp_path / "in.json", tmp_path / "out.json")
    with pytest.raises(TraceError):
        share(tmp_path / "gone.json", tmp_path / "out.json")
    assert [p.name for p in tmp_path.iterdir()] == ["in.json"]


def test_a_damaged_trace_is_shared_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": TWO_CHAINS})
    (tmp_path / "in.json").write_text(text[: len(text) * 3 // 4])
    done = share(tmp_path / "in.json", tmp_path / "out.json")
    assert 0 < done.events_after < len(TWO_CHAINS)
    assert read(tmp_path / "out.json", strict=True).truncated_at_byte is None


def test_the_packed_file_names_nobody(tmp_path: Path) -> None:
    path = micro.write(tmp_path / "in.json", TWO_CHAINS)
    share(path, tmp_path / "secret_project.json.gz")
    first = (tmp_path / "secret_project.json.gz").read_bytes()
    assert b"secret" not in first
    share(path, tmp_path / "secret_project.json.gz")
    assert (tmp_path / "secret_project.json.gz").read_bytes() == first


LEGACY = [
    {"ph": "X", "name": "aten::mm", "pid": "CPU functions", "tid": 1, "ts": 0, "dur": 10},
    {"ph": "s", "cat": "cpu_to_cuda", "id": 0, "pid": "CPU functions", "tid": 1, "ts": 0, "name": "x"},
    {"ph": "X", "name": "gemm", "pid": "CUDA functions", "tid": 7, "ts": 20, "dur": 10},
    {"ph": "f", "cat": "cpu_to_cuda", "id": 0, "pid": "CUDA functions", "tid": 7, "ts": 20, "name": "x"},
]
JAX = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0 (of somebody)"}},
    {"ph": "M", "pid": 1, "tid": 13, "name": "thread_name", "args": {"name": "Stream #13(of somebody)"}},
    {"ph": "M", "pid": 7, "name": "process_name", "args": {"name": "/host:CPU of somebody"}},
    {"ph": "X", "pid": 1, "tid": 13, "ts": 1.5, "dur": 2, "name": "fusion.1"},
    {"ph": "X", "pid": 7, "tid": 3, "ts": 0, "dur": 2, "name": "cuLaunchKernel"},
    {"ph": "B", "pid": 7, "tid": 3, "ts": 5, "name": "$x.py:3 f"},
    {"ph": "E", "pid": 7, "tid": 3, "ts": 9},
]
NSYS = [
    {"ph": "X", "cat": "cuda", "name": "gemm", "pid": "Device 0", "tid": "stream 7", "ts": 3, "dur": 1},
    {"ph": "X", "cat": "cuda", "name": "cudaLaunchKernel", "pid": "of somebody", "tid": "lane 9", "ts": 1, "dur": 1},
]


@pytest.mark.parametrize("events", [LEGACY, JAX, NSYS], ids=["legacy", "jax", "nsys"])
def test_lanes_that_tell_a_device_still_do(events: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps({"traceEvents": events}))
    share(tmp_path / "in.json", tmp_path / "out.json")
    before, after = (read(tmp_path / name, jobs=1) for name in ("in.json", "out.json"))
    assert "somebody" not in (tmp_path / "out.json").read_text()
    assert before.host.equals(after.host)
    assert before.device.equals(after.device)
    assert before.device.height == 1
    assert before.header.producer == after.header.producer
    assert before.warnings == after.warnings


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "s", "bp"])
likely = st.sampled_from(["X", "B", "E", "M", "i", "s", "f", "C", "cpu_op", "kernel", "python_function", 0, 10, 2.5])
strange = st.dictionaries(keys, likely | anything, max_size=9) | anything


@settings(max_examples=150)
@given(events=st.lists(strange, max_size=6), part=st.booleans(), named=st.booleans())
@example(events=[{"ph": "X", "cat": [], "name": "X"}, {"ph": "M", "name": ["process_name"]}], part=False, named=False)
def test_anything_in_the_list_is_shared_or_left_out(events: list[Any], part: bool, named: bool) -> None:
    with TemporaryDirectory() as folder:
        path, target = Path(folder, "in.json"), Path(folder, "out.json")
        path.write_text(json.dumps({"traceEvents": [*TWO_CHAINS, *events]}), encoding="utf-8")
        share(path, target, Selection(steps=("1", "1")) if part else None, keep=["names"] if named else [])
        assert len(json.loads(target.read_text(encoding="utf-8"))["traceEvents"]) >= 13


def test_an_empty_list_of_events_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"schemaVersion": 1, "traceEvents": []}')
    for selection in (None, Selection(steps=("1", "1"))):
        with pytest.raises(TraceError, match="the list of events is empty"):
            share(tmp_path / "in.json", tmp_path / "out.json", selection)
