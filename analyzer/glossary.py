"""What the report's own words mean: causes of idle time, and parts of the window. `tracecli explain` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

from analyzer.index.activity import Cause
from analyzer.index.parts import OF_CAUSE, Part

WIDTH = 96

#: Why a device was idle. Each text says what it means, and after it what to look at.
CAUSES: Mapping[Cause, str] = {
    Cause.UNLINKED: """The work that ended the gap has no launch call in the trace: it was launched before the
        recording began, or its record was lost. Nothing says why the device waited.
        Look at: the trust line, for how many; record from further back, or with larger buffers.""",
    Cause.NOT_RECORDED: """Launches in the gap have no device record, so that the device may have worked: the gap is a
        hole in the recording, not idle time for certain.
        Look at: the trust line; record fewer steps, so that the profiler's buffers hold them.""",
    Cause.DEVICE_TURNAROUND: """The next work was queued in time, and the device took a moment from one to the next.
        Look at: fewer, larger kernels; a CUDA graph makes each moment shorter.""",
    Cause.GRAPH_INTERNAL: """Between two nodes of one graph launch. No launch call could have come earlier.
        Look at: the graph's dependencies; fewer, larger kernels in it.""",
    Cause.DEPENDENCY: """The next work was queued in time, on a stream that waited for an event of another.
        Look at: what the other stream did meanwhile; order the streams so that short work is not behind long.""",
    Cause.LAUNCH_LATENCY: """The launch call had returned, and the work had not started. Up to a millisecond it is the
        launch path; beyond that something held the work back that the trace does not show, and it counts as unknown.
        Look at: launches that stand out in `--only launches`.""",
    Cause.BLOCKING_SYNC: """The host stood still for the device (a synchronize, `.item()`, `nonzero`), and so launched
        nothing.
        Look at: tracecli explain blocking-sync.""",
    Cause.PAGEABLE_COPY: """The host took part in a copy of pageable memory, which blocks it.
        Look at: tracecli explain pageable-copy.""",
    Cause.ALLOCATOR: """The host was in `cudaMalloc`, `cudaFree` or `cudaHostAlloc`: the caching allocator had to ask
        the driver, which may wait for the device.
        Look at: tracecli explain allocator-churn.""",
    Cause.GRAPH_CAPTURE: """A graph was being captured or instantiated: its launches run nothing.
        Look at: tracecli explain graph-capture.""",
    Cause.FIRST_USE: """The first call of something: modules and functions are loaded, libraries and communicators
        start. It is the excess over the usual call, and happens once.
        Look at: tracecli explain cold-start; skip the first steps with the profiler's schedule.""",
    Cause.COMPILE: """Dynamo, Inductor, Triton or autotuning were at work.
        Look at: tracecli explain recompilation; warm up before recording.""",
    Cause.INPUT_PIPELINE: """The host loaded or prepared input: a DataLoader, `__getitem__`, a tokenizer, image or
        video processing.
        Look at: tracecli explain input-starvation.""",
    Cause.COLLECTIVE: """The host waited in a collective (Gloo, `Work.wait`). Issuing one is dispatch.
        Look at: the other ranks; the one that arrives last has the reason.""",
    Cause.PROFILER: """The profiler handled its own buffers.
        Look at: tracecli explain profiler-overhead.""",
    Cause.DISPATCH: """The host was inside an operator: dispatcher, shape checks, the launch call. `gaps` says which.
        Look at: tracecli explain overhead-bound.""",
    Cause.COMPILED_OVERHEAD: """The host was inside a compiled region, outside of any operator: guards, wrappers, the
        generated code itself.
        Look at: tracecli explain compile-tax.""",
    Cause.PYTHON: """The host was in Python: inside an annotation or a frame, outside of any operator.
        Look at: the annotation or frame that `gaps` names; record with stacks for the line.""",
    Cause.NO_HOST_EVENT: """Nothing was recorded of the thread that launched next.
        Look at: record with stacks, or annotate the loop (torch.profiler.record_function).""",
    Cause.EARLIER_WORK: """The device worked through what was launched before the window, and the recording has none of
        it: it was busy, only not recorded.
        Look at: tracecli explain recording-began-midflight.""",
}

#: Where the window went: what a part is, beside the causes that it is made of.
PARTS: Mapping[Part, str] = {
    Part.COMPUTE: """The device ran kernels that are no communication. Most of the window: compute-bound, and only
        faster kernels help.""",
    Part.COMMUNICATION: """Collectives ran, and no compute beside them; or the host waited in one. From one rank nobody
        can tell transfer from waiting for another rank.""",
    Part.COPIES: """Copies and fills ran, and neither compute nor communication beside them.""",
    Part.DISPATCH: """The device waited while the host went from launch to launch at its own pace. Most of the window:
        overhead-bound.""",
    Part.PAUSES: """The device waited while the host did something else than launching: garbage collection, files,
        another library, sleep. Most of the window: pause-bound.""",
    Part.INPUT: """The device waited for input to be loaded or prepared. Most of the window: input-bound.""",
    Part.WAITS: """The device waited because the host waited for it. Most of the window: sync-bound.""",
    Part.ALLOCATOR: """The device waited for memory to be allocated or freed. Most of the window: allocator-bound.""",
    Part.STARTUP: """First use, compilation, capture of graphs, and the kernels that autotuning tried. Happens once.
        Most of the window: startup-bound, and the rest should be recorded by itself.""",
    Part.DEVICE: """The device's own gaps between work that was queued in time: turnaround, graphs, dependencies.
        Counts with compute when the verdict is judged.""",
    Part.PROFILER: """The profiler's own work. Never the verdict: it is not the run's.""",
    Part.EARLIER_WORK: """The device worked through what was launched before the window. Never the verdict, and out of
        shares.""",
    Part.NOT_RECORDED: """Launches without a device record: the recording has a hole. Never the verdict.""",
    Part.UNKNOWN: """Idle time that the trace does not explain: work without its launch, and launches that started
        milliseconds late. Never the verdict.""",
}


def entry(name: str) -> str | None:
    """What a cause, a part or a verdict means; None for any other word. Spaces and hyphens do for underscores."""
    key = name.lower().replace("-", "_").replace(" ", "_")
    said = []
    for part in Part:
        if key in (part.key, _bound(part)):
            causes = [cause.key for cause, of in OF_CAUSE.items() if of is part]
            more = f"\n    Causes of idle time in it: {', '.join(causes)}." if causes else ""
            said.append(f"{part.key}: a part of the window\n    {_text(PARTS[part])}{more}")
    said += [f"{cause.key}: a cause of idle time\n    {_text(CAUSES[cause])}" for cause in Cause if key == cause.key]
    return "\n\n".join(said) or None


def words() -> tuple[str, ...]:
    """All that `entry` knows."""
    return tuple(dict.fromkeys([*(p.key for p in Part), *(c.key for c in Cause), *map(_bound, Part)]))


def _bound(part: Part) -> str:
    """The verdict that a part gives, as a key."""
    own = {
        Part.DISPATCH: "overhead", Part.PAUSES: "pause", Part.WAITS: "sync", Part.COPIES: "copy",
    }  # fmt: skip
    return f"{own.get(part, part.key)}_bound"


def _text(text: str) -> str:
    said, look, where = " ".join(text.split()).partition("Look at:")
    return "\n    ".join(line for part in (said, look + where) for line in wrap(part, WIDTH))
