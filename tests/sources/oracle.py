"""A slow, plain reading of a trace: json, decimal and loops. Shares no code with the reader.

It reads only text that is valid JSON, and says what every row of every frame has to be. Times are
whole nanoseconds from the first row, text is text, not positions.
"""

from __future__ import annotations

import decimal
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

DAY_NS = 86_400 * 10**9
YEAR_NS = 366 * DAY_NS
EXACT = 2**43
LARGEST_US = 2**63 // 1000 - 1

HOST = {
    "cpu_op": 0, "Operator": 0, "user_annotation": 1, "nvtx": 1, "python_function": 2, "fee": 2, "FEE": 2,
    "cuda_runtime": 3, "Runtime": 3, "hip_runtime": 3, "xpu_runtime": 3, "mtia_runtime": 3,
    "privateuse1_runtime": 3, "cuda_driver": 4, "hip_driver": 4, "xpu_driver": 4, "privateuse1_driver": 4,
    "overhead": 5,
}  # fmt: skip
DEVICE = {
    "kernel": 16, "Kernel": 16, "concurrent_kernel": 16, "gpu_memcpy": 17, "Memcpy": 17, "gpu_memset": 18,
    "Memset": 18,
}  # fmt: skip
CONFIG = ("grid", "block", "registers per thread", "shared memory", "blocks per SM", "warps per SM")
INPUTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
COLLECTIVE_TEXT = ("Collective name", "Process Group Name", "Process Group Description", "Process Group Ranks",
                   "Comms Id", "dtype", "In split size", "Out split size")  # fmt: skip
COLLECTIVE = ("Collective name", "Process Group Name", "Process Group Description", "Group size", "Process Group Ranks",
              "Global rank start", "Global rank stride", "Rank", "Src Rank", "Dst Rank", "Seq", "Comms Id",
              "Is asynchronized op", "dtype", "In msg nelems", "Out msg nelems", "In split size",
              "Out split size")  # fmt: skip
OCCUPANCY = "est. achieved occupancy %"


class Unsupported(Exception):
    """Valid JSON of a kind that this oracle has no opinion on."""


class Float(str):
    """A number with a fraction or an exponent, as the file spells it."""

    __slots__ = ()


