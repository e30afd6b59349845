"""A slow, plain reading of "cause of a gap": loops over the events of a file, no code of the product.

It takes the file's JSON and returns {device: {cause: ns}}. What names mean (which call waits, which
annotation loads data) is spelled out here anew, for the names that occur in random traces and ours.
"""

from __future__ import annotations

import collections
import decimal
import gzip
import itertools
import json
import statistics
from pathlib import Path
from typing import Any

WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
CALLS = {"cuda_runtime", "cuda_driver"}
HOST = {"cpu_op": 1, "user_annotation": 0, "cuda_runtime": 2, "cuda_driver": 3}  # on ties: outer first
SHORT = 10_000

LOADERS = ("enumerate(DataLoader)", "dataloader", "load_batch")
COLLECTIVES = ("nccl:", "c10d::", "record_param_comms")
REGIONS = ("Torch-Compiled Region", "CompiledFunction", "TorchDynamo Cache Lookup", "## Call CompiledFxGraph")
REGION_WORDS = ("CompiledFunctionBackward", "Runtime Wrapper Prologue", "Pregraph bytecode")
COMPILERS = ("(dynamo_timed)", "_compile.", "compile_fx", "entire_frame_compile", "backend_compile")
PROFILERS = ("Activity Buffer", "Command Buffer", "Buffer Flush", "Instrumentation", "Resource", "Profiler")


def load(path: Path) -> list[dict[str, Any]]:
    """Complete events with `ts` and `end` in whole ns, in the order of the file."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(text.decode("utf-8", "replace"), parse_float=str, strict=False)
    events = document["traceEvents"] if isinstance(document, dict) else document
    out = []
    for e in events:
        if e.get("ph") != "X" or "dur" not in e:
            continue
        ts, dur = (int((decimal.Decimal(str(e[k])) * 1000).to_integral_value()) for k in ("ts", "dur"))
        out.append({**e, "args": e.get("args", {}), "ts": ts, "end": ts + dur})
    return out


def correlation(e: dict[str, Any]) -> int:
    return int(e["args"].get("correlation", 0))


class Thread:
    """The events of one (pid, tid): nested by a stack, children cut at their parent's end."""

    def __init__(self, events: list[dict[str, Any]], rank: dict[str, int]) -> None:
        self.events = sorted(events, key=lambda e: (e["ts"], -e["end"], rank[e["cat"]]))
        stack: list[dict[str, Any]] = []
        for e in self.events:
            while stack and stack[-1]["end"] <= e["ts"]:
                stack.pop()
            e["up"] = stack[-1] if stack else None
            if stack:
                e["end"] = min(e["end"], stack[-1]["end"])
            stack.append(e)

    def innermost(self, t: int) -> dict[str, Any] | None:
        found = None
        for e in self.events:
            if e["ts"] > t:
                break
            if t < e["end"]:
                found = e
        return found


def up(e: dict[str, Any] | None) -> Any:
    """The event and all around it, innermost first."""
    while e is not None:
        yield e
        e = e["up"]


# -- what a name means ---------------------------------------------------------------------------------


def call_cause(name: str) -> str | None:
    if "Synchronize" in name or name == "cudaMemcpy":
        return "blocking_sync"
    if name.startswith(("cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister", "cuMem")) and "cuMemcpy" not in (
        name[:8]
    ) and not name.startswith("cuMemset"):  # fmt: skip
        return "allocator"
    if name.startswith(("cuModule", "cuLibrary", "cuKernel", "cudaModule", "cudaLibrary", "cudaGetFuncBySymbol")):
        return "first_use"
    return None


def is_launch(name: str) -> bool:
    return name.startswith(("cudaLaunch", "cuLaunch", "cudaGraphLaunch", "cuGraphLaunch"))


def is_region(name: str) -> bool:
    return name.startswith(REGIONS) or any(word in name for word in REGION_WORDS)


def context(name: str) -> str | None:
    """What an operator or annotation says that all inside it is for."""
    if is_region(name):
        return None
    if any(word in name for word in COMPILERS):
        return "compile"
    if name.startswith(LOADERS):
        return "input_pipeline"
    if name.startswith(COLLECTIVES) or "allreduce" in name or "all_reduce" in name:
        return "collective"
    return None


