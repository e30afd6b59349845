"""Columns of many blocks to the events of one trace.

Everything here is a whole-column operation, except for what only odd producers write: pairs of
`B`/`E`, and the flows that link a legacy trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analyzer.events.builder import NULL, EventsBuilder
from analyzer.events.schema import Cat
from analyzer.sources.kineto import dialects, rows
from analyzer.sources.kineto.decode import OPEN
from analyzer.sources.kineto.packing import FLOAT_US, INT_US
from analyzer.sources.limits import MAX_DISTANCE_NS
from analyzer.sources.notes import Notes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Origin:
    """Text that one parsing process has interned, in its order."""

    names: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    collectives: list[str] = field(default_factory=list)
    configs: list[str] = field(default_factory=list)
    threads: list[tuple[str, str]] = field(default_factory=list)

    def learn(self, result: dict[str, Any]) -> None:
        self.names += result.pop("new_names")
        self.inputs += result.pop("new_inputs")
        self.collectives += result.pop("new_collectives")
        self.configs += result.pop("new_configs")
        self.threads += [(pid, tid) for pid, tid in result.pop("new_threads")]


def _global_ids(tables: Sequence[Sequence[Any]]) -> tuple[list[Any], list[npt.NDArray[np.int32]]]:
    """One table of all values, and for each process the positions of its own in it."""
    import numpy as np

    ids: dict[Any, int] = {}
    maps = []
    for table in tables:
        maps.append(np.fromiter((ids.setdefault(v, len(ids)) for v in table), np.int32, len(table)))
    return list(ids), maps


class _Blocks:
    """Columns over all blocks; a column's buffers are let go as it is joined."""

    def __init__(self, results: Sequence[tuple[int, dict[str, Any]]]) -> None:
        self._results = results

    def plain(self, key: str, dtype: str) -> npt.NDArray[Any]:
        import numpy as np

        pieces = [result.pop(key) for _, result in self._results]
        # Writable, and its own: `frombuffer` of bytes is neither.
        return np.frombuffer(bytearray().join(pieces), dtype)

    def interned(self, key: str, maps: Sequence[npt.NDArray[np.int32]]) -> npt.NDArray[np.int32]:
        """Positions of this process's table for those of each parsing process's; -1 stays."""
        import numpy as np

        pieces = []
        for origin, result in self._results:
            own = np.frombuffer(result.pop(key), np.int32)
            table = maps[origin]
            if own.size == 0:
                continue
            pieces.append(np.where(own < 0, np.int32(-1), table[own]) if table.size else own)
        return np.concatenate(pieces) if pieces else np.empty(0, np.int32)

    def times(self, key: str) -> Ints:
        """Whole nanoseconds."""
        import numpy as np

        pieces = []
        for _, result in self._results:
            for kind, packed in result.pop(key):
                if kind == FLOAT_US:
                    us = np.frombuffer(packed, np.float64)
                    whole = np.floor(us)
                    # Apart, so that no product is rounded twice: see `numbers.to_ns`.
                    fraction = np.rint((us - whole) * 1000.0).astype(np.int64)
                    pieces.append(whole.astype(np.int64) * 1000 + fraction)
                else:
                    ticks = np.frombuffer(packed, np.int64)
                    pieces.append(ticks * 1000 if kind == INT_US else ticks)
        return np.concatenate(pieces) if pieces else np.empty(0, np.int64)

    def listed(self, key: str) -> list[tuple[int, int, Any]]:
        """(process, first row of the block, item) of lists that few producers fill."""
        out, first = [], 0
        for origin, result in self._results:
            out += [(origin, first, item) for item in result.pop(key)]
            first += result["rows"]
        return out


