"""Writes a trace anew, smaller and without what says whose it is.

The file is read twice. First as any trace is, for what stands beside the events and, where a part is wanted, where
it lies. Then to write: event by event, in the order of the file.

Times pass through as text: they keep every digit. Other numbers keep their value.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from analyzer import output, units
from analyzer.errors import TraceError
from analyzer.events.schema import SHARED
from analyzer.events.select import Selection
from analyzer.output import Output
from analyzer.redact import part
from analyzer.redact.leftover import Leftover
from analyzer.redact.names import Words
from analyzer.redact.part import Marks
from analyzer.redact.scrub import KINDS, Scrubber
from analyzer.report.findings import Warning
from analyzer.sources.kineto import elements
from analyzer.sources.kineto.document import Document
from analyzer.sources.kineto.read import Reading
from analyzer.sources.notes import CODES, Notes
from analyzer.sources.stream import Progress, Source

#: A time in JSON text as a key with a number; quotes inside strings are escaped, so none is mistaken.
_TIMES = re.compile(rb'("(?:ts|dur|tts|tdur)"[ \t\r\n]*:[ \t\r\n]*)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=[ \t\r\n,}])')
_MARKED = re.compile(rb'("(?:ts|dur|tts|tdur)":)"#(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"')
_LEVEL = 6
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Shared:
    """What came of it. Events are elements of the list of events; sizes are bytes.

    removed  kind -> how often something was replaced or left out. mapping: kind -> word -> what it stands for.
    stayed   names of annotations and modules that stay as they are, since all of their words are public.
    """

    events_before: int
    events_after: int
    text_before: int
    text_after: int
    file_before: int | None
    file_after: int | None
    removed: Mapping[str, int]
    mapping: Mapping[str, Mapping[str, str]]
    stayed: tuple[str, ...]
    warnings: tuple[Warning, ...]


def share(
    source: str | os.PathLike[str],
    target: Path | Output,
    selection: Selection | None = None,
    *,
    keep: Collection[str] = (),
    mapping: Mapping[str, Mapping[str, str]] | None = None,
    progress: Progress | None = None,
) -> Shared:
    """Write a trace to `target`: packed where its name ends in .gz. What is there is replaced at the end.

    keep      KINDS that stay.
    mapping   of an earlier run: what it knows gets the same words, as traces of one job should.
    progress   called with (bytes read, bytes to read or None); the file is read twice.
    Raises TraceError where the trace cannot be read, the part is not in it, or the target cannot be written.
    """
    wanted = selection or Selection()
    with _opener(os.fspath(source)) as opened:
        notes = Notes()
        marks = None if wanted.whole else Marks()
        with opened(notes, _half(progress, 0)) as text:
            reading = Reading(text, notes, sink=marks, jobs=None if marks is None else 1)
            trace = reading.run()
        if not trace.events:
            raise TraceError("the list of events is empty: there is nothing to share", trace.path)
        keeps, window = (None, None) if marks is None else part.choose(trace, marks, wanted)
        scrubber = Scrubber(keep=keep, known=Words(mapping))
        writer = _Writer(reading.values, reading.depth, keeps, window, scrubber)
        before, warnings, size = trace.events, trace.warnings, text.taken
        del reading, trace, marks
        file_after = _write(output.of(target), writer, lambda: opened(Notes(), _half(progress, 1)))
    if not writer.kept and not wanted.whole:
        raise TraceError("the part that was asked for holds no events", os.fspath(source))
    return Shared(
        events_before=before,
        events_after=writer.kept,
        text_before=text.offset,
        text_after=writer.bytes,
        file_before=size,
        file_after=file_after,
        removed=dict(scrubber.removed),
        mapping=scrubber.words.mapping,
        stayed=tuple(scrubber.names.stayed),
        warnings=tuple(w for w in warnings if CODES[w.code][1]),
    )


def summary(done: Shared, target: Path) -> list[str]:
    """What was done, in lines: sizes, events, and how much of which kind was taken out."""
    text = f"{units.size(done.text_before)} of text -> {units.size(done.text_after)}"
    lines = [
        f"wrote {units.clean(str(target))}: {units.size(done.file_before)} -> {units.size(done.file_after)} ({text})",
        f"  events     {done.events_after:,} of {done.events_before:,} kept",
    ]
    for kind, what in KINDS.items():
        if times := done.removed.get(kind, 0):
            lines.append(f"  {kind:<10} {times:,} times replaced or left out: {what}")
    lines += [f"  {w.code}: {w.message}" for w in done.warnings]
    if done.stayed:
        shown = ", ".join(units.clean(name) for name in done.stayed[:_SHOWN])
        more = f" and {len(done.stayed) - _SHOWN} more" if len(done.stayed) > _SHOWN else ""
        lines.append(f"  text that stays, of public words: {shown}{more}")
    return [*lines, "No secret's shape was found in what was written; look at it all the same before you hand it on."]


@contextmanager
def _opener(source: str) -> Iterator[Callable[[Notes, Progress | None], Source]]:
    """Opens a source as often as wanted. What comes through a pipe is copied as it is first read, to a file that
    has no name: however this ends, nothing of it is left."""
    if source != "-" and not _is_pipe(source):
        yield lambda notes, progress: Source(source, notes, progress)
        return
    with tempfile.TemporaryFile(prefix="tracecli-") as spool:
        copied = False

        def opened(notes: Notes, progress: Progress | None) -> Source:
            nonlocal copied
            if not copied:
                copied = True
                return Source(source, notes, progress, copy=spool)
            spool.seek(0)
            return Source(source, notes, progress, file=spool)

        yield opened


def _is_pipe(source: str) -> bool:
    try:
        mode = os.stat(source).st_mode
    except (OSError, ValueError):
        return False  # the reader says what is wrong with it
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _half(progress: Progress | None, which: int) -> Progress | None:
    if progress is None:
        return None

    def tell(done: int, total: int | None) -> None:
        progress(done + which * (total or 0), None if total is None else 2 * total)

    return tell


# -- the second pass ---------------------------------------------------------------------------------


class _Writer:
    """Writes the document: a sink for its elements. bytes, kept: of text and events written."""

    def __init__(
        self,
        header: Mapping[str, Any],
        depth: int,
        wanted: Callable[[Any], bool] | None,
        window: tuple[int, int] | None,
        scrubber: Scrubber,
    ) -> None:
        self.bytes = self.kept = 0
        self._header = header
        self._depth = depth
        self._wanted = wanted
        self._window = window
        self._scrubber = scrubber
        self._leftover = Leftover()

    def write(self, out: IO[bytes], source: Source) -> None:
        self._out = out
        header = self._scrubber.header(self._header)
        header[SHARED] = {"version": 1, "whole": self._wanted is None}
        if self._window is not None:
            header[SHARED]["window_ns"] = self._window
        members = b",\n".join(b"%b: %b" % (orjson.dumps(key), orjson.dumps(value)) for key, value in header.items())
        self._put(b'{\n%b,\n"traceEvents": [\n' % members)
        self._document = Document(source, Notes(), self)
        self._document.walk()
        self._put(b"\n]\n}\n")

    def add(self, piece: bytes) -> None:
        elements.parse(piece)
        if self._document.lists[-1].depth != self._depth:
            return
        wanted, scrub = self._wanted, self._scrubber.event
        kept = [
            event
            for e in orjson.loads(_TIMES.sub(rb'\1"#\2"', piece))
            if (wanted is None or wanted(e)) and ((event := scrub(e)) is not None or e is None)
        ]
        if not kept:
            return
        text = b",\n".join(map(orjson.dumps, kept))
        self._put((b",\n" if self.kept else b"") + _MARKED.sub(rb"\1\2", text))
        self.kept += len(kept)

    def take(self) -> dict[str, Any]:
        return {}

    def _put(self, text: bytes) -> None:
        self._leftover.look(text)
        self._out.write(text)
        self.bytes += len(text)


def _write(target: Output, writer: _Writer, opened: Callable[[], Source]) -> int | None:
    """Write the document; the size of the file, where it has one."""
    with target.open() as file, _packed(target.path, file) as out, opened() as source:
        writer.write(out, source)
    return target.size


@contextmanager
def _packed(target: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    if target.name.endswith(".gz"):
        # No name and no time in the header of the stream: both say more than was asked for.
        with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
    else:
        yield file