def frame_context(name: str) -> str | None:
    if "torch/utils/data/" in name:
        return "input_pipeline"
    if any(f"torch/{part}" in name for part in ("_dynamo/convert_frame", "_inductor/compile_fx", "_inductor/graph")):
        return "compile"
    return None


# -- the trace ------------------------------------------------------------------------------------------


class Oracle:
    def __init__(self, events: list[dict[str, Any]]) -> None:
        by_thread: dict[Any, list[Any]] = collections.defaultdict(list)
        frames: dict[Any, list[Any]] = collections.defaultdict(list)
        self.work: list[dict[str, Any]] = []
        lane: list[dict[str, Any]] = []
        for e in events:
            cat = e.get("cat")
            if cat in HOST:
                by_thread[e["pid"], e["tid"]].append(e)
            elif cat == "python_function":
                frames[e["pid"], e["tid"]].append(e)
            elif cat in WORK:
                self.work.append(e)
            elif cat == "overhead":
                lane.append(e)
        self.threads = {k: Thread(v, HOST) for k, v in by_thread.items()}
        self.frames = {k: Thread(v, {"python_function": 0}) for k, v in frames.items()}
        self.calls: dict[int, dict[str, Any]] = {}
        for thread in self.threads.values():
            for e in thread.events:
                if e["cat"] in CALLS and correlation(e):
                    self.calls.setdefault(correlation(e), e)
        self._clip()
        recorded = [self.calls[correlation(w)] for w in self.work if correlation(w) in self.calls]
        used = {id(call) for call in recorded}
        # After the last launch that was recorded the recording just ended.
        until = max((call["ts"] for call in recorded), default=0)
        self.silent = [
            e["ts"]
            for thread in self.threads.values()
            for e in thread.events
            if e["cat"] in CALLS and is_launch(e["name"]) and id(e) not in used and e["ts"] < until
        ]
        self.pageable = {
            id(self.calls[correlation(w)])
            for w in self.work
            if w["cat"] == "gpu_memcpy" and "ageable" in w["name"] and correlation(w) in self.calls
        }
        self.profiler = [e for e in lane if any(word in e["name"] for word in PROFILERS)]
        self.flags = [(self._spanned_by(e), e in self.profiler, e) for e in lane]
        self.excess = self._first_calls()

    def _clip(self) -> None:
        """What outlasts the end of the next one on its stream, outside one launch, is cut at its start.

        From the last one backwards: an event is held to the next one as that was cut.
        """
        streams: dict[Any, list[Any]] = collections.defaultdict(list)
        for w in self.work:
            streams[w["args"]["device"], w["args"]["stream"]].append(w)
        for stream in streams.values():
            stream.sort(key=lambda w: (w["ts"], w["end"]))
            for a, b in reversed(list(itertools.pairwise(stream))):
                if b["end"] < a["end"] and (correlation(a) == 0 or correlation(a) != correlation(b)):
                    a["end"] = b["ts"]

    def _spanned_by(self, lane: dict[str, Any]) -> Any:
        """Thread of the innermost host event that spans an event of the profiler's lane; the shortest wins."""
        best = None
        for key, thread in self.threads.items():
            spanning = [e for e in thread.events if e["ts"] <= lane["ts"] and lane["end"] <= e["end"]]
            if spanning:
                # The last one in preorder that spans it, by way of what is open at its start.
                length = spanning[-1]["end"] - spanning[-1]["ts"]
                if best is None or length < best[0]:
                    best = (length, key)
        return best[1] if best else None

    def _first_calls(self) -> dict[int, float]:
        """Share of its own time by which an operator's first call exceeds the median of its later ones."""
        calls: dict[str, list[Any]] = collections.defaultdict(list)
        own: dict[int, int] = collections.defaultdict(int)
        for thread in self.threads.values():
            inside: dict[int, int] = collections.defaultdict(int)
            for e in thread.events:
                if e["up"] is not None:
                    inside[id(e["up"])] += e["end"] - e["ts"]
            for e in thread.events:
                alone = e["end"] - e["ts"] - inside[id(e)]
                holder = next((h for h in up(e) if h["cat"] not in CALLS), None)
                if holder is not None:
                    own[id(holder)] += alone
                if e["cat"] == "cpu_op" and not is_region(e["name"]):
                    calls[e["name"]].append(e)
        out = {}
        for same in calls.values():
            same.sort(key=lambda e: e["ts"])
            first, later = own[id(same[0])], [own[id(e)] for e in same[1:]]
            if len(later) >= 2:
                usual = statistics.median(later)
                if first > 3 * usual and first - usual >= 100_000:
                    out[id(same[0])] = 1 - usual / first
        return out

    # -- one instant -----------------------------------------------------------------------------------

    def instant(self, key: Any, t: int) -> tuple[str, Any]:
        """(cause, operator or None) of what a thread did at one instant."""
        e = self.threads[key].innermost(t) if key in self.threads else None
        f = self.frames[key].innermost(t) if key in self.frames else None
        flags = [mine for thread, mine, lane in self.flags if thread == key and lane["ts"] <= t < lane["end"]]
        if any(flags):
            return "profiler", None
        cause, operator = self._host_cause(e)
        if cause in ("dispatch", "compiled_overhead", "python", "no_host_event"):
            said = next((c for g in up(f) if (c := frame_context(g["name"]))), None)
            if said:
                return said, None
            if flags:
                return "first_use", None
            if f is not None and cause == "no_host_event":
                return "python", None
        return cause, operator

    def _host_cause(self, e: Any) -> tuple[str, Any]:
        if e is None:
            return "no_host_event", None
        if id(e) in self.pageable:
            return "pageable_copy", None
        if e["cat"] in CALLS and (cause := call_cause(e["name"])):
            return cause, None
        for around in up(e):
            if around["cat"] not in CALLS and (said := context(around["name"])):
                return said, None
        for around in up(e):
            if around["cat"] in CALLS:
                continue
            if is_region(around["name"]):
                return "compiled_overhead", None
            if around["cat"] == "cpu_op":
                return "dispatch", around
        return ("dispatch", None) if e["cat"] in CALLS else ("python", None)

    # -- all gaps -----------------------------------------------------------------------------------------

    def causes(self) -> dict[int, dict[str, int]]:
        out: dict[int, dict[str, int]] = {}
        for device in sorted({w["args"]["device"] for w in self.work}):
            total: dict[str, int] = collections.defaultdict(int)
            mine = sorted((w for w in self.work if w["args"]["device"] == device), key=lambda w: (w["ts"], w["end"]))
            before = None
            for w in mine:
                if before is not None and w["ts"] > before["end"]:
                    for cause, ns in self.gap(before, w):
                        total[cause] += ns
                if before is None or w["end"] >= before["end"]:
                    before = w
            out[device] = {cause: ns for cause, ns in total.items() if ns}
        return out

    def gap(self, before: dict[str, Any], w: dict[str, Any]) -> list[tuple[str, int]]:
        start, end = before["end"], w["ts"]
        call = self.calls.get(correlation(w)) if correlation(w) else None
        if any(start <= t < end for t in self.silent):
            return [("not_recorded", end - start)]
        if call is None:
            return [("unlinked", end - start)]
        if call["end"] <= start:
            if self.calls.get(correlation(before)) is call and correlation(before):
                return [("graph_internal", end - start)]
            if end - start <= SHORT:
                return [("device_turnaround", end - start)]
            covered = length([(max(p["ts"], start), min(p["end"], end)) for p in self.profiler])
            return [("profiler", covered), ("dependency", end - start - covered)]
        until = min(call["end"], end)
        return [("launch_latency", end - until), *self.late(call["pid"], call["tid"], start, until)]

    def late(self, pid: Any, tid: Any, start: int, until: int) -> list[tuple[str, int]]:
        """Every stretch between two borders of any event, judged at its first instant."""
        key = (pid, tid)
        borders = {start, until}
        for events in (
            self.threads[key].events, self.frames[key].events if key in self.frames else [],
            [f for _, _, f in self.flags],
        ):  # fmt: skip
            borders |= {t for e in events for t in (e["ts"], e["end"]) if start < t < until}
        out = []
        instants = sorted(borders)
        for a, b in itertools.pairwise(instants):
            cause, operator = self.instant(key, a)
            excess = int((b - a) * self.excess.get(id(operator), 0)) if cause == "dispatch" else 0
            out += [("first_use", excess), (cause, b - a - excess)]
        return out


def length(spans: list[tuple[int, int]]) -> int:
    covered, reached = 0, None
    for a, b in sorted(spans):
        a = a if reached is None else max(a, reached)
        if b > a:
            covered += b - a
            reached = b
    return covered
