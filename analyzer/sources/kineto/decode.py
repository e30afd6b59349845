"""Events to columns: what a worker does with the parsed events of a block.

No Polars and no numpy here: a worker must start in milliseconds. Columns are packed bytes (`struct`
packs a list twice as fast as `array` takes it); text is interned, and only text that is new goes to the
reader's process.

Every chunk of events takes the fast way first, which assumes what all well-behaved producers write
(every `X` event has its six keys, times are numbers, names are text). Where an assumption fails, an
exception says so, and the same chunk takes the careful way, which assumes nothing. Both give the
same columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any

import orjson

from analyzer.events.builder import NULL
from analyzer.events.schema import Cat
from analyzer.sources.kineto import dialects
from analyzer.sources.kineto.numbers import spell, to_id, to_ns
from analyzer.sources.limits import EXACT_US, MAX_DURATION_NS, MAX_US

Event = dict[str, Any]

#: How times are packed: microseconds as double, microseconds as int64, nanoseconds as int64.
FLOAT_US, INT_US, INT_NS = "d", "u", "n"

#: Duration of a `B` event that still waits for its `E`.
OPEN = -2

_MAX_DURATION_US = MAX_DURATION_NS / 1000
_CALL_OR_DEVICE = bytes(int(c in (Cat.RUNTIME, Cat.DRIVER) or 16 <= c <= 18) for c in range(256))
_IS_DEVICE = bytes(int(16 <= c <= 18 or c == dialects.UNDECIDED) for c in range(256))
_IS_OP = bytes(int(c == Cat.OP) for c in range(256))
_IS_KEPT = bytes(int(c < 32 or c == dialects.UNDECIDED) for c in range(256))
_HAS_CORRELATION = bytes(int(bool(_CALL_OR_DEVICE[c]) or c == dialects.UNDECIDED) for c in range(256))

_SIX = itemgetter("cat", "name", "pid", "tid", "ts", "dur")
_MEMORY_KEYS = ("Device Type", "Device Id", "Bytes", "Total Allocated", "Total Reserved")
_MEMORY = itemgetter(*_MEMORY_KEYS)
_CONFIG_KEYS = (
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "blocks per SM",
    "warps per SM",
    "est. achieved occupancy %",
)
_CONFIG = itemgetter(*_CONFIG_KEYS)
_NO_CONFIG = orjson.dumps([None] * len(_CONFIG_KEYS))
_CORRELATION_KEYS = ("correlation", "correlation_id", "connection_id")
_BYTES_KEYS = ("bytes", "size")
#: In the order of `schema.INPUTS`.
_INPUT_KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
#: In the order of `schema.COLLECTIVES`.
_COLLECTIVE_KEYS = (
    "Collective name",
    "Process Group Name",
    "Process Group Description",
    "Group size",
    "Process Group Ranks",
    "Global rank start",
    "Global rank stride",
    "Rank",
    "Src Rank",
    "Dst Rank",
    "Seq",
    "Comms Id",
    "Is asynchronized op",
    "dtype",
    "In msg nelems",
    "Out msg nelems",
    "In split size",
    "Out split size",
)
_META = ("process_name", "thread_name", "process_labels")


class OtherDocument(Exception):
    """An element that holds events itself: it has lost its end, or another document begins in it."""


def holds_events(value: Any) -> bool:
    """Does a value inside an element hold what looks like an event?"""
    if type(value) is list:
        return any(map(holds_events, value))
    if type(value) is not dict:
        return False
    return ("ph" in value and ("pid" in value or "ts" in value)) or any(map(holds_events, value.values()))


class NotPlain(Exception):
    """A value that the fast way does not take."""


class Interner(dict[Any, int]):
    """Value -> position; positions are given in order of first sight. `fresh` is what is new."""

    def __init__(self, check: type | None = None) -> None:
        super().__init__()
        self._check = check
        self._new: list[Any] = []

    def __missing__(self, key: Any) -> int:
        if self._check is not None and type(key) is not self._check:
            raise NotPlain
        position = self[key] = len(self)
        self._new.append(key)
        return position

    def fresh(self) -> list[Any]:
        """Keys added since the last call, in order."""
        new, self._new = self._new, []
        return new


class _Threads(Interner):
    def __missing__(self, key: tuple[Any, Any]) -> int:
        for part in key:
            if type(part) is not int and type(part) is not str:
                raise NotPlain
        return super().__missing__(key)


class _Codes(dict[Any, int]):
    """Category -> code; a category that is not known is remembered by name."""

    def __init__(self) -> None:
        super().__init__(dialects.CODES)
        self.unknown: dict[str, None] = {}

    def __missing__(self, key: Any) -> int:
        if type(key) is not str:
            raise NotPlain
        if len(self.unknown) < 64:
            self.unknown[key] = None
        return dialects.UNKNOWN


class Columns:
    """Columns of the events that were added since the last `take`.

    One lives in each process that parses, as long as it lives: text that was interned before is
    known to the reader by its position.
    """

    def __init__(self) -> None:
        self._names = Interner(str)
        self._inputs = Interner()
        self._collectives = Interner()
        self._configs = Interner()
        self._threads = _Threads()
        self._codes = _Codes()
        self._reset()

    def _reset(self) -> None:
        self.elements = 0  # of the event list, whatever they are
        self.with_phase = 0  # elements that have a `ph`: tells a trace from another list
        self.complete = 0
        self.bad_durations = 0
        self.bad_times = 0
        self.unknown = 0
        self._codes.unknown.clear()
        self.rows = 0
        self._cat = bytearray()
        self._name = bytearray()
        self._thread = bytearray()
        self._ts: list[tuple[str, bytes]] = []
        self._dur: list[tuple[str, bytes]] = []
        self._correlation = bytearray()
        self._input = bytearray()
        self._seq = bytearray()
        self._fwd_thread = bytearray()
        self._collective = bytearray()  # of operators
        self._work_collective = bytearray()
        self._device = bytearray()
        self._stream = bytearray()
        self._config = bytearray()
        self._bytes = bytearray()
        self._memory_ts: list[tuple[str, bytes]] = []
        self._memory = bytearray()
        self._meta: dict[tuple[str, str, str], str] = {}
        self._ends: list[tuple[int, int, int]] = []  # `E` events: rows before it, thread, ns
        self._flows: list[tuple[str, int, int, int]] = []  # legacy: phase, id, thread, ns

    # -- one chunk ---------------------------------------------------------------------------

    def add(self, events: Sequence[Any], legacy: bool = False) -> bool:
        """Take the events of a chunk. False: nothing was taken, since times among them are beyond
        what a double holds exactly; `events` have to be parsed again with their times as text.

        Raises OtherDocument.

        legacy: flow events of the legacy autograd profiler may be among them, which are its links.
        """
        instants: list[Event] = []
        try:
            kinds = {e["ph"] for e in events}
            if legacy or "B" in kinds or "E" in kinds:
                raise NotPlain
            if not kinds.isdisjoint(_INSTANTS):
                instants = [e for e in events if e["ph"] in _INSTANTS and e.get("name") == "[memory]"]
                if any(map(_inexact, instants)):
                    return False
            complete = events if len(kinds) == 1 and "X" in kinds else [e for e in events if e["ph"] == "X"]
            if not self._plain(complete):
                return False
        except (KeyError, TypeError, AttributeError, OverflowError, struct.error, NotPlain):
            return self._careful(events)
        self.elements += len(events)
        self.with_phase += len(events)
        if "M" in kinds:
            self._metadata(e for e in events if e["ph"] == "M")
        self._instants(instants)
        return True

    def _plain(self, events: Sequence[Event]) -> bool:
        """The fast way, for `X` events that are as they should be."""
        if not events:
            return True
        cat, name, pid, tid, ts, dur = zip(*map(_SIX, events), strict=True)
        codes = bytes(map(self._codes.__getitem__, cat))
        kind, kind_dur = _time_kind(ts), _time_kind(dur)
        if kind is None or kind_dur is None:
            return False
        if min(dur) < 0 or max(dur) >= _MAX_DURATION_US:
            raise NotPlain
        args = [e.get("args") for e in events]
        total, unknown = len(codes), 0
        if max(codes) > 31:
            if dialects.BY_NAME in codes or dialects.BY_PID in codes:
                codes = _settle(codes, name, pid)
            unknown = codes.count(dialects.UNKNOWN)
            keep = codes.translate(_IS_KEPT)
            codes = bytes(compress(codes, keep))
            name, pid, tid, ts, dur = (tuple(compress(column, keep)) for column in (name, pid, tid, ts, dur))
            args = list(compress(args, keep))
        names = _pack("i", list(map(self._names.__getitem__, name)))
        threads = _pack("i", list(map(self._threads.__getitem__, zip(pid, tid, strict=True))))
        packed, packed_dur = _pack(_FORMAT[kind], ts), _pack(_FORMAT[kind_dur], dur)
        self._arguments(codes, args)
        # From here on nothing can fail.
        self.complete += total
        self.unknown += unknown
        self._append(codes, names, threads, (kind, packed), (kind_dur, packed_dur))
        return True

    def _append(
        self,
        codes: bytes,
        names: bytes,
        threads: bytes,
        ts: tuple[str, bytes],
        dur: tuple[str, bytes],
    ) -> None:
        self.rows += len(codes)
        self._cat += codes
        self._name += names
        self._thread += threads
        self._ts.append(ts)
        self._dur.append(dur)

    def _arguments(self, codes: bytes, args: Sequence[Any]) -> None:
        """What is kept of `args`: correlation of calls and device work, inputs and sequence of operators,
        collectives, and device, stream, launch configuration and bytes of device work."""
        some = list(compress(args, codes.translate(_HAS_CORRELATION)))
        try:
            correlation = _pack("q", [a["correlation"] for a in some])
        except (KeyError, TypeError, struct.error):
            correlation = _pack("q", [_first_id(a, _CORRELATION_KEYS, 0) for a in some])
        ops = list(compress(args, codes.translate(_IS_OP)))
        if not {*map(type, ops)} <= {dict}:
            ops = [a if type(a) is dict else {} for a in ops]
        self._correlation += correlation
        self._input += _interned(ops, _INPUT_KEYS, self._inputs)
        self._seq += _ids(ops, "Sequence number")
        self._fwd_thread += _ids(ops, "Fwd thread id")
        self._collective += _interned(ops, _COLLECTIVE_KEYS, self._collectives)
        work = [a if type(a) is dict else {} for a in compress(args, codes.translate(_IS_DEVICE))]
        if not work:
            return
        self._work_collective += _interned(work, _COLLECTIVE_KEYS, self._collectives)
        self._device += _ids(work, "device")
        self._stream += _ids(work, "stream")
        self._config += _interned_configs(work, self._configs)
        self._bytes += _pack("q", [_first_id(a, _BYTES_KEYS, NULL) for a in work])

    def _metadata(self, events: Iterable[Event]) -> None:
        """Names and labels of processes and threads; the last one written counts."""
        meta = self._meta
        for e in events:
            kind = e.get("name")
            if kind not in _META:
                continue
            args = e.get("args")
            value = args.get("labels" if kind == "process_labels" else "name") if type(args) is dict else None
            if type(value) is str:
                tid = spell(e.get("tid")) if kind == "thread_name" else ""
                meta[kind, spell(e.get("pid")), tid] = value

    def _instants(self, events: Sequence[Event]) -> None:
        """Memory instants."""
        if not events:
            return
        try:
            times = [e["ts"] for e in events]
            kind = _time_kind(times)
            if kind is None:
                raise NotPlain
            ts = _pack(_FORMAT[kind], times)
            rows = _pack("q", [n for e in events for n in _MEMORY(e["args"])])
        except (KeyError, TypeError, struct.error, NotPlain):
            times = [to_ns(e.get("ts")) for e in events]
            self.bad_times += times.count(NULL)
            kind, ts = INT_NS, _pack("q", [ns for ns in times if ns != NULL])
            args: list[Event] = [a if type(a := e.get("args")) is dict else {} for e in events]
            rows = _pack(
                "q",
                [
                    _id_or_null(a.get(key))
                    for ns, a in zip(times, args, strict=True)
                    if ns != NULL
                    for key in _MEMORY_KEYS
                ],
            )
        self._memory_ts.append((kind, ts))
        self._memory += rows

    def _careful(self, events: Sequence[Any]) -> bool:
        """The slow way: anything may be missing or of another type."""
        if any(type(e) is dict and _inexact(e) for e in events):
            return False
        if any(type(e) is list and holds_events(e) for e in events):
            raise OtherDocument
        rows: list[tuple[int, int, int, int, int, Any]] = []
        codes_of, names, threads = self._codes, self._names, self._threads
        for e in events:
            self.elements += 1
            if type(e) is not dict or "ph" not in e:
                continue
            self.with_phase += 1
            phase = e["ph"]
            if phase == "M":
                self._metadata((e,))
                continue
            if phase in ("i", "I") and e.get("name") == "[memory]":
                self._instants((e,))
                continue
            legacy_flow = phase in ("s", "f") and e.get("cat") == "cpu_to_cuda"
            if phase not in ("X", "B", "E") and not legacy_flow:
                continue
            thread = threads[spell(e.get("pid")), spell(e.get("tid"))]
            ns = to_ns(e.get("ts"))
            if legacy_flow:
                ident = to_id(e.get("id"))
                if NULL not in (ident, ns):
                    self._flows.append((phase, ident, thread, ns))
                continue
            if ns == NULL:
                self.bad_times += 1
                continue
            if phase == "E":
                self._ends.append((self.rows + len(rows), thread, ns))
                continue
            dur = OPEN
            if phase == "X":
                dur = to_ns(e.get("dur"))
                if dur < 0 or dur >= MAX_DURATION_NS:
                    self.bad_durations += 1
                    continue
                self.complete += 1
            name = e.get("name")
            name = name if type(name) is str else spell(name)
            code = self._code(e, name, codes_of)
            if phase == "B" or _IS_KEPT[code]:
                # A dropped `B` is kept until its `E` is found, or pairs would be crossed.
                rows.append((code, names[name], thread, ns, dur, e.get("args")))
            if code == dialects.UNKNOWN:
                self.unknown += 1
        if rows:
            code_column, name_column, thread_column, ts, durs, args = zip(*rows, strict=True)
            codes = bytes(code_column)
            self._arguments(codes, args)
            self._append(
                codes,
                _pack("i", name_column),
                _pack("i", thread_column),
                (INT_NS, _pack("q", ts)),
                (INT_NS, _pack("q", durs)),
            )
        return True

    @staticmethod
    def _code(e: Event, name: str, codes: _Codes) -> int:
        cat = e.get("cat")
        if cat is None or cat == "":
            return dialects.code_without_category(e.get("pid"), name)
        code = codes[cat if type(cat) is str else spell(cat)]
        if code == dialects.BY_NAME:
            return dialects.code_by_name(name)
        if code == dialects.BY_PID:
            return dialects.code_by_pid(e.get("pid"), name)
        return code

    # -- a block -----------------------------------------------------------------------------

    def take(self) -> dict[str, Any]:
        """Everything since the last call, as plain values that `marshal` takes; starts afresh."""
        taken = {
            "elements": self.elements,
            "with_phase": self.with_phase,
            "complete": self.complete,
            "bad_durations": self.bad_durations,
            "bad_times": self.bad_times,
            "unknown": self.unknown,
            "unknown_names": list(self._codes.unknown),
            "rows": self.rows,
            "cat": bytes(self._cat),
            "name": bytes(self._name),
            "thread": bytes(self._thread),
            "ts": self._ts,
            "dur": self._dur,
            "correlation": bytes(self._correlation),
            "input": bytes(self._input),
            "seq": bytes(self._seq),
            "fwd_thread": bytes(self._fwd_thread),
            "collective": bytes(self._collective),
            "work_collective": bytes(self._work_collective),
            "device": bytes(self._device),
            "stream": bytes(self._stream),
            "config": bytes(self._config),
            "bytes": bytes(self._bytes),
            "memory_ts": self._memory_ts,
            "memory": bytes(self._memory),
            "meta": self._meta,
            "ends": self._ends,
            "flows": self._flows,
            "new_names": self._names.fresh(),
            "new_inputs": [text.decode() for text in self._inputs.fresh()],
            "new_collectives": [text.decode() for text in self._collectives.fresh()],
            "new_configs": [text.decode() for text in self._configs.fresh()],
            "new_threads": [(spell(pid), spell(tid)) for pid, tid in self._threads.fresh()],
        }
        self._reset()
        return taken


_INSTANTS = frozenset("iI")


#: How times of a kind are packed.
_FORMAT = {FLOAT_US: "d", INT_US: "q", INT_NS: "q"}


def _pack(code: str, values: Sequence[Any]) -> bytes:
    """Raises struct.error where a value is no number of that type."""
    return struct.pack(f"{len(values)}{code}", *values)


def _time_kind(values: Sequence[Any]) -> str | None:
    """How to pack times in microseconds; None where doubles would not be exact. Raises TypeError where
    a value is no number, NotPlain where one is beyond all bounds."""
    low, high = min(values), max(values)
    if low > -EXACT_US and high < EXACT_US:
        return FLOAT_US
    if low < -MAX_US or high > MAX_US:
        raise NotPlain
    return None if float in map(type, values) else INT_US


def _inexact(e: Event) -> bool:
    ts, dur = e.get("ts"), e.get("dur")
    return (type(ts) is float and abs(ts) >= EXACT_US) or (type(dur) is float and abs(dur) >= EXACT_US)


def _settle(codes: bytes, names: Sequence[str], pids: Sequence[Any]) -> bytes:
    """Categories whose meaning hangs on the name or the pid."""
    by: dict[int, Callable[[Any, str], int]] = {
        dialects.BY_NAME: lambda _, name: dialects.code_by_name(name),
        dialects.BY_PID: dialects.code_by_pid,
    }
    return bytes(
        by[code](pid, name) if code in by else code for code, name, pid in zip(codes, names, pids, strict=True)
    )


def _id_or_null(value: Any) -> int:
    if type(value) is int and -(1 << 63) < value < 1 << 63:
        return value
    return to_id(value)


def _first_id(args: Any, keys: tuple[str, ...], default: int) -> int:
    if type(args) is dict:
        for key in keys:
            if key in args:
                value = _id_or_null(args[key])
                return default if value == NULL else value
    return default


def _interned(args: Sequence[Event], keys: tuple[str, ...], table: Interner) -> bytes:
    """Positions in `table` of the values of `keys`; -1 where the first key is not there."""
    first, dumps = keys[0], orjson.dumps
    if not [1 for a in args if first in a]:
        return b"\xff" * 4 * len(args)
    try:
        return _pack("i", [table[dumps(tuple(map(a.get, keys)))] if first in a else -1 for a in args])
    except TypeError:
        return _pack("i", [table[_dumped(a, keys)] if first in a else -1 for a in args])


def _interned_configs(args: Sequence[Event], table: Interner) -> bytes:
    dumps = orjson.dumps
    try:
        return _pack("i", [table[dumps(_CONFIG(a))] for a in args])
    except (KeyError, TypeError):
        return _pack("i", [table[key] if (key := _dumped(a, _CONFIG_KEYS)) != _NO_CONFIG else -1 for a in args])


def _dumped(a: Event, keys: tuple[str, ...]) -> bytes:
    """The values of `keys` as text; nested deeper than can be written, they are none."""
    try:
        return orjson.dumps([a.get(key) for key in keys])
    except TypeError:
        return orjson.dumps([None] * len(keys))


def _ids(args: Sequence[Event], key: str) -> bytes:
    """Ids as int64; NULL where there is none."""
    try:
        return _pack("q", [a.get(key, NULL) for a in args])
    except (TypeError, struct.error):
        return _pack("q", [_id_or_null(a.get(key)) for a in args])
