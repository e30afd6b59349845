"""Reads a trace: bytes of any provenance to typed frames.

The document is walked from the outside (`outer`) up to a list of events; the list is read in blocks
(`block`), in this process or in workers (`workers`); their columns become frames (`assembly`).
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from analyzer.errors import TraceError
from analyzer.events.schema import Trace
from analyzer.sources import sniff
from analyzer.sources.kineto import dialects, envelope, pool
from analyzer.sources.kineto.assembly import Origin, assemble
from analyzer.sources.kineto.block import CLOSED, COMMA, HOPELESS, MORE, START, STOPPED, BlockParser
from analyzer.sources.kineto.header import make_header, producer
from analyzer.sources.kineto.parallel import read_blocks
from analyzer.sources.limits import BLOCK, CHUNK, HEAD, MAX_DAMAGE, MAX_ELEMENT, MAX_EVENTS, SMALL
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Source, Window

#: How many times smaller a packed trace is, when it comes to whether workers are worth their start.
_PACKED = 16


def read(
    source: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    strict: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> Trace:
    """Read a trace from a path, or from standard input ("-"); plain or gzip, whatever its name.

    jobs      processes that parse beside this one; None: as many as the machine has cores for. Small
              files are read in this process, and so is everything with `jobs=1`.
    strict    raise instead of repairing anything.
    progress  called with (bytes read from the file, its size or None).

    Damage is repaired or left out, and told in `Trace.warnings`. Raises TraceError where the input
    cannot be opened, is no trace, or passes a limit.
    """
    notes = Notes()
    path = os.fspath(source)
    with _no_gc(), Source(path, notes, progress) as text:
        reading = _Reading(text, notes, jobs, strict)
        try:
            return reading.run()
        finally:
            reading.close()


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _import_frames() -> None:
    """Import what builds the frames while workers parse."""
    import numpy  # noqa: F401
    import polars  # noqa: F401


@contextmanager
def _no_gc() -> Iterator[None]:
    """No cycle collection while millions of short-lived objects come and go."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(slots=True)
class _List:
    """One list of events: how deep it lies, what its blocks gave, how it ended."""

    depth: int
    byte: int
    lines: bool  # one event a line: no brackets, no commas
    results: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    how: int = MORE
    state: int = START
    last: int = -1


