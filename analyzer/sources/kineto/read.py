"""Reads a trace: bytes of any provenance to typed frames.

The lists of events of a `document` are parsed in this process or in workers (`pool`); their columns become
frames (`assembly`).
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from analyzer.errors import TraceError
from analyzer.events.schema import Trace
from analyzer.sources import sniff
from analyzer.sources.kineto import dialects, pool
from analyzer.sources.kineto.assembly import Origin, assemble
from analyzer.sources.kineto.block import CLOSED
from analyzer.sources.kineto.decode import Columns
from analyzer.sources.kineto.document import Document, EventList
from analyzer.sources.kineto.header import make_header, producer
from analyzer.sources.kineto.parallel import read_blocks
from analyzer.sources.limits import BLOCK, CHUNK, HEAD, MAX_EVENTS, SMALL
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Source

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
    with Source(os.fspath(source), notes, progress) as text:
        return Reading(text, notes, jobs=jobs, strict=strict).run()


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


class Reading(Document):
    """A document that becomes a trace; workers and this process take turns.

    sink   takes the place of the columns of this process; workers know only their own, so give `jobs=1` with it.
    small  bytes of text up to which there are no workers.
    """

    def __init__(
        self,
        source: Source,
        notes: Notes,
        *,
        jobs: int | None = None,
        strict: bool = False,
        sink: Columns | None = None,
        small: int = SMALL,
        block: int = BLOCK,
        chunk: int = CHUNK,
        head: int = HEAD,
    ) -> None:
        super().__init__(source, notes, sink or Columns(), strict=strict, block=block, chunk=chunk, head=head)
        self.workers = _cores() if jobs is None else jobs
        self.pool: pool.Pool | None = None
        self.small = small
        self.origins = [Origin()]

    def run(self) -> Trace:
        """The trace. Raises TraceError where there is none."""
        try:
            with _no_gc():
                self.walk()
                return self._trace(self.chosen())
        finally:
            self.close()

    def read_beside(self, events: EventList) -> None:
        if self._has_workers():
            self._read_with_workers(events)

    def absorb(self, events: EventList, result: dict[str, Any], origin: int = 0) -> None:
        self.origins[origin].learn(result)
        super().absorb(events, result, origin)

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

    def _read_with_workers(self, events: EventList) -> None:
        assert self.pool is not None
        self.passage.give_back()
        first = len(self.origins) - len(self.pool)
        kept = read_blocks(
            self.source,
            self.pool,
            self.parser.borders,
            events.state,
            lambda worker, result: self.absorb(events, result, first + worker),
            lambda worker, result: self.origins[first + worker].learn(result),
        )
        if not kept:
            self.close()
            self.workers = 1
        self.passage.give_back()

    def close(self) -> None:
        if self.pool is not None:
            self.pool.close()
            self.pool = None

    def _trace(self, lists: list[EventList]) -> Trace:
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
            self.refuse_repairs()
        builder = assemble(results, self.origins, notes)
        trace = builder.build(
            path=self.source.path,
            size=self.source.offset,
            form=self._format(lists[0]),
            events=total["elements"],
            complete_events=total["complete"],
            damaged_events=total["damaged"],
            truncated_at_byte=self.source.offset if self.truncated else None,
            header=make_header(self.values),
        )
        if not (len(trace.host) or len(trace.device) or len(trace.memory)):
            notes.add("no-events")
        asked: dict[str, bool] = {}
        for _, result in results:
            for flag, filled in result["asked"].items():
                asked[flag] = asked.get(flag, False) or filled
        header = replace(trace.header, producer=producer(self.values, self._hints(trace)), asked=asked)
        return replace(trace, header=header, warnings=notes.warnings())

    def _format(self, events: EventList) -> str:
        return self.source.format + (" lines" if events.lines else " array" if events.depth == 0 else "")

    def _tell_truncation(self, last: EventList) -> None:
        size = self.source.offset
        text = f"the file is cut: it stops at byte {size:,}"
        if last.how == CLOSED:
            text += ", behind the last event"
        elif last.last >= 0:
            text += f"; the last complete event ends at byte {last.last:,}"
        self.notes.add("truncated", size, text=text)

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
