"""Small traces, built in the layouts that producers write."""

from __future__ import annotations

import json
import random
from typing import Any

Event = dict[str, Any]

LAYOUTS = ("kineto", "compact", "spaced", "indent", "lines")


def op(name: str, ts: Any, dur: Any, pid: Any = 41, tid: Any = 41, cat: str = "cpu_op", **args: Any) -> Event:
    event: Event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {**event, "args": args} if args else event


def call(name: str, ts: Any, dur: Any, correlation: Any, cat: str = "cuda_runtime") -> Event:
    return op(name, ts, dur, cat=cat, correlation=correlation)


def kernel(name: str, ts: Any, dur: Any, correlation: Any, stream: Any = 7, **args: Any) -> Event:
    args = {"device": 0, "stream": stream, "correlation": correlation, **args}
    return op(name, ts, dur, 0, stream, "kernel", **args)


def triple() -> list[Event]:
    """An operator, its launch, and the kernel."""
    return [
        op("aten::relu", 1000, 40),
        call("cudaLaunchKernel", 1010, 5, 11),
        kernel("relu_demo", 1030, 20, 11),
    ]


def collective(seq: int = 3, **more: Any) -> Event:
    """Arguments of a collective's operator and kernel."""
    return {
        "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 64, "Out msg nelems": 64,
        "In split size": "[]", "Out split size": "[]", "Global rank start": 0, "Global rank stride": 2, "Group size": 2,
        "Rank": 1, "Process Group Name": "7", "Process Group Description": "dp", "Process Group Ranks": "[0, 2]",
        "Seq": seq, **more,
    }  # fmt: skip


def mixed(seed: int = 0, count: int = 10) -> list[Event]:
    """Events of most kinds, with decimals, names that need care, and things to drop."""
    rng = random.Random(seed)
    events: list[Event] = []
    ts = rng.choice([0, 5_000, 5_113_803_061_637])
    for i in range(count):
        ts += rng.randint(1, 900)
        at = ts + rng.randint(0, 999) / 1000
        dur = rng.randint(0, 90_000) / 1000
        kind = rng.randrange(9)
        if kind < 3:
            name = rng.choice(["aten::mm", "aten::add_", "x[0]: {a}", "päth", 'say "hi"', "a\\b", "}, {"])
            args = {"External id": i, "Input Dims": [[i, 4], []], "Input type": ["float", ""],
                    **({"Input Strides": [[4, 1], []], "Concrete Inputs": ["", str(i % 3)]} if i % 2 else {}),
                    **({"Sequence number": i, "Fwd thread id": i % 2} if i % 3 else {}),
                    **(collective(i) if i % 5 == 0 else {})}  # fmt: skip
            events.append(op(name, at, dur, **(args if kind else {})))
        elif kind == 3:
            events.append(call("cudaLaunchKernel", at, dur, i))
        elif kind == 4:
            more = {"grid": [i, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0,
                    "blocks per SM": 0.5, "warps per SM": 2.0, "est. achieved occupancy %": 12}  # fmt: skip
            more |= collective(i - 1) if i % 4 == 0 else {}
            events.append(kernel("void k<float>(int)", at, dur, i - 1, **more))
        elif kind == 5:
            event = kernel("Memcpy HtoD", at, dur, i - 1, bytes=4096)
            events.append({**event, "cat": "gpu_memcpy"})
        elif kind == 6:
            events.append({"ph": "s", "id": i, "pid": 41, "tid": 41, "ts": at, "cat": "ac2g", "name": "ac2g"})
        elif kind == 7:
            args = {"Total Reserved": 4096, "Total Allocated": 64 * i, "Bytes": -64, "Addr": 1, "Device Id": 0,
                    "Device Type": 1}  # fmt: skip
            events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 41,
                           "tid": 41, "ts": at, "args": args})  # fmt: skip
        else:
            events.append({"name": "thread_name", "ph": "M", "ts": at, "pid": 41, "tid": 41,
                           "args": {"name": f"thread {i}"}})  # fmt: skip
    return events


def dump(events: list[Event], layout: str = "kineto", **members: Any) -> bytes:
    """The text of a trace whose list of events stands among other members."""
    members = {"schemaVersion": 1, **members, "traceEvents": events, "traceName": "a[0]}, {.json"}
    if layout == "compact":
        return json.dumps(members, separators=(",", ":")).encode()
    if layout == "spaced":
        return json.dumps(members).encode()
    if layout == "indent":
        return json.dumps(members, indent=2).encode()
    if layout == "lines":
        return wrap([json.dumps(e) for e in events], "{", ",\n")
    return wrap([kineto(e) for e in events])


def kineto(event: Event) -> str:
    """An event as Kineto prints it."""
    first = [k for k in ("ph", "cat", "name", "pid", "tid") if k in event]
    rest = [k for k in event if k not in first]
    lines = [", ".join(f'"{k}": {json.dumps(event[k], ensure_ascii=False)}' for k in first)]
    times = [f'"{k}": {spelled(event[k])}' for k in rest if k != "args"]
    if times:
        lines.append(", ".join(times))
    if "args" in event:
        inner = ", ".join(f'"{k}": {json.dumps(v)}' for k, v in event["args"].items())
        lines.append('"args": {\n      ' + inner + "\n    }")
    return "{\n    " + ",\n    ".join(lines) + "\n  }"


def spelled(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else json.dumps(value)


def wrap(texts: list[str], opening: str = "{", separator: str = ",\n  ") -> bytes:
    """Texts of events as a list in a document."""
    head = opening + '\n  "schemaVersion": 1,\n  "displayTimeUnit": "ms",\n  "traceEvents": [\n  '
    return (head + separator.join(texts) + '\n  ],\n  "traceName": "a[0]}, {.json"\n}\n').encode()
