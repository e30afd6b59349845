"""Well-formed traces: every layout, spelling and provenance gives the same exact frames."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyzer.events.schema import COLLECTIVES, CONFIGS, DEVICE, HOST, INPUTS, MEMORY, THREADS, Cat
from analyzer.sources.kineto.read import read
from tests.sources import micro, oracle
from tests.sources.compare import device_rows, differences, host_rows, read_bytes, same
from tests.sources.micro import call, dump, kernel, op, triple


@pytest.mark.parametrize("layout", micro.LAYOUTS)
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_oracle_in_every_layout(layout: str, seed: int) -> None:
    text = dump(micro.mixed(seed, 60), layout, baseTimeNanoseconds=1_790_857_026_000_000_000)
    trace = read_bytes(text)
    assert differences(trace, oracle.facts(text)) == []
    assert trace.warnings == ()
    assert trace.bytes == len(text)


def test_layouts_differ_in_nothing_but_bytes() -> None:
    events = micro.mixed(1, 40)
    first, *others = [read_bytes(dump(events, layout)) for layout in micro.LAYOUTS]
    for other in others:
        assert host_rows(first) == host_rows(other)
        assert device_rows(first) == device_rows(other)


def test_frames_have_the_types_of_the_schema() -> None:
    for events in (triple(), [], micro.mixed(2, 50)):
        trace = read_bytes(dump(events))
        for frame, columns in (
            (trace.host, HOST), (trace.device, DEVICE), (trace.memory, MEMORY), (trace.threads, THREADS),
            (trace.configs, CONFIGS), (trace.inputs, INPUTS), (trace.collectives, COLLECTIVES),
        ):  # fmt: skip
            assert {k: str(v) for k, v in frame.schema.items()} == columns
        assert trace.names.dtype == pl.String


def test_rows_of_the_triple() -> None:
    trace = read_bytes(dump(triple()))
    assert host_rows(trace) == [
        (Cat.OP, "aten::relu", "41", "41", 0, 40_000, 0, *[None] * 5),
        (Cat.RUNTIME, "cudaLaunchKernel", "41", "41", 10_000, 5_000, 11, *[None] * 5),
    ]
    assert device_rows(trace) == [(Cat.KERNEL, "relu_demo", "0", "7", 0, 7, 30_000, 20_000, 11, *[None] * 3)]
    assert (trace.events, trace.complete_events, trace.base_ns) == (3, 3, 1_000_000)


def test_inputs_of_operators_stand_once_for_each_combination() -> None:
    shapes = {"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]}
    full = {**shapes, "Input Strides": [[3, 1], []], "Concrete Inputs": ["", "1"]}
    ops = [op("a", 0, 1, **full), op("b", 1, 1, **shapes), op("c", 2, 1, **full), op("d", 3, 1)]
    trace = read_bytes(dump([*ops, op("e", 4, 1, cat="user_annotation", **full)]))
    assert trace.inputs.rows() == [
        ("[[2,3],[]]", '["float","Scalar"]', "[[3,1],[]]", '["","1"]'),
        ("[[2,3],[]]", '["float","Scalar"]', None, None),
    ]
    assert trace.host["inputs"].to_list() == [0, 1, 0, -1, -1]
    # The shapes alone are the same text, whatever else was recorded.
    shape = trace.host["shapes"].to_list()
    assert shape[0] == shape[1] == shape[2] >= 0
    assert trace.names[shape[0]] == '[[[2,3],[]],["float","Scalar"]]'
    assert shape[3:] == [-1, -1]


def test_sequence_and_forward_thread_of_operators() -> None:
    ops = [
        op("aten::mul", 0, 1, **{"Sequence number": 7, "Fwd thread id": 0}),
        op("MulBackward0", 1, 1, **{"Sequence number": 7, "Fwd thread id": 1}),
        op("aten::detach", 2, 1),
        op("odd", 3, 1, **{"Sequence number": "8", "Fwd thread id": 2**64 - 1}),
        op("worse", 4, 1, **{"Sequence number": [1], "Fwd thread id": None}),
        call("cudaLaunchKernel", 5, 1, 1),
    ]
    trace = read_bytes(dump(ops))
    assert trace.host["seq"].to_list() == [7, 7, None, 8, None, None]
    assert trace.host["fwd_thread"].to_list() == [0, 1, None, -1, None, None]


def test_collectives_of_operators_and_kernels() -> None:
    said = micro.collective()
    events = [
        op("record_param_comms", 0, 9, **said),
        kernel("ncclDevKernel_AllReduce", 10, 5, 1, **said),
        kernel("ncclDevKernel_SendRecv", 20, 5, 2, **micro.collective(4, Rank="x", **{"Dst Rank": 3, "Comms Id": 9})),
        kernel("gemm", 30, 5, 3),
    ]
    trace = read_bytes(dump(events))
    assert trace.host["collective"].to_list() == [0]
    assert trace.device["collective"].to_list() == [0, 1, -1]
    first, second = trace.collectives.to_dicts()
    assert first == {
        "name": "allreduce", "group": "7", "description": "dp", "group_size": 2, "ranks": "[0, 2]", "rank_start": 0,
        "rank_stride": 2, "rank": 1, "source": None, "destination": None, "seq": 3, "comms_id": None,
        "asynchronous": None, "dtype": "BFloat16", "in_elements": 64, "out_elements": 64, "in_split": "[]",
        "out_split": "[]",
    }  # fmt: skip
    assert (second["seq"], second["rank"], second["destination"], second["comms_id"]) == (4, None, 3, "9")


def test_old_and_other_spellings() -> None:
    events = [
        op("a", 1, 1, cat="Operator"),
        op("b", 2, 1, cat="Runtime", correlation="9"),
        op("hipLaunch", 2.5, 1, cat="hip_driver", correlation=10.0),
        op("k", 3, 1, "0", "stream 7", "Kernel", correlation=9),
        op("m", 4, 1, 1, "stream 7", "Memcpy", stream="20", device="3", bytes="64"),
        op("s", 5, 1, 0, 7, "Memset", correlation=2**64 - 2),
        op("c", 6, 1, 0, 7, "concurrent_kernel"),
        op("x", 7, 1, 0, 7, "gpu_user_annotation"),
        op("x", 7, 1, 0, 7, "cuda_sync"),
        op("x", 7, 1, "Spans", "PyTorch Profiler", "Trace"),
        op("x", 7, 1, 0, 7, "cuda_profiler_range"),
    ]
    trace = read_bytes(dump(events))
    assert [row[:2] + row[6:7] for row in host_rows(trace)] == [(0, "a", 0), (3, "b", 9), (4, "hipLaunch", 10)]
    assert [(r[0], r[4], r[5], r[8], r[10]) for r in device_rows(trace)] == [
        (16, 0, 7, 9, None),
        (17, 3, 20, 0, 64),
        (18, 0, 7, -2, None),
        (16, 0, 7, 0, None),
    ]
    assert (trace.events, trace.complete_events) == (11, 11)
    assert trace.warnings == ()


def test_a_category_nobody_knows_is_counted_and_told() -> None:
    trace = read_bytes(dump([*triple(), op("x", 1, 1, cat="quantum")]))
    assert (trace.events, trace.complete_events, len(trace.host)) == (4, 4, 2)
    (warning,) = trace.warnings
    assert (warning.code, warning.count) == ("unknown-category", 1)
    assert "'quantum'" in warning.message


@pytest.mark.parametrize(
    ("spelled", "ns"),
    [
        ("5", 5_000), ("5.5", 5_500), ("5.123", 5_123), ('"5.5"', 5_500), ('" 7 "', 7_000), ("1e3", 1_000_000),
        ("5113803061637.413", 5_113_803_061_637_413), ("4458676416431.397", 4_458_676_416_431_397),
        ("8796093022207.999", 8_796_093_022_207_999), ("8796093022208.001", 8_796_093_022_208_001),
        ("1711000000406752.124", 1_711_000_000_406_752_124), ("1711000000406752", 1_711_000_000_406_752_000),
        ('"1711000000406752.124"', 1_711_000_000_406_752_124), ("1.711000000406752124e15", 1_711_000_000_406_752_124),
        ("0.0004", 0), ("0.0006", 1), ("1000.12349", 1_000_123), ("-2.5", -2_500),
    ],
)  # fmt: skip
@pytest.mark.parametrize("beside", ["", '{"ph": "i", "ts": 1}, ', '{"ph": "X"}, '])
def test_times_are_exact(spelled: str, ns: int, beside: str) -> None:
    text = f'[{beside}{{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": {spelled}, "dur": 1.001}}]'
    trace = read_bytes(text.encode())
    assert trace.base_ns == ns
    assert trace.host["dur"].to_list() == [1_001]


def test_every_nanosecond_of_an_uptime_is_exact() -> None:
    """Doubles of 4.4 to 4.5e12 µs are where a product of both parts would be rounded twice."""
    times = [f"{whole}.{ns:03}" for whole in (4_398_046_511_104, 4_458_676_416_431, 8_796_093_022_206)
             for ns in range(1000)]  # fmt: skip
    events = ",".join(f'{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":{t},"dur":1}}' for t in times)
    text = f"[{events}]".encode()
    wanted = sorted(int(t.replace(".", "")) for t in times)
    trace = read_bytes(text)
    kept = [t for t in wanted if abs(t - wanted[(len(wanted) - 1) // 2]) <= oracle.DAY_NS]
    assert sorted((trace.host["ts"] + trace.base_ns).to_list()) == kept


def test_a_negative_time_is_a_time() -> None:
    trace = read_bytes(dump([op("a", -5.5, 1), op("b", 3, 1)]))
    assert trace.host["ts"].to_list() == [0, 8_500]
    assert trace.base_ns == -5_500


@pytest.mark.parametrize(
    ("dur", "kept"),
    [("-1", False), ("null", False), ("18446744073709551.615", False), ('"5"', True), ("0", True), ('"x"', False),
     ("[]", False), ("1e400", False), ("31622400000000", False), ("86400000000", True), (None, False)],
)  # fmt: skip
def test_durations_that_are_none(dur: str | None, kept: bool) -> None:
    member = "" if dur is None else f', "dur": {dur}'
    text = f'[{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5{member}}}]'
    trace = read_bytes(text.encode())
    assert (trace.events, trace.complete_events, len(trace.device)) == (1, int(kept), int(kept))
    codes = [w.code for w in trace.warnings if w.code not in ("bad-number", "no-events")]
    assert codes == ([] if kept else ["bad-duration"])


@pytest.mark.parametrize("ts", [None, "null", '"soon"', "{}", "1e300"])
def test_times_that_are_none(ts: str | None) -> None:
    member = "" if ts is None else f', "ts": {ts}'
    text = f'[{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "dur": 5{member}}}]'
    trace = read_bytes(text.encode())
    assert (trace.events, trace.complete_events) == (1, 0)
    assert "bad-timestamp" in {w.code for w in trace.warnings}


def test_a_clock_that_is_days_off_is_left_out() -> None:
    days = 5_113_803_061_637
    events = [op(str(i), days + i, 1) for i in range(5)] + [op("zero", 0, 1), op("far", days + 86_401_000_000, 1)]
    trace = read_bytes(dump(events))
    assert len(trace.host) == 5
    assert trace.host["ts"].to_list() == [0, 1000, 2000, 3000, 4000]
    assert [(w.code, w.count) for w in trace.warnings] == [("far-timestamp", 2)]
    assert trace.complete_events == 7


def test_begin_and_end_make_pairs() -> None:
    def half(ph: str, ts: Any, **more: Any) -> dict[str, Any]:
        return {"ph": ph, "pid": 1, "tid": 1, "ts": ts, **more}

    events = [
        half("E", 1),
        half("B", 2, cat="cpu_op", name="outer"),
        half("B", 3, cat="gpu_user_annotation", name="dropped"),
        half("B", 4, cat="user_annotation", name="inner", args={"x": 1}),
        op("between", 4.5, 0.5, 1, 1),
        half("E", 6),
        half("E", 7),
        {**half("E", 100), "tid": 2},
        half("E", 9.5),
        half("B", 10, cat="cpu_op", name="open"),
    ]
    trace = read_bytes(dump(events))
    assert [(r[1], r[4], r[5]) for r in host_rows(trace)] == [
        ("outer", 0, 7_500),
        ("inner", 2_000, 2_000),
        ("between", 2_500, 500),
    ]
    assert [(w.code, w.count) for w in trace.warnings] == [("unmatched-begin-end", 3)]
    assert (trace.events, trace.complete_events) == (10, 1)


def test_names_of_threads_and_processes() -> None:
    meta = [
        {"name": "process_name", "ph": "M", "pid": 41, "tid": 0, "args": {"name": "python3"}},
        {"name": "process_labels", "ph": "M", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
        {"name": "thread_name", "ph": "M", "pid": 41, "tid": 41, "args": {"name": "old"}},
        {"name": "thread_name", "ph": "M", "pid": 41, "tid": "41", "args": {"name": "thread 41 (python3)"}},
        {"name": "thread_name", "ph": "M", "pid": 99, "tid": 1, "args": {"name": "nobody's"}},
        {"name": "thread_sort_index", "ph": "M", "pid": 41, "tid": 41, "args": {"sort_index": 3}},
        {"name": "thread_name", "ph": "M", "pid": 41},
    ]
    trace = read_bytes(dump(triple() + meta))
    assert trace.threads.rows() == [
        ("41", "41", "python3", "thread 41 (python3)", None),
        ("0", "7", None, None, "GPU 0"),
    ]
    assert trace.events == 10


def test_pids_and_tids_are_one_however_spelled() -> None:
    events = [op("a", 1, 1, 41, 7), op("b", 2, 1, "41", 7), op("c", 3, 1, 41.0, "7"), op("d", 4, 1, None, True)]
    trace = read_bytes(dump(events, "spaced"))
    assert trace.threads.select("pid", "tid").rows() == [("41", "7"), ("", "1")]


def test_launch_configurations_are_shared() -> None:
    config = {"grid": [4, 1, 1], "block": [128, 2, 1], "registers per thread": 32, "shared memory": 1024,
              "blocks per SM": 0.25, "warps per SM": 2, "est. achieved occupancy %": 12.5}  # fmt: skip
    partial = {"grid": [4], "block": None}
    events = [kernel("k", i, 1, i, **c) for i, c in enumerate([config, {}, config, partial])]
    trace = read_bytes(dump(events))
    assert trace.device["config"].to_list() == [0, -1, 0, 1]
    assert trace.configs.rows() == [
        (4, 1, 1, 128, 2, 1, 32, 1024, 0.25, 2.0, 12.5),
        (4, None, None, None, None, None, None, None, None, None, None),
    ]


def test_shapes_are_kept_where_recorded() -> None:
    dims: dict[str, Any] = {"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]}
    trace = read_bytes(dump([op("a", 1, 1, **dims), op("b", 2, 1), op("c", 3, 1, **dims), call("d", 4, 1, 1)]))
    assert trace.host["shapes"].to_list() == [4, -1, 4, -1]
    assert json.loads(trace.names[4]) == [dims["Input Dims"], dims["Input type"]]


def test_memory_instants() -> None:
    args = {"Total Reserved": 2048, "Total Allocated": 1024, "Bytes": -64, "Device Id": 0, "Device Type": 1}
    events = [
        {"ph": "i", "name": "[memory]", "ts": 7, "args": args},
        {"ph": "i", "name": "[memory]", "ts": 9.5, "args": {"Bytes": 5, "Device Type": 0, "Device Id": -1}},
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 1e12},
    ]
    trace = read_bytes(dump(events))
    assert trace.memory.rows() == [(0, 1, 0, -64, 1024, 2048), (2_500, 0, -1, 5, None, None)]
    assert (trace.events, trace.complete_events, trace.base_ns) == (3, 0, 7_000)


def test_the_header() -> None:
    devices = [{"id": 0, "name": "NVIDIA H200", "numSms": 132}]
    info = {"rank": 3, "pg_config": [{"pg_name": "0"}]}
    text = dump(triple(), deviceProperties=devices, distributedInfo=info, cupti_version=1, with_stack=1)
    tail = text.replace(b'"traceName"', b'"baseTimeNanoseconds": "1790857026000000000", "traceName"')
    trace = read_bytes(dump(triple(), "spaced", deviceProperties=devices, distributedInfo=info, cupti_version=1))
    assert trace.header.devices == tuple(devices)
    assert trace.header.distributed == info
    assert trace.header.producer == "Kineto (CUDA)"
    assert trace.header.extra == {"schemaVersion": 1, "cupti_version": 1, "traceName": "a[0]}, {.json"}
    assert read_bytes(tail).base_ns == 1_790_857_026_001_000_000


@pytest.mark.parametrize(
    ("text", "events", "codes"),
    [
        (b'{"traceEvents": [%s]}', 1, []),
        (b'{"a": {"traceEvents": [%s, %s]}, "traceEvents": [%s]}', 1, ["ignored-event-list"]),
        (b'{"traceEvents": [%s], "a": {"traceEvents": [%s, %s]}}', 1, ["ignored-event-list"]),
        (b'{"a": {"b": {"traceEvents": [%s, %s]}}}', 2, ["nested-event-list"]),
        (b'{"traceEvents": [%s], "x": 1, "traceEvents": [%s, %s]}', 3, ["repeated-event-list"]),
        (b'{"traceEvents": null, "x": "traceEvents", "traceEvents": [%s]}', 1, []),
        (b'{"x": [[{"traceEvents": 1}], "]}"], "traceEvents": [%s]}', 1, []),
        (b'[%s, %s]', 2, []),
        (b'%s\n%s\n%s\n', 3, []),
        (b'{"traceEvents": [%s, {}, null, 5, "x", [], {"a": 1}]}', 7, []),
    ],
)  # fmt: skip
def test_where_the_list_may_stand(text: bytes, events: int, codes: list[str]) -> None:
    count = text.count(b"%s")
    text = text % tuple(micro.kineto(op(f"n{i}", i, 1)).encode() for i in range(count))
    trace = read_bytes(text)
    assert trace.events == events
    assert [w.code for w in trace.warnings] == codes


@pytest.mark.parametrize("text", [b'{"traceEvents": []}', b'{"traceEvents": [ \n ], "x": 1}', b"[]", b" [ ] "])
def test_a_trace_without_events(text: bytes) -> None:
    trace = read_bytes(text)
    assert (trace.events, len(trace.host), len(trace.device), len(trace.memory)) == (0, 0, 0, 0)
    assert [w.code for w in trace.warnings] == ["no-events"]
    assert (trace.base_ns, trace.truncated) == (0, False)


def test_files_pipes_and_gzip_give_the_same(tmp_path: Path) -> None:
    text = dump(micro.mixed(5, 200))
    plain, packed, pipe = tmp_path / "misnamed.gz", tmp_path / "misnamed.json", tmp_path / "pipe"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    first = read(plain)
    assert (first.format, first.path) == ("json", str(plain))
    unpacked = read(packed)
    assert (unpacked.format, unpacked.bytes) == ("json.gz", len(text))
    assert same(first, unpacked)
    assert same(first, read_bytes(text))
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(text,))
    writer.start()
    assert same(first, read(str(pipe)))
    writer.join()


def test_progress_counts_the_bytes_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(dump(micro.mixed(5, 200))))
    seen: list[tuple[int, int | None]] = []
    read(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
    assert seen == sorted(seen)
