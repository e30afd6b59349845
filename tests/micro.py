"""Traces of a few events, written in the test: times in µs, as the profiler's files have them.

    MICRO = [
        op("aten::mm", 0, 30),
        launch("cudaLaunchKernel", 12, 4, corr=1),
        kernel("gemm", 40, 20, corr=1),
    ]

Host events lie on process HOST, thread MAIN unless said otherwise. Start a trace at 0: the reader counts
times from the first event, so that times in the report are then those in the test.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from analyzer import pipeline
from analyzer.events.builder import EventsBuilder
from analyzer.events.schema import CATEGORIES, Cat, Trace
from analyzer.events.select import Selection
from analyzer.index.build import Chains, build
from analyzer.report.document import Report
from analyzer.sources.kineto.header import make_header
from analyzer.sources.kineto.numbers import to_ns
from analyzer.sources.notes import Notes

Event = dict[str, Any]

HOST = 100
MAIN = 1
STREAM = 7

#: `deviceProperties` of a GPU of compute capability 9.0.
H100: dict[str, Any] = {
    "id": 0,
    "name": "Test GPU 9.0",
    "computeMajor": 9,
    "computeMinor": 0,
    "warpSize": 32,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
    "numSms": 132,
}


def complete(
    cat: str, name: str, ts: float, dur: float, pid: int, tid: int, args: dict[str, Any] | None = None
) -> Event:
    """A complete ("X") event."""
    event: Event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {**event, "args": args} if args else event


# -- the host --------------------------------------------------------------------------------------


def op(name: str, ts: float, dur: float, *, tid: int = MAIN, pid: int = HOST, shapes: Any = None) -> Event:
    """An operator of the dispatcher."""
    return complete("cpu_op", name, ts, dur, pid, tid, None if shapes is None else {"Input Dims": shapes})


def annotation(name: str, ts: float, dur: float, *, tid: int = MAIN, pid: int = HOST) -> Event:
    """A user's record_function."""
    return complete("user_annotation", name, ts, dur, pid, tid)


def step(number: int, ts: float, dur: float, *, tid: int = MAIN, pid: int = HOST) -> Event:
    """A step of the profiler."""
    return annotation(f"ProfilerStep#{number}", ts, dur, tid=tid, pid=pid)


def frame(name: str, ts: float, dur: float, *, tid: int = MAIN, pid: int = HOST) -> Event:
    """A Python frame."""
    return complete("python_function", name, ts, dur, pid, tid)


def call(
    name: str, ts: float, dur: float, *, corr: int = 0, tid: int = MAIN, pid: int = HOST, cat: str = "cuda_runtime"
) -> Event:
    """A call of the runtime API; `cat="cuda_driver"` for the driver's."""
    return complete(cat, name, ts, dur, pid, tid, {"correlation": corr})


def launch(name: str, ts: float, dur: float, corr: int, **where: Any) -> Event:
    """A call that launches device work."""
    return call(name, ts, dur, corr=corr, **where)


def overhead(name: str, ts: float, dur: float) -> Event:
    """The profiler's own work, or module loading, on a lane of its own."""
    return complete("overhead", name, ts, dur, -1, 0)


BUFFER = "Activity Buffer Request"
LOADING = "Lazy Function Loading"
QUEUE_FULL = "Command Buffer Full"


# -- the device ------------------------------------------------------------------------------------


def _work(cat: str, name: str, ts: float, dur: float, corr: int, stream: int, device: int, args: Any) -> Event:
    args = {"device": device, "stream": stream, "correlation": corr, **args}
    return complete(cat, name, ts, dur, device, stream, args)


def kernel(
    name: str,
    ts: float,
    dur: float,
    corr: int = 0,
    *,
    stream: int = STREAM,
    device: int = 0,
    block: Any = None,
    grid: Any = None,
    registers: Any = None,
    shared: Any = None,
    occupancy: Any = None,
) -> Event:
    """A kernel; its launch configuration where given."""
    given = {
        "grid": grid,
        "block": block,
        "registers per thread": registers,
        "shared memory": shared,
        "est. achieved occupancy %": occupancy,
    }
    return _work("kernel", name, ts, dur, corr, stream, device, {k: v for k, v in given.items() if v is not None})


