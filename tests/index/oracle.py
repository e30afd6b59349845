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
LONG = 1_000_000

LOADERS = ("enumerate(DataLoader)", "dataloader", "load_batch")
WAITING_COLLECTIVES = ("gloo:", "mpi:")
REGIONS = ("Torch-Compiled Region", "CompiledFunction", "TorchDynamo Cache Lookup", "## Call CompiledFxGraph")
REGION_WORDS = ("CompiledFunctionBackward", "Runtime Wrapper Prologue", "Pregraph bytecode")
COMPILERS = ("(dynamo_timed)", "_compile.", "compile_fx", "entire_frame_compile", "backend_compile")
PROFILERS = ("Activity Buffer", "Buffer Flush", "Instrumentation", "Resource", "Profiler")
BEGIN, END = "cudaStreamBeginCapture", "cudaStreamEndCapture"
FULL = "Command Buffer Full"
ENGINE = "autograd::engine::"


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


def is_step(name: str) -> bool:
    return name.startswith("ProfilerStep")


def compiles(name: str) -> bool:
    return not is_region(name) and any(word in name for word in COMPILERS)


def context(name: str) -> str | None:
    """What an operator or annotation says that all inside it is for."""
    if is_region(name):
        return None
    if name.startswith(LOADERS):
        return "input_pipeline"
    return "collective" if name.startswith(WAITING_COLLECTIVES) else None


def frame_context(name: str) -> str | None:
    if "torch/utils/data/" in name:
        return "input_pipeline"
    if any(f"torch/{part}" in name for part in ("_dynamo/convert_frame", "_inductor/compile_fx", "_inductor/graph")):
        return "compile"
    return None


def wraps(name: str) -> bool:
    """A run-time wrapper of compiled code."""
    return "torch/_dynamo/eval_frame.py" in name or "_aot_autograd/runtime_wrappers.py" in name