def assemble(results: Sequence[tuple[int, dict[str, Any]]], origins: Sequence[Origin], notes: Notes) -> EventsBuilder:
    """The events of the blocks' results, which are consumed.

    results  (parsing process, result of `BlockParser.result`), in order of the file.
    """
    import numpy as np

    blocks = _Blocks(results)
    names, name_maps = _global_ids([o.names for o in origins])
    inputs, input_maps = _global_ids([o.inputs for o in origins])
    collectives, collective_maps = _global_ids([o.collectives for o in origins])
    configs, config_maps = _global_ids([o.configs for o in origins])
    threads, thread_maps = _global_ids([o.threads for o in origins])
    meta = _metadata(results)
    ends = blocks.listed("ends")
    flows = blocks.listed("flows")

    cat = blocks.plain("cat", "uint8")
    name = blocks.interned("name", name_maps)
    thread = blocks.interned("thread", thread_maps)
    ts = blocks.times("ts")
    dur = blocks.times("dur")

    is_call = (cat == Cat.RUNTIME) | (cat == Cat.DRIVER)
    undecided = cat == dialects.UNDECIDED
    on_device = ((cat >= Cat.KERNEL) & (cat <= Cat.MEMSET)) | undecided
    correlation = np.zeros(cat.size, np.int64)
    correlation[is_call | on_device] = blocks.plain("correlation", "int64")
    # Of operators: one entry each, in order.
    is_op = cat == Cat.OP
    own_inputs = blocks.interned("input", input_maps)
    seq = blocks.plain("seq", "int64")
    fwd_thread = blocks.plain("fwd_thread", "int64")
    op_collective = blocks.interned("collective", collective_maps)
    # Of rows that stand on a device, or may.
    work_collective = blocks.interned("work_collective", collective_maps)
    config = blocks.interned("config", config_maps)
    device = blocks.plain("device", "int64")
    stream = blocks.plain("stream", "int64")
    size = blocks.plain("bytes", "int64")

    if flows:
        _link_legacy(flows, thread_maps, thread, ts, correlation)
    if ends or (dur == OPEN).any():
        _close_pairs(ends, thread_maps, thread, ts, dur, notes)
    lanes = _lanes(meta)
    if undecided.any():
        _decide(cat, undecided, thread, name, threads, names, lanes, notes)

    memory_ts = blocks.times("memory_ts")
    memory = blocks.plain("memory", "int64").reshape(-1, 5)

    kept = (dur >= 0) & ((cat <= Cat.OVERHEAD) | ((cat >= Cat.KERNEL) & (cat <= Cat.MEMSET)))
    near, near_memory = _near(ts, kept, memory_ts, notes)
    if near is not None:
        kept &= near
    if near_memory is not None:
        memory, memory_ts = memory[near_memory], memory_ts[near_memory]
    is_device = kept & (cat >= Cat.KERNEL)
    is_host = kept & (cat <= Cat.OVERHEAD)
    host = {
        "cat": cat[is_host],
        "name": name[is_host],
        "thread": thread[is_host],
        "ts": ts[is_host],
        "dur": dur[is_host],
        "correlation": correlation[is_host],
    }
    # What operators alone were asked for.
    ops, of_op = is_host[is_op], is_op[is_host]
    for column, values in (
        ("inputs", own_inputs),
        ("collective", op_collective),
        ("seq", seq),
        ("fwd_thread", fwd_thread),
    ):
        host[column] = np.full(of_op.size, -1 if values.dtype == np.int32 else NULL, values.dtype)
        host[column][of_op] = values[ops]
    work = is_device[on_device]
    work_thread = thread[is_device]
    lane_device, lane_stream = _lane_numbers(threads, lanes)
    # A stream's own number says nothing where the lane is no stream: then it is unknown.
    device_of = np.where(
        (device[work] != NULL) & (np.abs(device[work]) < 1 << 31), device[work], lane_device[work_thread]
    )
    devices = {
        "cat": cat[is_device],
        "name": name[is_device],
        "thread": work_thread,
        "device": device_of.astype(np.int32),
        "stream": np.where(stream[work] != NULL, stream[work], lane_stream[work_thread]),
        "ts": ts[is_device],
        "dur": dur[is_device],
        "correlation": correlation[is_device],
        "config": config[work],
        "bytes": size[work],
        "collective": work_collective[work],
    }
    builder = EventsBuilder(
        names,
        threads,
        map(rows.config, configs),
        map(rows.inputs, inputs),
        map(rows.collective, collectives),
    )
    for (kind, pid, tid), text in meta.items():
        builder.lane(kind, pid, text, tid)
    builder.columns("host", host)
    builder.columns("device", devices)
    builder.columns(
        "memory",
        {
            "ts": memory_ts,
            "device_type": _small(memory[:, 0], -1),
            "device_id": _small(memory[:, 1], -1),
            "bytes": np.where(memory[:, 2] == NULL, 0, memory[:, 2]),
            "allocated": memory[:, 3].copy(),
            "reserved": memory[:, 4].copy(),
        },
    )
    return builder


# -- steps -----------------------------------------------------------------------------------


def _metadata(results: Sequence[tuple[int, dict[str, Any]]]) -> dict[tuple[str, str, str], str]:
    """(kind, pid, tid) -> text; the last one in the file counts."""
    meta: dict[tuple[str, str, str], str] = {}
    for _, result in results:
        meta.update(result.pop("meta"))
    return meta


def _lanes(meta: dict[tuple[str, str, str], str]) -> dialects.Lanes:
    process = {pid: text for (kind, pid, _), text in meta.items() if kind == "process_name"}
    thread = {(pid, tid): text for (kind, pid, tid), text in meta.items() if kind == "thread_name"}
    return dialects.Lanes(process, thread)