def memcpy(
    kind: str, ts: float, dur: float, corr: int = 0, *, stream: int = STREAM, device: int = 0, size: int | None = None
) -> Event:
    """A copy: `memcpy("HtoD (Pageable -> Device)", ...)`."""
    return _work("gpu_memcpy", f"Memcpy {kind}", ts, dur, corr, stream, device, {} if size is None else {"bytes": size})


def memset(ts: float, dur: float, corr: int = 0, *, stream: int = STREAM, device: int = 0) -> Event:
    return _work("gpu_memset", "Memset (Device)", ts, dur, corr, stream, device, {})


def on_device(event: Event, cat: str = "gpu_user_annotation", device: int = 0) -> Event:
    """The copy of an annotation on a device's lane: no work."""
    return {**event, "cat": cat, "pid": device, "tid": STREAM}


def memory(
    ts: float,
    size: int,
    allocated: int | None = None,
    reserved: int | None = None,
    *,
    device_type: int = 1,
    device: int = 0,
) -> Event:
    """An instant of the allocator."""
    totals = {"Total Allocated": allocated, "Total Reserved": reserved}
    args = {"Device Type": device_type, "Device Id": device, "Bytes": size, "Addr": 1}
    args |= {k: v for k, v in totals.items() if v is not None}
    return {
        "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": HOST, "tid": MAIN, "ts": ts,
        "args": args,
    }  # fmt: skip


# -- a whole trace ---------------------------------------------------------------------------------


def chain(name: str, ts: float, corr: int, start: float, dur: float, *, kernel_name: str = "k") -> list[Event]:
    """An operator of 10 µs from `ts`, its launch call of 4 µs at `ts + 3`, and its kernel."""
    return [
        op(name, ts, 10),
        launch("cudaLaunchKernel", ts + 3, 4, corr),
        kernel(kernel_name, start, dur, corr),
    ]


def everything() -> list[Event]:
    """A little of all that a trace can hold: each list of the report has a row."""
    events = [
        step(1, 0, 2000), annotation("forward", 5, 1900), frame("model.py(3): forward", 5, 1900),
        *chain("aten::mm", 10, 1, 40, 20, kernel_name="ampere_sgemm_128x64_tn"),
        op("aten::copy_", 100, 80), call("cudaMemcpyAsync", 110, 60, corr=2),
        memcpy("HtoD (Pageable -> Device)", 130, 30, 2, size=1 << 20),
        call("cudaMemsetAsync", 185, 3, corr=3), memset(190, 2, 3),
        op("aten::item", 300, 90), call("cudaStreamSynchronize", 310, 70), overhead(BUFFER, 320, 10),
        op("TorchDynamo Cache Lookup", 400, 15), annotation("Torch-Compiled Region: 0/1", 420, 100),
        op("## Call CompiledFxGraph fabc ##", 440, 60), call("cuLaunchKernel", 450, 5, corr=4, cat="cuda_driver"),
        kernel("triton_poi_fused_0", 470, 9, 4, grid=[8, 1, 1], block=[128, 1, 1], registers=32, shared=0,
               occupancy=50),
        op("aten::_scaled_dot_product_flash_attention", 600, 50), launch("cudaLaunchKernel", 610, 5, 5),
        kernel("flash_fwd_kernel", 640, 20, 5), kernel("before", 700, 1, 999), overhead(LOADING, 601, 5),
        memory(20, 512, 512, 1024), memory(25, 64, 64, 64, device_type=0, device=-1),
    ]  # fmt: skip
    for i in range(40):
        events += chain("aten::add", 1000 + 20 * i, 10 + i, 1010 + 20 * i, 900 if i == 39 else 5)
    return events


def shifted() -> list[Event]:
    """A stretch of 60 slow calls among 300."""
    return [kernel("gemm", 200 * i, 120 if 100 <= i < 160 else 100 + i % 3 / 10) for i in range(300)]