def backward(name: str) -> bool:
    return "run_backward" in name


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
        self.host = [e for thread in self.threads.values() for e in thread.events]
        self.calls: dict[int, dict[str, Any]] = {}
        for e in self.host:
            if e["cat"] in CALLS and correlation(e):
                self.calls.setdefault(correlation(e), e)
        self._clip()
        recorded = [self.calls[correlation(w)] for w in self.work if correlation(w) in self.calls]
        self.used = {id(call) for call in recorded}
        captured = self._captures()
        # After the last launch that was recorded the recording just ended.
        until = max((call["ts"] for call in recorded), default=0)
        self.silent = [
            e["ts"]
            for e in self.host
            if e["cat"] in CALLS and is_launch(e["name"]) and id(e) not in self.used | captured and e["ts"] < until
        ]
        self.pageable = {
            id(self.calls[correlation(w)])
            for w in self.work
            if w["cat"] == "gpu_memcpy" and "ageable" in w["name"] and correlation(w) in self.calls
        }
        self.profiler = [e for e in lane if any(word in e["name"] for word in PROFILERS)]
        self.flags = [(self._spanned_by(e), e in self.profiler, e) for e in lane if e["name"] != FULL]
        self._waits([e for e in lane if e["name"] == FULL])
        self.engines = self._engines()
        self.excess = self._first_calls()
        self._window()

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

    def _captures(self) -> set[int]:
        """Launches that were captured; `captures` has the intervals by thread."""
        self.captures: dict[Any, list[tuple[int, int]]] = collections.defaultdict(list)
        captured = set()
        for key, thread in self.threads.items():
            marks = [i for i, e in enumerate(thread.events) if e["name"] in (BEGIN, END)]
            for n, i in enumerate(marks):
                e = thread.events[i]
                rest = thread.events[i + 1 : marks[n + 1] if n + 1 < len(marks) else None]
                worked = [x for x in rest if id(x) in self.used]
                if e["name"] == BEGIN and n + 1 < len(marks) and thread.events[marks[n + 1]]["name"] == END:
                    continue  # its end has it
                if e["name"] == BEGIN:
                    nothing = max(x["end"] for x in thread.events)
                    border = thread.events[marks[n + 1]]["ts"] if n + 1 < len(marks) else nothing
                    span = (e["ts"], worked[0]["ts"] if worked else border)
                elif n and thread.events[marks[n - 1]]["name"] == BEGIN:
                    span = (thread.events[marks[n - 1]]["ts"], e["end"])
                else:
                    done = [x["end"] for x in thread.events[:i] if id(x) in self.used]
                    span = (min(done[-1] if done else thread.events[0]["ts"], e["ts"]), e["end"])
                captured |= {
                    id(x) for other, t in self.threads.items() if other[0] == key[0] for x in t.events
                    if is_launch(x["name"]) and id(x) not in self.used and span[0] <= x["ts"] < span[1]
                }  # fmt: skip
                if e["name"] == END:
                    following = itertools.takewhile(lambda x: not self._launches(x) and x["name"] != BEGIN, rest)
                    made = next((x for x in following if x["name"] == "cudaGraphInstantiate"), None)
                    span = (span[0], max(span[1], made["end"])) if made else span
                self.captures[key].append(span)
        return captured

    def _launches(self, e: dict[str, Any]) -> bool:
        return id(e) in self.used or is_launch(e["name"])

    def _spanned_by(self, lane: dict[str, Any]) -> Any:
        """The innermost host event that spans an event of the profiler's lane; the shortest wins."""
        best = None
        for thread in self.threads.values():
            spanning = [e for e in thread.events if e["ts"] <= lane["ts"] and lane["end"] <= e["end"]]
            # The last one in preorder that spans it, by way of what is open at its start.
            if spanning and (best is None or length_of(spanning[-1]) < length_of(best)):
                best = spanning[-1]
        return best

    # -- waits -----------------------------------------------------------------------------------------

    def _waits(self, full: list[dict[str, Any]]) -> None:
        """Calls that waited in a full queue (`blocked`), or for another thread's allocation (`locked`)."""
        own: dict[int, list[Any]] = collections.defaultdict(list)
        for w in self.work:
            if correlation(w) in self.calls:
                own[id(self.calls[correlation(w)])].append(w)
        noted = {id(e) for e in (self._spanned_by(x) for x in full) if e is not None}
        contain = [
            e for e in self.host
            if e["name"].startswith(("cudaLaunch", "cuLaunch")) and id(e) in own
            and min(w["ts"] for w in own[id(e)]) >= e["ts"] and max(w["end"] for w in own[id(e)]) <= e["end"]
        ]  # fmt: skip
        launches = [e for e in self.host if e["name"].startswith(("cudaLaunch", "cuLaunch")) and id(e) in own]
        blocking = {id(e) for e in contain} if len(launches) >= 5 and len(contain) >= 0.9 * len(launches) else set()
        plain = [
            e for e in self.host
            if e["cat"] in CALLS and "Synchronize" not in e["name"] and e["name"] != "cudaMemcpy"
            and id(e) not in self.pageable | blocking
        ]  # fmt: skip
        suspects = set()
        for e in plain:
            works = own.get(id(e), [])
            if id(e) in noted:
                suspects.add(id(e))
            elif works and length_of(e) >= 50_000 and min(w["ts"] for w in works) >= e["end"]:
                mine = [w for w in self.work if w["args"]["device"] == works[0]["args"]["device"]]
                busy = length([(max(w["ts"], e["ts"]), min(w["end"], e["end"])) for w in mine])
                if busy >= 0.9 * length_of(e) and any(e["end"] - 30_000 <= w["end"] <= e["end"] for w in mine):
                    suspects.add(id(e))
        clear = [length_of(e) for e in plain if id(e) not in suspects]

        def usual(name: str, some: list[Any]) -> float:
            mine = [length_of(e) for e in some if e["name"] == name]
            return statistics.median(mine) if mine else 0

        free = [e for e in plain if id(e) not in suspects]
        self.blocked = set()
        for e in plain:
            if id(e) in suspects:
                if any(x["name"] == e["name"] for x in free):
                    least = int(usual(e["name"], free))
                else:
                    # The names that were looked at are those that have a suspect or a long call.
                    odd = {x["name"] for x in plain if id(x) in suspects or length_of(x) >= 100_000}
                    clear = [length_of(x) for x in free if x["name"] in odd]
                    every = [length_of(x) for x in plain if x["name"] in odd]
                    least = int(statistics.median(clear)) if clear else min(every, default=0)
                if id(e) in noted or length_of(e) >= 3 * least:
                    self.blocked.add(id(e))
        rest = [e for e in plain if id(e) not in self.blocked]
        self.locked = set()
        for e in rest:
            if call_cause(e["name"]) == "allocator" or length_of(e) < 100_000:
                continue
            if length_of(e) < 10 * int(usual(e["name"], rest)):
                continue
            held = [
                (max(x["ts"], e["ts"]), min(x["end"], e["end"])) for x in self.host
                if x["cat"] in CALLS and call_cause(x["name"]) == "allocator" and length_of(x) >= 100_000
                and x["pid"] == e["pid"] and x["tid"] != e["tid"]
            ]  # fmt: skip
            if length(held) >= 0.8 * length_of(e):
                self.locked.add(id(e))

    def _engines(self) -> set[Any]:
        out = set()
        for key, thread in self.threads.items():
            top = [e for e in thread.events if e["up"] is None and e["cat"] not in CALLS]
            operators = [e for e in top if e["cat"] == "cpu_op"]
            engine = [e for e in top if e["name"].startswith(ENGINE)]
            steps = [e for e in thread.events if is_step(e["name"])]
            if engine and len(engine) >= 0.8 * len(operators) and not steps:
                out.add(key)
        return out

    def _asks(self, key: Any) -> list[Any]:
        """The threads that may know more where one did nothing."""

        def launches(k: Any) -> bool:
            return any(e["cat"] in CALLS and is_launch(e["name"]) for e in self.threads[k].events)

        def steps(k: Any) -> int:
            return sum(is_step(e["name"]) for e in self.threads[k].events)

        mine = [k for k in self.threads if k[0] == key[0]]
        engines = [k for k in mine if k in self.engines]
        others = [k for k in mine if k not in self.engines]
        if not engines or not others:
            return []
        caller = max(others, key=lambda k: (steps(k), launches(k), len(self.threads[k].events)))
        if key in self.engines:
            return [caller]
        return sorted(engines, key=lambda k: -len(self.threads[k].events)) if key == caller else []

    # -- first use -------------------------------------------------------------------------------------

    def unit(self, e: Any) -> Any:
        """The operator, annotation, region or bare call whose own time an event's is."""
        if e["cat"] not in CALLS:
            return e
        holder = next((h for h in up(e) if h["cat"] not in CALLS), None)
        if holder is not None and (is_region(holder["name"]) or holder["cat"] == "cpu_op"):
            return holder
        return e

    def _first_calls(self) -> dict[int, float]:
        """Share of its own time by which the first call of anything exceeds the median of its later ones."""
        own: dict[int, int] = collections.defaultdict(int)
        inside: dict[int, int] = collections.defaultdict(int)
        profiled: dict[int, list[Any]] = collections.defaultdict(list)
        launched: dict[int, int] = collections.defaultdict(int)
        launching = set()
        for e in self.host:
            if e["up"] is not None:
                inside[id(e["up"])] += length_of(e)
            if id(e) in self.used or (e["cat"] in CALLS and is_launch(e["name"])):
                launching |= {id(h) for h in up(e)}
        for w in self.work:
            for h in up(self.calls.get(correlation(w)) if correlation(w) else None):
                launched[id(h)] += length_of(w)
        for e, mine, lane in self.flags:
            if mine and e is not None:
                profiled[id(e)].append((lane["ts"], lane["end"]))
        calls: dict[str, list[Any]] = collections.defaultdict(list)
        for e in self.host:
            cause = self._host_cause(e)[0]
            alone = max(0, length_of(e) - inside[id(e)] - length(profiled[id(e)]))
            if cause in ("dispatch", "compiled_overhead", "python"):
                own[id(self.unit(e))] += alone
            if self.unit(e) is e and not is_step(e["name"]):
                calls[e["name"]].append(e)
        out = {}
        for same in calls.values():
            tops = sorted((e for e in same if not any(h in same for h in up(e["up"]))), key=lambda e: e["ts"])
            nests = [[e for e in same if top in up(e)] for top in tops]
            took = [sum(own[id(e)] for e in nest) for nest in nests]
            first, later = tops[0], list(range(1, len(tops)))
            shapes = [json.dumps(t["args"].get("Input Dims")) for t in tops]
            like = [i for i in later if shapes[i] == shapes[0] != "null"]
            if not like and later:
                if shapes[0] != "null" and id(first) not in launching:
                    continue
                if launched[id(first)] > 3 * statistics.median(launched[id(tops[i])] for i in later) > 0:
                    continue
            later = like or later
            if later:
                usual = statistics.median(took[i] for i in later)
                if took[0] > (3 if len(later) > 1 else 10) * usual and took[0] - usual >= 100_000:
                    out.update({id(e): 1 - usual / took[0] for e in nests[0]})
        return out

    # -- one instant -----------------------------------------------------------------------------------

    def instant(self, key: Any, t: int) -> tuple[str, Any]:
        """(cause, whose own time it is or None) of what was done for a thread at one instant."""
        cause, unit, weak = self._alone(key, t)
        if weak:
            for other in self._asks(key):
                said, its, silent = self._alone(other, t)
                if (other in self.engines and not silent) or (other not in self.engines and said != "no_host_event"):
                    return said, its
        return cause, unit

    def _alone(self, key: Any, t: int) -> tuple[str, Any, bool]:
        e = self.threads[key].innermost(t) if key in self.threads else None
        f = self.frames[key].innermost(t) if key in self.frames else None
        flags = [
            mine for host, mine, lane in self.flags
            if host is not None and (host["pid"], host["tid"]) == key and lane["ts"] <= t < lane["end"]
        ]  # fmt: skip
        captured = any(
            a <= t < b for k, some in self.captures.items() for a, b in some
            if k == key or (key in self.engines and k[0] == key[0])
        )  # fmt: skip
        cause, unit = self._host_cause(e)
        weak = cause in ("python", "no_host_event") and (f is None or backward(f["name"])) and not flags
        if cause in ("dispatch", "compiled_overhead", "python", "no_host_event") and f is not None:
            said = next((c for g in up(f) if (c := frame_context(g["name"]))), None)
            in_file = next((g for g in up(f) if not g["name"].startswith("<")), None)
            inner = e is not None and e["cat"] not in CALLS and f["ts"] > e["ts"]
            plain = inner or cause in ("python", "no_host_event")
            if said:
                cause, weak = said, False
            elif plain:
                wrapper = in_file is not None and wraps(in_file["name"])
                cause, unit = "compiled_overhead" if wrapper else "python", unit if wrapper else None
        open_ = cause in ("dispatch", "compiled_overhead", "python", "no_host_event")
        if any(flags):
            return "profiler", None, False
        if captured and open_:
            return "graph_capture", None, False
        if flags and open_:
            return "first_use", None, False
        return cause, unit, weak and not captured

    def _host_cause(self, e: Any) -> tuple[str, Any]:
        if e is None:
            return "no_host_event", None
        unit = self.unit(e)
        if any(around["cat"] not in CALLS and compiles(around["name"]) for around in up(e)):
            return "compile", unit
        if id(e) in self.locked:
            return "allocator", unit
        if id(e) in self.pageable:
            return "pageable_copy", unit
        if id(e) in self.blocked:
            return "blocking_sync", unit
        if e["cat"] in CALLS and (cause := call_cause(e["name"])):
            return cause, unit
        for around in up(e):
            if around["cat"] not in CALLS and (said := context(around["name"])):
                return said, unit
        for around in up(e):
            if around["cat"] in CALLS:
                continue
            if is_region(around["name"]):
                return "compiled_overhead", unit
            if around["cat"] == "cpu_op":
                return "dispatch", unit
        return ("dispatch", unit) if e["cat"] in CALLS else ("python", unit)

    # -- the window and what was launched before it -----------------------------------------------------

    def _window(self) -> None:
        steps = [e for e in self.host if is_step(e["name"])]
        first = min((e["ts"] for e in steps), default=min(e["ts"] for e in [*self.host, *self.work]))
        inside = [w for w in self.work if correlation(w) in self.calls and self.calls[correlation(w)]["ts"] >= first]
        self.since = first
        self.earlier: set[int] = set()
        if not inside:
            return
        first_call = min(self.calls[correlation(w)]["ts"] for w in inside)
        for w in self.work:
            call = self.calls.get(correlation(w)) if correlation(w) else None
            lane = (w["args"]["device"], w["args"]["stream"])
            same = [x["ts"] for x in inside if (x["args"]["device"], x["args"]["stream"]) == lane]
            if (call is None and w["ts"] < min(same, default=first_call)) or (call and call["ts"] < first_call):
                self.earlier.add(id(w))

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
        if id(w) in self.earlier and end > self.since:
            return [("earlier_work", end - start)]
        if any(start <= t < end for t in self.silent):
            return [("not_recorded", end - start)]
        if call is None:
            return [("unlinked", end - start)]
        if call["end"] <= start:
            by = self.calls.get(correlation(before)) if correlation(before) else None
            if by is call:
                return [("graph_internal", end - start)]
            of_graph = by is not None and sum(self.calls.get(correlation(x)) is by for x in self.work) > 1
            alone = of_graph or before["args"]["stream"] == w["args"]["stream"]
            if end - start <= SHORT:
                return [("device_turnaround", end - start)]
            covered = length([(max(p["ts"], start), min(p["end"], end)) for p in self.profiler])
            rest = "device_turnaround" if alone and end - start <= LONG else "dependency"
            return [("profiler", covered), (rest, end - start - covered)]
        until = min(call["end"], end)
        return [("launch_latency", end - until), *self.late(call["pid"], call["tid"], start, until)]

    def late(self, pid: Any, tid: Any, start: int, until: int) -> list[tuple[str, int]]:
        """Every stretch between two borders of any event, judged at its first instant."""
        key = (pid, tid)
        borders = {start, until}
        keys = [key, *self._asks(key)]
        captures = [{"ts": a, "end": b} for some in self.captures.values() for a, b in some]
        for events in (
            *(self.threads[k].events for k in keys), *(self.frames[k].events for k in keys if k in self.frames),
            [f for _, _, f in self.flags], captures,
        ):  # fmt: skip
            borders |= {t for e in events for t in (e["ts"], e["end"]) if start < t < until}
        out = []
        instants = sorted(borders)
        for a, b in itertools.pairwise(instants):
            cause, unit = self.instant(key, a)
            used = cause in ("dispatch", "compiled_overhead", "python")
            excess = int((b - a) * self.excess.get(id(unit), 0)) if used else 0
            out += [("first_use", excess), (cause, b - a - excess)]
        return out


def length_of(e: dict[str, Any]) -> int:
    return int(e["end"] - e["ts"])


def length(spans: list[tuple[int, int]]) -> int:
    covered, reached = 0, None
    for a, b in sorted(spans):
        a = a if reached is None else max(a, reached)
        if b > a:
            covered += b - a
            reached = b
    return covered