class Object(dict[str, Any]):
    """A JSON object that remembers repeated keys."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


@dataclass
class Facts:
    """What a trace consists of."""

    events: int = 0
    complete: int = 0
    bad_durations: int = 0
    bad_times: int = 0
    first_ns: int = 0
    base_ns: int = 0
    host: list[tuple[Any, ...]] = field(default_factory=list)
    device: list[tuple[Any, ...]] = field(default_factory=list)
    memory: list[tuple[Any, ...]] = field(default_factory=list)


def facts(text: bytes) -> Facts:
    """Raises ValueError where the text is no JSON or no trace, Unsupported where the oracle is blind."""
    document = json.loads(
        text.decode("utf-8-sig"),
        parse_float=Float,
        parse_constant=lambda _: None,
        object_pairs_hook=Object,
    )
    out = Facts()
    events = _events(document)
    out.events = len(events)
    out.base_ns = _identity(document.get("baseTimeNanoseconds")) or 0 if isinstance(document, Object) else 0
    rows: list[dict[str, Any]] = []
    memory: list[tuple[Any, ...]] = []
    stacks: dict[tuple[str, str], list[dict[str, Any]]] = {}
    flows: dict[tuple[str, str, int], int] = {}
    for event in events:
        if not isinstance(event, Object) or "ph" not in event:
            continue
        phase = event["ph"]
        if phase == "M" and event.get("name") == "process_name":
            raise_if_dialect(event)
        ns = nanoseconds(event.get("ts"))
        lane = (spelled(event.get("pid")), spelled(event.get("tid")))
        args = event["args"] if isinstance(event.get("args"), Object) else Object([])
        if phase in ("i", "I") and plain(event.get("name")) == "[memory]":
            if ns is None:
                out.bad_times += 1
                continue
            memory.append((ns, *(_identity(args.get(k)) for k in MEMORY)))
            continue
        if phase in ("s", "f") and plain(event.get("cat")) == "cpu_to_cuda":
            ident = _identity(event.get("id"))
            if ident is not None and ns is not None:
                flows[*lane, ns] = ident + 1
            continue
        if phase not in ("X", "B", "E"):
            continue
        if ns is None:
            out.bad_times += 1
            continue
        if phase == "E":
            stack = stacks.get(lane)
            if stack:
                begun = stack.pop()
                begun["dur"] = ns - begun["ts"]
            continue
        row = {"ts": ns, "dur": -1, "lane": lane, "event": event, "args": args}
        if phase == "B":
            stacks.setdefault(lane, []).append(row)
        else:
            dur = nanoseconds(event.get("dur"))
            if dur is None or not 0 <= dur < YEAR_NS:
                out.bad_durations += 1
                continue
            row["dur"] = dur
            out.complete += 1
        rows.append(row)
    kept = []
    for row in rows:
        code = category(row["event"], row["lane"])
        if code is not None and row["dur"] >= 0:
            kept.append((code, row))
    times = sorted([row["ts"] for _, row in kept] + [m[0] for m in memory])
    if times:
        middle = times[(len(times) - 1) // 2]
        near = [t for t in times if abs(t - middle) <= DAY_NS]
        if times[-1] - times[0] > DAY_NS:
            kept = [(code, row) for code, row in kept if abs(row["ts"] - middle) <= DAY_NS]
            memory = [m for m in memory if abs(m[0] - middle) <= DAY_NS]
            times = near
        out.first_ns = times[0]
    for code, row in kept:
        _row(out, code, row, flows)
    for ns, kind, index, size, allocated, reserved in memory:
        small = (-1 if v is None or not -(2**31) - 1 < v < 2**31 - 1 else v for v in (kind, index))
        out.memory.append((ns - out.first_ns, *small, size or 0, allocated, reserved))
    return out


MEMORY = ("Device Type", "Device Id", "Bytes", "Total Allocated", "Total Reserved")


def _row(out: Facts, code: int, row: dict[str, Any], flows: dict[tuple[str, str, int], int]) -> None:
    event, args, lane = row["event"], row["args"], row["lane"]
    name = named(event.get("name"))
    ts = row["ts"] - out.first_ns
    correlation = 0
    if code in (3, 4) or code >= 16:
        found = [args[k] for k in ("correlation", "correlation_id", "connection_id") if k in args]
        correlation = (_identity(found[0]) or 0) if found else 0
    correlation = flows.get((*lane, row["ts"]), correlation)
    if code < 16:
        shapes, inputs, seq, fwd_thread = None, None, None, None
        if code == 0:
            if "Input Dims" in args:
                inputs = tuple(value_of(args.get(key)) for key in INPUTS)
                shapes = list(inputs[:2])
            seq, fwd_thread = _identity(args.get("Sequence number")), _identity(args.get("Fwd thread id"))
        said = collective(args) if code == 0 else None
        out.host.append((code, name, *lane, ts, row["dur"], correlation, shapes, inputs, said, seq, fwd_thread))
        return
    device = _identity(args.get("device"))
    if device is None or abs(device) >= 2**31:
        device = last_number(lane[0])
        device = 0 if device is None or abs(device) >= 2**31 else device
    stream = _identity(args.get("stream"))
    if stream is None:
        stream = last_number(lane[1])
        stream = -1 if stream is None else stream
    found = [args[k] for k in ("bytes", "size") if k in args]
    size = _identity(found[0]) if found else None
    out.device.append(
        (code, name, *lane, device, stream, ts, row["dur"], correlation, config(args), size, collective(args))
    )


def collective(args: Object) -> tuple[Any, ...] | None:
    """What is said of a collective: numbers, and everything else as text."""
    if "Collective name" not in args:
        return None
    out: list[Any] = []
    for key in COLLECTIVE:
        value = args.get(key)
        if key in COLLECTIVE_TEXT:
            value = value_of(value)
            out.append(value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":")))
        elif key == "Is asynchronized op":
            out.append({"true": True, "false": False}.get(str(value_of(value)).lower()))
        else:
            out.append(_identity(value))
    return tuple(out)


def config(args: Object) -> tuple[Any, ...] | None:
    values = [args.get(k) for k in (*CONFIG, OCCUPANCY)]
    if all(v is None for v in values):
        return None
    numbers: list[Any] = []
    for axes in values[:2]:
        axes = axes if isinstance(axes, list) else []
        numbers += [whole(v) for v in (axes + [None] * 3)[:3]]
    numbers += [whole(v) for v in values[2:4]]
    for v in values[4:]:
        v = value_of(v)
        numbers.append(float(v) if isinstance(v, int | float) and not isinstance(v, bool) else None)
    return tuple(numbers)


def whole(value: Any) -> int | None:
    value = value_of(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    return None


def value_of(value: Any) -> Any:
    """A value with its floats as floats, as a parser of doubles reads it."""
    if isinstance(value, Float):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        number = float(value) if abs(value) < 10**308 else math.inf
        return number if math.isfinite(number) else None
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        return [value_of(v) for v in value]
    if isinstance(value, dict):
        return {plain(k): value_of(v) for k, v in value.items()}
    return value


def category(event: Object, lane: tuple[str, str]) -> int | None:
    cat = event.get("cat")
    name = named(event.get("name"))
    if cat is None or cat == "":
        pid = event.get("pid")
        if pid == "CPU functions":
            return 0
        if isinstance(pid, str) and re.fullmatch(r"(?i)(cuda|hip|xpu|privateuse1) functions", pid):
            lower = name.lower()
            return 17 if lower.startswith(("memcpy", "hcclmemcpy")) else 18 if lower.startswith("memset") else 16
        return None
    if cat in ("mtia_ccp_events", "cuda"):
        raise Unsupported
    cat = plain(cat) if isinstance(cat, str) and not isinstance(cat, Float) else None
    return HOST.get(cat, DEVICE.get(cat)) if cat is not None else None


def raise_if_dialect(event: Object) -> None:
    name = event["args"].get("name") if isinstance(event.get("args"), Object) else None
    if isinstance(name, str) and (name.startswith("/") or name in ("Ascend Hardware", "CANN", "Python")):
        raise Unsupported


def _events(document: Any) -> list[Any]:
    if isinstance(document, list):
        _only_events(document)
        if document and not any(isinstance(e, Object) and "ph" in e for e in document):
            raise ValueError("no events")
        return document
    found: list[tuple[int, list[Any]]] = []
    _lists(document, 1, found)
    if not found:
        raise ValueError("no list of events")
    depth = min(d for d, _ in found)
    for _, events in found:
        _only_events(events)
    return [event for d, events in found if d == depth for event in events]


def _only_events(events: list[Any]) -> None:
    """Events inside of events, and lists of them inside the list, are read as damage."""
    for event in events:
        if isinstance(event, list) and any(isinstance(e, Object) for e in event):
            raise Unsupported
        if isinstance(event, Object) and any(_holds_events(v) for v in event.values()):
            raise Unsupported


def _holds_events(value: Any) -> bool:
    if isinstance(value, list):
        return any(_holds_events(v) for v in value)
    if not isinstance(value, Object):
        return False
    return ("ph" in value and ("pid" in value or "ts" in value)) or any(_holds_events(v) for v in value.values())


def _lists(value: Any, depth: int, found: list[tuple[int, list[Any]]]) -> None:
    if not isinstance(value, Object):
        return
    for key, member in value.pairs:
        if key == "traceEvents" and isinstance(member, list):
            found.append((depth, member))
        else:
            _lists(member, depth + 1, found)


def nanoseconds(us: Any) -> int | None:
    if isinstance(us, bool):
        return int(us) * 1000
    if isinstance(us, int):
        return us * 1000 if abs(us) <= LARGEST_US else None
    if isinstance(us, Float):
        number = float(us)
        if not math.isfinite(number):
            return None
        if abs(number) < EXACT and (len(us.partition(".")[2]) > 3 or "e" in us.lower()):
            # More digits than nanoseconds: the nearest to the double that they make.
            return int((decimal.Decimal(number) * 1000).to_integral_value())
        return exact(us)
    if isinstance(us, str):
        text = us.strip()
        if len(text) > 64 or not re.fullmatch(r"(?a)[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", text):
            return None
        return exact(text)
    return None


def exact(text: str) -> int | None:
    number = decimal.Decimal(text)
    if number.adjusted() > 18:
        return None
    ns = int((number * 1000).to_integral_value())
    return ns if abs(ns) <= LARGEST_US * 1000 else None


def _identity(value: Any) -> int | None:
    if isinstance(value, Float):
        number = float(value)
        if not math.isfinite(number) or not number.is_integer():
            return None
        value = int(number)
    elif isinstance(value, str):
        if not re.fullmatch(r"(?a)[+-]?\d{1,20}", value.strip()):
            return None
        value = int(value)
    elif isinstance(value, bool) or not isinstance(value, int):
        return None
    if -(2**63) < value < 2**63:
        return value
    return value - 2**64 if 2**63 < value < 2**64 else None


def plain(value: Any) -> Any:
    """Text without halves of surrogate pairs."""
    return re.sub("[\ud800-\udfff]", "\ufffd", value) if isinstance(value, str) else value


def named(value: Any) -> str:
    return spelled(value)


def spelled(value: Any) -> str:
    if isinstance(value, Float):
        number = float(value)
        if not math.isfinite(number):
            return ""
        return str(int(number)) if number.is_integer() else str(number)
    if value is None:
        return ""
    if isinstance(value, bool | int):
        if not -(2**63) <= value < 2**64:
            raise Unsupported
        return str(int(value))
    if isinstance(value, str):
        return plain(value)
    return str(value_of(value))


def last_number(text: str) -> int | None:
    found = re.search(r"(-?\d+)\D*$", text[-40:])
    if not found or not -(2**63) <= int(found[1]) < 2**63:
        return None
    return int(found[1])