def _link_legacy(
    flows: list[tuple[int, int, Any]],
    maps: Sequence[npt.NDArray[np.int32]],
    thread: npt.NDArray[np.int32],
    ts: Ints,
    correlation: Ints,
) -> None:
    """Legacy autograd links an operator to its device work by a flow whose two ends stand at their
    starts. The id becomes the correlation of both, plus one, since ids start at 0, which is 'none'."""
    wanted: dict[tuple[int, int], int] = {}
    for origin, _, (_, ident, own, ns) in flows:
        wanted[int(maps[origin][own]), ns] = ident + 1
    lanes = {lane for lane, _ in wanted}
    for row in range(len(ts)):
        lane = int(thread[row])
        if lane in lanes:
            correlation[row] = wanted.get((lane, int(ts[row])), correlation[row])


def _close_pairs(
    ends: list[tuple[int, int, Any]],
    maps: Sequence[npt.NDArray[np.int32]],
    thread: npt.NDArray[np.int32],
    ts: Ints,
    dur: Ints,
    notes: Notes,
) -> None:
    """Give each `B` row the time to its `E`: the last open one of the thread, in order of the file."""
    import numpy as np

    stacks: dict[int, list[int]] = {}
    opened = np.flatnonzero(dur == OPEN)
    lonely, next_open = 0, 0
    for origin, first, (before, own, ns) in ends:
        while next_open < len(opened) and opened[next_open] < first + before:
            row = int(opened[next_open])
            stacks.setdefault(int(thread[row]), []).append(row)
            next_open += 1
        stack = stacks.get(int(maps[origin][own]))
        if not stack:
            lonely += 1
            continue
        row = stack.pop()
        if ns >= ts[row]:
            dur[row] = ns - ts[row]
    lonely += int((dur == OPEN).sum())
    if lonely:
        notes.add("unmatched-begin-end", count=lonely)


def _decide(
    cat: npt.NDArray[np.uint8],
    undecided: npt.NDArray[np.bool_],
    thread: npt.NDArray[np.int32],
    name: npt.NDArray[np.int32],
    threads: Sequence[tuple[str, str]],
    names: Sequence[str],
    lanes: dialects.Lanes,
    notes: Notes,
) -> None:
    """Judge events without a category by their lane and name."""
    import numpy as np

    rows = np.flatnonzero(undecided)
    pairs, inverse = np.unique(thread[rows].astype(np.int64) << 32 | name[rows], return_inverse=True)
    codes = np.empty(pairs.size, np.uint8)
    for i, pair in enumerate(pairs.tolist()):
        pid, tid = threads[pair >> 32]
        codes[i] = lanes.code(pid, tid, names[pair & 0xFFFFFFFF])
    cat[rows] = codes[inverse]
    unknown = int((codes[inverse] == dialects.UNDECIDED).sum())
    if unknown:
        notes.add("no-category", count=unknown)


def _near(
    ts: Ints, kept: npt.NDArray[np.bool_], memory_ts: Ints, notes: Notes
) -> tuple[npt.NDArray[np.bool_] | None, npt.NDArray[np.bool_] | None]:
    """Rows whose time is within MAX_DISTANCE_NS of the median of all; None: they all are.

    A profiler holds a few seconds or minutes, never a day: what is further off has a broken clock.
    """
    import numpy as np

    times = ts[kept] if not memory_ts.size else np.concatenate((ts[kept], memory_ts))
    if not times.size or int(times.max()) - int(times.min()) <= MAX_DISTANCE_NS:
        return None, None
    middle = np.partition(times, (times.size - 1) // 2)[(times.size - 1) // 2]
    # Differences of int64 may overflow at the far ends: compare with bounds.
    low, high = int(middle) - MAX_DISTANCE_NS, int(middle) + MAX_DISTANCE_NS
    near, near_memory = (ts >= low) & (ts <= high), (memory_ts >= low) & (memory_ts <= high)
    far = int((kept & ~near).sum()) + int((~near_memory).sum())
    if far:
        notes.add("far-timestamp", count=far)
    return near, near_memory


def _lane_numbers(threads: Sequence[tuple[str, str]], lanes: dialects.Lanes) -> tuple[Ints, Ints]:
    """Device and stream that a lane's pid and tid stand for, by position of the thread."""
    import numpy as np

    device, stream = [], []
    for pid, tid in threads:
        number = lanes.device_index(pid)
        number = dialects.last_number(pid) if number is None else number
        device.append(number if number is not None and abs(number) < 1 << 31 else 0)
        number = dialects.last_number(tid)
        stream.append(-1 if number is None else number)
    return np.array(device, np.int64), np.array(stream, np.int64)


def _small(column: Ints, otherwise: int) -> npt.NDArray[np.int32]:
    """int64 to int32, with a stand-in for what does not fit."""
    import numpy as np

    return np.where(np.abs(column + 1) < 1 << 31, column, otherwise).astype(np.int32)
