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
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any

from analyzer.events.builder import NULL
from analyzer.sources.kineto import dialects, elements
from analyzer.sources.kineto.arguments import Arguments
from analyzer.sources.kineto.numbers import spell, to_id, to_ns
from analyzer.sources.kineto.packing import (
    FORMAT,
    INT_NS,
    Codes,
    Event,
    Interner,
    NotPlain,
    Threads,
    id_or_null,
    pack,
    time_kind,
)
from analyzer.sources.limits import EXACT_US, MAX_DURATION_NS

#: Duration of a `B` event that still waits for its `E`.
OPEN = -2

_MAX_DURATION_US = MAX_DURATION_NS / 1000
_IS_KEPT = bytes(int(c < 32 or c == dialects.UNDECIDED) for c in range(256))

_SIX = itemgetter("cat", "name", "pid", "tid", "ts", "dur")
_MEMORY_KEYS = ("Device Type", "Device Id", "Bytes", "Total Allocated", "Total Reserved")
_MEMORY = itemgetter(*_MEMORY_KEYS)
_META = ("process_name", "thread_name", "process_labels")


class Columns:
    """Columns of the events that were added since the last `take`.

    One lives in each process that parses, as long as it lives: text that was interned before is
    known to the reader by its position.
    """

    def __init__(self) -> None:
        self._names = Interner(str)
        self._threads = Threads()
        self._args = Arguments()
        self._codes = Codes()
        self._times_as_text = False
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
        self._memory_ts: list[tuple[str, bytes]] = []
        self._memory = bytearray()
        self._meta: dict[tuple[str, str, str], str] = {}
        self._ends: list[tuple[int, int, int]] = []  # `E` events: rows before it, thread, ns
        self._flows: list[tuple[str, int, int, int]] = []  # legacy: phase, id, thread, ns

    # -- one chunk ---------------------------------------------------------------------------

    def add(self, piece: bytes) -> None:
        """Take all events of `[events]`, or none. Raises JSONDecodeError, OtherDocument."""
        legacy = b'"cpu_to_cuda"' in piece
        if not self._times_as_text:
            if self.add_events(elements.parse(piece), legacy):
                return
            # From here on times are beyond what a double holds exactly: later chunks start there.
            self._times_as_text = True
        self.add_events(elements.parse_with_times_as_text(piece), legacy)

    def add_events(self, events: Sequence[Any], legacy: bool = False) -> bool:
        """Take parsed events. False: nothing was taken, since times among them are beyond what a double
        holds exactly; the events have to be parsed again with their times as text.

        legacy: flow events of the legacy autograd profiler may be among them, which are its links.
        """
        instants: list[Event] = []
        try:
            kinds = {e["ph"] for e in events}
            if legacy or "B" in kinds or "E" in kinds:
                raise NotPlain
            if not kinds.isdisjoint(_INSTANTS):
                instants = [e for e in events if e["ph"] in _INSTANTS and e.get("name") == "[memory]"]
                if any(map(inexact, instants)):
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
        kind, kind_dur = time_kind(ts), time_kind(dur)
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
        names = pack("i", list(map(self._names.__getitem__, name)))
        threads = pack("i", list(map(self._threads.__getitem__, zip(pid, tid, strict=True))))
        packed, packed_dur = pack(FORMAT[kind], ts), pack(FORMAT[kind_dur], dur)
        self._args.add(codes, args)
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
            kind = time_kind(times)
            if kind is None:
                raise NotPlain
            ts = pack(FORMAT[kind], times)
            rows = pack("q", [n for e in events for n in _MEMORY(e["args"])])
        except (KeyError, TypeError, struct.error, NotPlain):
            times = [to_ns(e.get("ts")) for e in events]
            self.bad_times += times.count(NULL)
            kind, ts = INT_NS, pack("q", [ns for ns in times if ns != NULL])
            args: list[Event] = [a if type(a := e.get("args")) is dict else {} for e in events]
            rows = pack(
                "q",
                [
                    id_or_null(a.get(key))
                    for ns, a in zip(times, args, strict=True)
                    if ns != NULL
                    for key in _MEMORY_KEYS
                ],
            )
        self._memory_ts.append((kind, ts))
        self._memory += rows

    def _careful(self, events: Sequence[Any]) -> bool:
        """The slow way: anything may be missing or of another type."""
        if any(type(e) is dict and inexact(e) for e in events):
            return False
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
            cat = e.get("cat")
            if cat is None or cat == "":
                code = dialects.code_without_category(e.get("pid"), name)
            else:
                code = dialects.settled(codes_of[cat if type(cat) is str else spell(cat)], e.get("pid"), name)
            if phase == "B" or _IS_KEPT[code]:
                # A dropped `B` is kept until its `E` is found, or pairs would be crossed.
                rows.append((code, names[name], thread, ns, dur, e.get("args")))
            if code == dialects.UNKNOWN:
                self.unknown += 1
        if rows:
            code_column, name_column, thread_column, ts, durs, args = zip(*rows, strict=True)
            codes = bytes(code_column)
            self._args.add(codes, args)
            self._append(
                codes,
                pack("i", name_column),
                pack("i", thread_column),
                (INT_NS, pack("q", ts)),
                (INT_NS, pack("q", durs)),
            )
        return True

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
            "memory_ts": self._memory_ts,
            "memory": bytes(self._memory),
            "meta": self._meta,
            "ends": self._ends,
            "flows": self._flows,
            "new_names": self._names.fresh(),
            **self._args.take(),
            "new_threads": [(spell(pid), spell(tid)) for pid, tid in self._threads.fresh()],
        }
        self._reset()
        return taken


_INSTANTS = frozenset("iI")


def _settle(codes: bytes, names: Sequence[str], pids: Sequence[Any]) -> bytes:
    """Categories whose meaning hangs on the name or the pid."""
    return bytes(map(dialects.settled, codes, pids, names))


def inexact(e: Event) -> bool:
    """Are times of an event beyond what a double holds exactly?"""
    ts, dur = e.get("ts"), e.get("dur")
    return (type(ts) is float and abs(ts) >= EXACT_US) or (type(dur) is float and abs(dur) >= EXACT_US)