class _Reading:
    """One run of `read`."""

    def __init__(
        self,
        source: Source,
        notes: Notes,
        jobs: int | None,
        strict: bool,
        block: int = BLOCK,
        chunk: int = CHUNK,
        small: int = SMALL,
        head: int = HEAD,
    ) -> None:
        self.source = source
        self.notes = notes
        self.strict = strict
        self.workers = _cores() if jobs is None else jobs
        self.pool: pool.Pool | None = None
        self.block = block
        self.small = small
        self.head = head
        self.parser = BlockParser(chunk)
        self.origins = [Origin()]
        self.lists: list[_List] = []
        self.window = Window(source)
        self.truncated = False

    def run(self) -> Trace:
        self.window.more(self.head)
        sniff.check_head(self.window.text[:4096], self.source.path)
        walk = envelope.Outer(self.window, self.notes)
        self._document(walk)
        lists = self._choose(walk)
        return self._trace(walk, lists)

    # -- the document ------------------------------------------------------------------------

    def _document(self, walk: envelope.Outer) -> None:
        while True:
            found = walk.walk()
            if found in (envelope.END, envelope.GIVEN_UP):
                self._rest(tell=found == envelope.END)
                return
            if found == envelope.CUT:
                self.truncated = True
                return
            if found == envelope.LIST:
                events = _List(walk.depth, self.window.position - 1, walk.lines)
                self.lists.append(events)
            else:
                events = self.lists[-1]
                events.how, events.state = MORE, COMMA
            self._read_list(events)
            if self.strict:
                self._refuse_repairs()
            if events.how == CLOSED:
                if events.depth == 0:
                    self._rest()
                    return
                continue
            if events.how == STOPPED and events.lines:
                return
            if events.how == STOPPED and events.depth == 0:
                self.notes.add("no-closing-bracket", self.window.position)
            else:
                self.truncated = True
            return

    def _rest(self, tell: bool = True) -> None:
        """Behind the document: only white space is expected; read to the end, to know the size."""
        window = self.window
        found = not tell
        while True:
            rest = window.text[window.at :].lstrip(b" \t\r\n")
            if rest and not found:
                found = True
                self.notes.add("extra-data", window.offset + window.end - len(rest))
            window.at = window.end
            if window.final:
                return
            window.more(self.block)

    def _read_list(self, events: _List) -> None:
        """Read the list up to its end, or the file's; workers and this process take turns."""
        window = self.window
        while True:
            done = self.parser.parse(window.text, window.at, window.end, window.offset, events.state, window.final)
            self._absorb(events, 0, self.parser.result(done))
            window.at = done.end
            if events.how != MORE:
                return
            left = window.end - window.at
            if left > MAX_ELEMENT:
                raise TraceError(
                    f"a single event at byte {window.position:,} is larger than {MAX_ELEMENT >> 20} MB",
                    f"{self.source.path}, byte {window.position}",
                    "No profiler writes such: the file is damaged there, or no trace.",
                )
            if left <= self.block // 4 and self._has_workers():
                self._read_with_workers(events)
                if events.how != MORE:
                    return
            window.more(min(max(self.block, left), MAX_ELEMENT + 1 - left))

    def _has_workers(self) -> bool:
        """Start the workers once it is certain that the text is worth it."""
        source = self.source
        if self.pool is not None:
            return True
        if self.workers < 2 or not pool.can_start():
            return False
        if source.size is not None:
            small = self.small if source.format == "json" else self.small // _PACKED
            if source.size <= small:
                return False
        elif source.offset <= self.small:
            return False
        try:
            self.pool = pool.Pool(self.workers, self.block, self.parser.chunk)
        except OSError:
            self.workers = 1  # no memory to share, no more processes: one will do
            return False
        self.origins += [Origin() for _ in range(len(self.pool))]
        threading.Thread(target=_import_frames, name="tracecli-imports", daemon=True).start()
        return True

    def _read_with_workers(self, events: _List) -> None:
        assert self.pool is not None
        self.window.give_back()
        first = len(self.origins) - len(self.pool)
        kept = read_blocks(
            self.source,
            self.pool,
            self.parser.borders,
            events.state,
            lambda worker, result: self._absorb(events, first + worker, result),
            lambda worker, result: self.origins[first + worker].learn(result),
        )
        if not kept:
            self.close()
            self.workers = 1
        self.window.give_back()

    def close(self) -> None:
        if self.pool is not None:
            self.pool.close()
            self.pool = None

    def _absorb(self, events: _List, origin: int, result: dict[str, Any]) -> None:
        """Take the result of a block."""
        self.origins[origin].learn(result)
        for code, (byte, times) in result.pop("notes").items():
            if not (events.lines and code == "missing-comma"):
                self.notes.add(code, byte, times)
        events.how = result.pop("how")
        events.state = result.pop("state")
        if result["last"] >= 0:
            events.last = result["last"]
        events.results.append((origin, result))
        if events.how == HOPELESS or self.notes.count("damaged-event") > MAX_DAMAGE:
            raise TraceError(
                f"damaged beyond use: more than {MAX_DAMAGE:,} stretches of it cannot be read",
                self.source.path,
                "Did several processes write this file at once? Record again, to a file for each rank.",
            )

    # -- after the last byte -----------------------------------------------------------------

    def _choose(self, walk: envelope.Outer) -> list[_List]:
        """The lists that count: those that lie least deep."""
        if not self.lists:
            if self.truncated:
                size = self.source.offset
                raise TraceError(
                    f"the file ends at byte {size:,}, before any event",
                    self.source.path,
                    "Was the run that wrote it stopped, or the disk full?",
                )
            raise sniff.no_event_list(self.source.path, walk.keys)
        depth = min(events.depth for events in self.lists)
        chosen = [events for events in self.lists if events.depth == depth]
        if depth > 1:
            self.notes.add("nested-event-list", chosen[0].byte)
        if len(chosen) > 1:
            self.notes.add("repeated-event-list", chosen[1].byte, len(chosen) - 1)
        aside = len(self.lists) - len(chosen)
        if aside:
            first = next(events for events in self.lists if events.depth != depth)
            self.notes.add("ignored-event-list", first.byte, aside)
        return chosen

    def _trace(self, walk: envelope.Outer, lists: list[_List]) -> Trace:
        notes = self.notes
        results = [result for events in lists for result in events.results]
        total = {
            key: sum(result[key] for _, result in results)
            for key in (
                "elements",
                "with_phase",
                "complete",
                "damaged",
                "bad_durations",
                "bad_times",
                "unknown",
                "rows",
            )
        }
        if total["elements"] and not total["with_phase"] and lists[0].depth == 0:
            raise sniff.no_events_of_trace(self.source.path, total["elements"])
        if total["rows"] > MAX_EVENTS:
            raise TraceError(f"more than {MAX_EVENTS:,} events", self.source.path, "Split the recording.")
        unknown = sorted({name for _, result in results for name in result["unknown_names"]})
        for code, key in (("bad-duration", "bad_durations"), ("bad-timestamp", "bad_times")):
            if total[key]:
                notes.add(code, count=total[key])
        if total["unknown"]:
            notes.add("unknown-category", count=total["unknown"], text=", ".join(map(repr, unknown[:8])))
        if self.truncated:
            self._tell_truncation(lists[-1])
        if self.strict:
            self._refuse_repairs()
        builder = assemble(results, self.origins, notes)
        trace = builder.build(
            path=self.source.path,
            size=self.source.offset,
            form=self._format(lists[0]),
            events=total["elements"],
            complete_events=total["complete"],
            damaged_events=total["damaged"],
            truncated_at_byte=self.source.offset if self.truncated else None,
            header=make_header(walk.values),
        )
        if not (len(trace.host) or len(trace.device) or len(trace.memory)):
            notes.add("no-events")
        header = replace(trace.header, producer=producer(walk.values, self._hints(trace)))
        return replace(trace, header=header, warnings=notes.warnings())

    def _format(self, events: _List) -> str:
        return self.source.format + (" lines" if events.lines else " array" if events.depth == 0 else "")

    def _tell_truncation(self, last: _List) -> None:
        size = self.source.offset
        text = f"the file is cut: it stops at byte {size:,}"
        if last.how == CLOSED:
            text += ", behind the last event"
        elif last.last >= 0:
            text += f"; the last complete event ends at byte {last.last:,}"
        self.notes.add("truncated", size, text=text)

    def _refuse_repairs(self) -> None:
        repair = self.notes.first_repair()
        if repair is None:
            return
        where = self.source.path if repair.byte is None else f"{self.source.path}, byte {repair.byte}"
        raise TraceError(
            f"strict reading: {repair.message} ({repair.code})",
            where,
            "Without --strict, what is damaged is repaired or left out, and reported.",
        )

    @staticmethod
    def _hints(trace: Trace) -> set[str]:
        """What the events say of the program that wrote them; see `header.producer`."""
        hints: set[str] = set()
        threads = trace.threads
        for pid, name, label in threads.select("pid", "process_name", "process_labels").iter_rows():
            if dialects.is_legacy_pid(pid):
                hints.add("legacy")
            if name in ("Ascend Hardware", "CANN"):
                hints.add("ascend")
            if name is not None and name.startswith("/device:"):
                hints.add("jax")
            for vendor in ("MTIA", "XPU"):
                if label is not None and label.startswith(vendor):
                    hints.add(vendor.lower())
        for prefix in ("hip", "cuda"):
            if trace.names.str.starts_with(prefix).any():
                hints.add(prefix)
        return hints
