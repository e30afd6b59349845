"""Producers other than today's Kineto."""

from __future__ import annotations

import json
from typing import Any

from analyzer.events.schema import Cat
from tests.sources.compare import device_rows, host_rows, read_bytes
from tests.sources.micro import dump, op, triple


def x(name: str, ts: Any, dur: Any, pid: Any, tid: Any, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def meta(kind: str, pid: Any, tid: Any, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def test_legacy_autograd_is_linked_by_its_flows() -> None:
    def flow(ph: str, ts: Any, pid: str, tid: int, ident: int) -> dict[str, Any]:
        return {"name": "m", "ph": ph, "ts": ts, "tid": tid, "pid": pid, "id": ident, "cat": "cpu_to_cuda"}

    cpu, cuda = "CPU functions", "CUDA functions"
    events = [
        x("aten::mul", 100, 40, cpu, 1), flow("s", 100, cpu, 1, 0), flow("f", 150.5, cuda, 0, 0),
        x("aten::mul", 150.5, 30, cuda, 0),
        x("aten::sum", 200, 20, cpu, 1), flow("s", 200, cpu, 1, 1), flow("f", 230.5, cuda, 0, 1),
        x("Memcpy DtoH", 230.5, 10, cuda, 0),
    ]  # fmt: skip
    trace = read_bytes(json.dumps(events).encode())
    assert trace.header.producer == "legacy autograd profiler"
    assert (trace.format, trace.events) == ("json array", 8)
    assert [(r[0], r[1], r[6]) for r in host_rows(trace)] == [(Cat.OP, "aten::mul", 1), (Cat.OP, "aten::sum", 2)]
    assert [(r[0], r[1], r[4], r[8]) for r in device_rows(trace)] == [
        (Cat.KERNEL, "aten::mul", 0, 1),
        (Cat.MEMCPY, "Memcpy DtoH", 0, 2),
    ]


def test_mtia_waits_are_no_work() -> None:
    def ccp(name: str, ts: int, **args: Any) -> dict[str, Any]:
        return {**x(name, ts, 5, 17, 3774, stream=108, **args), "cat": "mtia_ccp_events"}

    events = [
        op("recordEvent", 1, 2, cat="mtia_runtime", correlation=9),
        ccp("pe_exe", 5), ccp("remote", 11, correlation=9), ccp("merge", 20), ccp("dma_request", 30, size=1024),
        ccp("event_wait", 0), ccp("event_record", 50),
    ]  # fmt: skip
    trace = read_bytes(dump(events))
    assert [(r[0], r[1], r[4], r[5], r[10]) for r in device_rows(trace)] == [
        (16, "pe_exe", 17, 108, None),
        (16, "remote", 17, 108, None),
        (16, "merge", 17, 108, None),
        (17, "dma_request", 17, 108, 1024),
    ]
    assert trace.complete_events == 7
    assert trace.warnings == ()


def test_xpu_has_no_stream_but_a_queue() -> None:
    event = {**x("gemm", 5, 2, 1, 140, **{"sycl queue": "0x5a", "correlation": 4}), "cat": "kernel"}
    trace = read_bytes(dump([op("urEnqueue", 1, 2, cat="xpu_runtime", correlation=4), event]))
    assert [r[4:6] for r in device_rows(trace)] == [(1, 140)]


def test_jax_lanes_are_told_by_their_names() -> None:
    events = [
        meta("process_name", 1, None, "/device:GPU:0 (pid 1)"),
        meta("process_name", 2, None, "/host:CPU"),
        meta("thread_name", 1, 5, "Stream #5(Compute)"),
        meta("thread_name", 1, 6, "XLA Modules"),
        x("fusion.1", 100.0005001, 2.5, 1, 5, correlation_id="7", hlo_op="fusion.1"),
        x("MemcpyD2H", 105, 1, 1, 5),
        x("jit_step", 100, 9, 1, 6),
        x("cuLaunchKernel", 99, 0.5, 2, 77, correlation_id="7"),
        x("$train.py:10 step", 90, 30, 2, 77),
        {},
    ]
    trace = read_bytes(json.dumps({"displayTimeUnit": "ns", "traceEvents": events}).encode())
    assert trace.header.producer == "XLA profiler (JAX)"
    assert [(r[0], r[1], r[4], r[8]) for r in device_rows(trace)] == [
        (16, "fusion.1", 0, 7),
        (17, "MemcpyD2H", 0, 0),
    ]
    assert [(r[0], r[1], r[6]) for r in host_rows(trace)] == [(3, "cuLaunchKernel", 7), (2, "$train.py:10 step", 0)]
    assert trace.events == 10
    assert trace.warnings == ()


def test_ascend_lanes_are_told_by_their_names() -> None:
    events = [
        meta("process_name", 5, 0, "CANN"),
        meta("process_name", 6, 0, "Ascend Hardware"),
        meta("process_name", 7, 0, "Overlap Analysis"),
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": "1711000000406752.124", "dur": 9},
        x("AscendCL@aclnnMm", "1711000000406754.000", 2, 5, 1, connection_id=8),
        x("MatMul", "1711000000406760.500", 2.5, 6, 3, connection_id=8, **{"Task Type": "AI_CORE"}),
        x("Computing", "1711000000406760.500", 2.5, 7, 3),
    ]
    trace = read_bytes(json.dumps(events).encode())
    assert trace.header.producer == "torch_npu (Ascend)"
    assert [(r[0], r[1], r[4], r[6]) for r in host_rows(trace)] == [
        (0, "aten::mm", 0, 0),
        (3, "AscendCL@aclnnMm", 1876, 8),
    ]
    assert [(r[0], r[1], r[6], r[7], r[8]) for r in device_rows(trace)] == [(16, "MatMul", 8376, 2500, 8)]
    assert trace.warnings == ()


def test_nsys_exports_name_the_device_in_the_pid() -> None:
    events = [
        {**x("gemm", 5.5, 2, "Device 1", "Stream 7"), "cat": "cuda"},
        {**x("cudaLaunchKernel", 1, 2, 41, 41), "cat": "cuda"},
        {**x("forward", 0, 9, 41, "NVTX Thread 3"), "cat": "nvtx"},
    ]
    trace = read_bytes(json.dumps(events).encode())
    assert [(r[0], r[4], r[5]) for r in device_rows(trace)] == [(16, 1, 7)]
    assert [r[0] for r in host_rows(trace)] == [3, 1]


def test_without_category_and_lanes_events_are_counted_and_told() -> None:
    trace = read_bytes(dump([*triple(), x("a", 1, 2, 3, 4)]))
    assert [(w.code, w.count) for w in trace.warnings] == [("no-category", 1)]
    assert (trace.events, trace.complete_events, len(trace.host)) == (4, 4, 2)


def test_merged_ranks_keep_their_processes_apart() -> None:
    events = [
        op("cudaLaunchKernel", 1, 1, 100, 100, "cuda_runtime", correlation=5),
        op("cudaLaunchKernel", 2, 1, 200, 200, "cuda_runtime", correlation=5),
        op("k", 3, 1, 0, 7, "kernel", device=0, stream=7, correlation=5),
        op("k", 3, 1, 1, 7, "kernel", device=1, stream=7, correlation=5),
    ]
    trace = read_bytes(dump(events))
    assert trace.threads["pid"].to_list() == ["100", "200", "0", "1"]
    assert trace.device["device"].to_list() == [0, 1]


def test_device_lanes_of_other_tracers_are_read() -> None:
    """One category for all that a device does: copies and fills say so in their names."""
    events = [
        {**x("gemm", 0, 5, 3, 1), "cat": "hpu_op"}, {**x("Memcpy HtoD", 6, 5, 3, 1), "cat": "gpu_op"},
        {**x("allreduce", 12, 5, 3, 2), "cat": "collective_comm"}, {**x("Memset", 18, 5, 3, 1), "cat": "gpu_op"},
    ]  # fmt: skip
    trace = read_bytes(dump(events))
    assert [(r[0], r[1], r[4]) for r in device_rows(trace)] == [
        (Cat.KERNEL, "gemm", 3), (Cat.MEMCPY, "Memcpy HtoD", 3), (Cat.KERNEL, "allreduce", 3),
        (Cat.MEMSET, "Memset", 3),
    ]  # fmt: skip
    assert trace.warnings == ()


def test_what_kineto_writes_beside_work_is_known() -> None:
    beside = [op("x", i, 1, cat=cat) for i, cat in enumerate(("cuda_event", "external_correlation", "cuda_sync"))]
    trace = read_bytes(dump([*triple(), *beside]))
    assert (len(trace.host), trace.warnings) == (2, ())