def write(path: Path, events: list[Event], *, devices: Any = (H100,), **header: Any) -> Path:
    """The events as a file, with what stands beside them."""
    top = {"schemaVersion": 1, "deviceProperties": list(devices), **header, "traceEvents": events}
    path.write_text(json.dumps(top))
    return path


def trace_of(path: Path, events: list[Event], *, devices: Any = (H100,), **header: Any) -> Trace:
    """The events as frames, with no JSON in between; `path` is only a name."""
    builder = EventsBuilder()
    for event in events:
        _add(builder, event)
    top = {"schemaVersion": 1, "deviceProperties": list(devices), **header}
    hints = {prefix for prefix in ("hip", "cuda") if any(e["name"].startswith(prefix) for e in events)}
    notes = Notes()
    if not events:
        notes.add("no-events")
    return builder.build(
        path=str(path),
        events=len(events),
        complete_events=sum(e["ph"] == "X" for e in events),
        header=make_header(top, hints),
        warnings=notes.warnings(),
    )


def _add(builder: EventsBuilder, event: Event) -> None:
    args = event.get("args", {})
    if event["ph"] == "M":
        key = "labels" if event["name"] == "process_labels" else "name"
        tid = str(event["tid"]) if event["name"] == "thread_name" else ""
        return builder.lane(event["name"], str(event["pid"]), args[key], tid)
    if event["ph"] == "i":
        return builder.memory(
            to_ns(event["ts"]), args["Bytes"], device_type=args["Device Type"], device_id=args["Device Id"],
            allocated=args.get("Total Allocated"), reserved=args.get("Total Reserved"),
        )  # fmt: skip
    cat = CATEGORIES.get(event["cat"]) if event["ph"] == "X" else None
    if cat is None:
        return None
    lane = str(event["pid"]), str(event["tid"])
    where = (cat, event["name"], lane, to_ns(event["ts"]), to_ns(event["dur"]))
    collective = _collective(args)
    if cat < Cat.KERNEL:
        return builder.host(
            *where, correlation=args.get("correlation", 0), inputs=_inputs(args), collective=collective,
            seq=args.get("Sequence number"), fwd_thread=args.get("Fwd thread id"),
        )  # fmt: skip
    stream = args.get("stream", event["tid"] if isinstance(event["tid"], int) else -1)
    return builder.device(
        *where, device=args.get("device", event["pid"]), stream=stream, correlation=args.get("correlation", 0),
        config=_config(args), size=args.get("bytes"), collective=collective,
    )  # fmt: skip


def _inputs(args: Event) -> list[str | None] | None:
    if "Input Dims" not in args:
        return None
    values = [args.get(key) for key in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")]
    return [None if value is None else json.dumps(value, separators=(",", ":")) for value in values]


def _collective(args: Event) -> dict[str, Any] | None:
    keys = {
        "name": "Collective name", "group": "Process Group Name", "description": "Process Group Description",
        "group_size": "Group size", "ranks": "Process Group Ranks", "rank": "Rank", "seq": "Seq", "dtype": "dtype",
        "in_elements": "In msg nelems", "out_elements": "Out msg nelems",
    }  # fmt: skip
    return {column: args.get(key) for column, key in keys.items()} if "Collective name" in args else None


def _config(args: Event) -> dict[str, Any] | None:
    keys = {
        "registers": "registers per thread", "shared_memory": "shared memory", "blocks_per_sm": "blocks per SM",
        "warps_per_sm": "warps per SM", "occupancy": "est. achieved occupancy %",
    }  # fmt: skip
    config = {column: args.get(key) for column, key in keys.items()}
    for what in ("grid", "block"):
        axes = args.get(what)
        axes = [*(axes if isinstance(axes, list) else []), None, None, None][:3]
        config |= dict(zip((f"{what}_x", f"{what}_y", f"{what}_z"), axes, strict=True))
    return config if any(value is not None for value in config.values()) else None


def chains_of(path: Path, events: list[Event], **header: Any) -> Chains:
    return build(trace_of(path, events, **header))


def report_of(path: Path, events: list[Event], *, only_step: str | None = None, **header: Any) -> Report:
    part = None if only_step is None else Selection(steps=(only_step, only_step))
    return pipeline.run(trace_of(path, events, **header), part)
