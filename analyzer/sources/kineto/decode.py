"""Events to columns: what a worker does with the parsed events of a block.

No Polars and no numpy here: a worker must start in milliseconds. Columns are `array` buffers; text
is interned, and only text that is new goes to the reader's process.

Every chunk of events takes the fast way first, which assumes what all well-behaved producers write
(every `X` event has its six keys, times are numbers, names are text). Where an assumption fails, an
exception says so, and the same chunk takes the careful way, which assumes nothing. Both give the
same columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any

import orjson

from analyzer.events.schema import Cat
from analyzer.sources.kineto import dialects
from analyzer.sources.kineto.numbers import NULL, spell, to_id, to_ns
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
        self._shapes = Interner()
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
        self._name = array("i")
        self._thread = array("i")
        self._ts: list[tuple[str, bytes]] = []
        self._dur: list[tuple[str, bytes]] = []
        self._correlation = array("q")
        self._shape = array("i")
        self._device = array("q")
        self._stream = array("q")
        self._config = array("i")
        self._bytes = array("q")
        self._memory_ts: list[tuple[str, bytes]] = []
        self._memory = array("q")
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
        except (KeyError, TypeError, AttributeError, OverflowError, NotPlain):
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
        kind, packed = _pack(ts)
        kind_dur, packed_dur = _pack(dur)
        if kind is None or kind_dur is None:
            return False
        if min(packed_dur) < 0 or max(packed_dur) >= _MAX_DURATION_US:
            raise NotPlain
        args = [e.get("args") for e in events]
        total, unknown = len(codes), 0
        if max(codes) > 31:
            if dialects.BY_NAME in codes or dialects.BY_PID in codes:
                codes = _settle(codes, name, pid)
            unknown = codes.count(dialects.UNKNOWN)
            keep = codes.translate(_IS_KEPT)
            codes = bytes(compress(codes, keep))
            name, pid, tid = (tuple(compress(column, keep)) for column in (name, pid, tid))
            args = list(compress(args, keep))
            packed = array(packed.typecode, compress(packed, keep))
            packed_dur = array(packed_dur.typecode, compress(packed_dur, keep))
        names = array("i", map(self._names.__getitem__, name))
        threads = array("i", map(self._threads.__getitem__, zip(pid, tid, strict=True)))
        self._arguments(codes, args)
        # From here on nothing can fail.
        self.complete += total
        self.unknown += unknown
        self._append(codes, names, threads, (kind, packed), (kind_dur, packed_dur))
        return True

    def _append(
        self,
        codes: bytes,
        names: array[int],
        threads: array[int],
        ts: tuple[str, array[Any]],
        dur: tuple[str, array[Any]],
    ) -> None:
        self.rows += len(codes)
        self._cat += codes
        self._name.extend(names)
        self._thread.extend(threads)
        self._ts.append((ts[0], ts[1].tobytes()))
        self._dur.append((dur[0], dur[1].tobytes()))

    def _arguments(self, codes: bytes, args: Sequence[Any]) -> None:
        """What is kept of `args`: correlation of calls and device work, shapes of operators, and
        device, stream, launch configuration and bytes of device work."""
        some = list(compress(args, codes.translate(_HAS_CORRELATION)))
        try:
            correlation = array("q", [a["correlation"] for a in some])
        except (KeyError, TypeError, OverflowError):
            correlation = array("q", [_first_id(a, _CORRELATION_KEYS, 0) for a in some])
        ops = list(compress(args, codes.translate(_IS_OP)))
        dumps, shapes = orjson.dumps, self._shapes
        try:
            shape = array(
                "i",
                [shapes[dumps([a["Input Dims"], a.get("Input type")])] if "Input Dims" in a else -1 for a in ops],
            )
        except (TypeError, AttributeError):
            shape = array("i", [_shapes_of(a, shapes) for a in ops])
        work = [a if type(a) is dict else {} for a in compress(args, codes.translate(_IS_DEVICE))]
        self._correlation.extend(correlation)
        self._shape.extend(shape)
        if not work:
            return
        self._device.extend([_id_or_null(a.get("device")) for a in work])
        self._stream.extend([_id_or_null(a.get("stream")) for a in work])
        configs = self._configs
        try:
            config = [configs[dumps(_CONFIG(a))] for a in work]
        except KeyError:
            config = [
                configs[key] if (key := dumps([a.get(k) for k in _CONFIG_KEYS])) != _NO_CONFIG else -1 for a in work
            ]
        self._config.extend(config)
        self._bytes.extend([_first_id(a, _BYTES_KEYS, NULL) for a in work])

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
            kind, ts = _pack([e["ts"] for e in events])
            if kind is None:
                raise NotPlain
            rows = array("q", [n for e in events for n in _MEMORY(e["args"])])
        except (KeyError, TypeError, OverflowError, NotPlain):
            times = [to_ns(e.get("ts")) for e in events]
            self.bad_times += times.count(NULL)
            kind, ts = INT_NS, array("q", [ns for ns in times if ns != NULL])
            args: list[Event] = [a if type(a := e.get("args")) is dict else {} for e in events]
            rows = array(
                "q",
                [
                    _id_or_null(a.get(key))
                    for ns, a in zip(times, args, strict=True)
                    if ns != NULL
                    for key in _MEMORY_KEYS
                ],
            )
        self._memory_ts.append((kind, ts.tobytes()))
        self._memory.extend(rows)

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
                array("i", name_column),
                array("i", thread_column),
                (INT_NS, array("q", ts)),
                (INT_NS, array("q", durs)),
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
            "name": self._name.tobytes(),
            "thread": self._thread.tobytes(),
            "ts": self._ts,
            "dur": self._dur,
            "correlation": self._correlation.tobytes(),
            "shape": self._shape.tobytes(),
            "device": self._device.tobytes(),
            "stream": self._stream.tobytes(),
            "config": self._config.tobytes(),
            "bytes": self._bytes.tobytes(),
            "memory_ts": self._memory_ts,
            "memory": self._memory.tobytes(),
            "meta": self._meta,
            "ends": self._ends,
            "flows": self._flows,
            "new_names": self._names.fresh(),
            "new_shapes": [text.decode() for text in self._shapes.fresh()],
            "new_configs": [text.decode() for text in self._configs.fresh()],
            "new_threads": [(spell(pid), spell(tid)) for pid, tid in self._threads.fresh()],
        }
        self._reset()
        return taken


_INSTANTS = frozenset("iI")


def _pack(values: Sequence[Any]) -> tuple[Any, array[Any]]:
    """Times in microseconds as an array, with how they are packed; (None, empty) where doubles
    would not be exact. Raises TypeError where a value is no number."""
    packed: array[Any] = array("d", values)
    low, high = min(packed), max(packed)
    if low > -EXACT_US and high < EXACT_US:
        return FLOAT_US, packed
    try:
        packed = array("q", values)
    except TypeError:  # floats among them
        return None, packed
    if min(packed) < -MAX_US or max(packed) > MAX_US:
        raise NotPlain
    return INT_US, packed


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


def _shapes_of(args: Any, shapes: Interner) -> int:
    if type(args) is dict and "Input Dims" in args:
        return shapes[orjson.dumps([args["Input Dims"], args.get("Input type")])]
    return -1
