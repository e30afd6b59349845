"""Writes a trace anew, smaller and without what says whose it is.

The file is read twice. First to see: names that give a user or a host away, what stands beside the
events, and, where a part is wanted, where it lies. Then to write: event by event, in the order of the
file. Memory holds a few numbers for each launch, piece of device work and flow of the file, and only
where a part is wanted; never the events.

Times pass through as text: they keep every digit. Other numbers keep their value.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

from analyzer import output, units
from analyzer.errors import TraceError
from analyzer.output import Output
from analyzer.redact import part
from analyzer.redact.leftover import Leftover
from analyzer.redact.names import Words
from analyzer.redact.part import Selection
from analyzer.redact.raw import Piece, pieces
from analyzer.redact.scrub import KINDS, Scrubber
from analyzer.report.findings import Warning
from analyzer.sources import sniff
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Progress, Source

#: A time in JSON text as a key with a number; quotes inside strings are escaped, so none is mistaken.
_TIMES = re.compile(rb'("(?:ts|dur|tts|tdur)"[ \t\r\n]*:[ \t\r\n]*)(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?=[ \t\r\n,}])')
_MARKED = re.compile(rb'("(?:ts|dur|tts|tdur)":)"#(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"')
_SPOOL = 1 << 20
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
    with _twice(os.fspath(source)) as path:
        shown = os.fspath(source)
        survey = _survey(path, shown, wanted, progress)
        wanted_part = part.choose(survey.seen, wanted, shown)
        scrubber = Scrubber(keep=keep, known=Words(mapping))
        writer = _Writer(path, survey, wanted_part, scrubber, progress)
        file_after = _write(output.of(target), writer)
        size = os.stat(path).st_size
    if not writer.kept and not wanted.whole:
        raise TraceError("the part that was asked for holds no events", shown)
    return Shared(
        events_before=survey.elements,
        events_after=writer.kept,
        text_before=survey.bytes,
        text_after=writer.bytes,
        file_before=size,
        file_after=file_after,
        removed=dict(scrubber.removed),
        mapping=scrubber.words.mapping,
        stayed=tuple(scrubber.names.stayed),
        warnings=survey.notes.warnings(),
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
def _twice(source: str) -> Iterator[str]:
    """A path that can be read twice: what comes through a pipe is spooled to a file of its own."""
    if source != "-":
        try:
            mode = os.stat(source).st_mode
            regular = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
        except (OSError, ValueError):
            regular = True  # the reader says what is wrong with it
        if regular:
            yield source
            return
    with tempfile.TemporaryDirectory(prefix="tracecli-") as folder:
        path = os.path.join(folder, "spool")
        try:
            _spool(source, path)
        except OSError as e:
            raise TraceError(f"reading failed: {e.strerror or e}", source) from e
        yield path


def _spool(source: str, path: str) -> None:
    with open(path, "wb") as spool:
        if source != "-":
            with open(source, "rb") as pipe:
                shutil.copyfileobj(pipe, spool, _SPOOL)
        elif (stdin := getattr(sys.stdin, "buffer", None)) is None:
            raise TraceError("standard input is closed", source, "Name a file instead.")
        else:
            shutil.copyfileobj(stdin, spool, _SPOOL)


# -- the first pass ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Survey:
    """What the first pass has seen.

    values  small members of the top object. depth: of the lists of events that count.
    """

    notes: Notes
    values: dict[str, Any] = field(default_factory=dict)
    depth: int | None = None
    elements: int = 0
    bytes: int = 0
    seen: part.Seen = field(default_factory=part.Seen)

    def count_from(self, depth: int) -> None:
        """Another list of events counts: what the ones before held does not."""
        self.depth, self.elements, self.seen = depth, 0, part.Seen()


def _survey(path: str, shown: str, wanted: Selection, progress: Progress | None) -> _Survey:
    survey = _Survey(Notes())
    with _opened(path, shown, survey.notes, _half(progress, 0)) as source:
        for piece in pieces(source, survey.notes, survey.values):
            if not piece.events:
                continue
            if survey.depth is None or piece.depth < survey.depth:
                survey.count_from(piece.depth)
            elif piece.depth > survey.depth:
                continue
            events = _parse(piece)
            survey.elements += len(events)
            if not wanted.whole:
                part.see(survey.seen, events, wanted)
        survey.bytes = source.offset
    if survey.depth is None:
        raise sniff.no_event_list(shown, dict.fromkeys(survey.values))
    return survey


def _half(progress: Progress | None, which: int) -> Progress | None:
    if progress is None:
        return None

    def tell(done: int, total: int | None) -> None:
        progress(done + which * (total or 0), None if total is None else 2 * total)

    return tell


@contextmanager
def _opened(path: str, shown: str, notes: Notes, progress: Progress | None) -> Iterator[Source]:
    """The source, with the user's name of it in messages instead of a spool's."""
    try:
        with Source(path, notes, progress) as source:
            yield source
    except TraceError as e:
        if path != shown and e.where:
            raise TraceError(e.what, e.where.replace(path, shown), e.hint) from None
        raise


def _parse(piece: Piece) -> list[Any]:
    """The elements of a run, with their times as text behind a `#`."""
    events: list[Any] = orjson.loads(b"[%b]" % _TIMES.sub(rb'\1"#\2"', piece.text))
    return events


# -- the second pass ---------------------------------------------------------------------------------


class _Writer:
    """Writes the document. bytes, kept: of text and events written."""

    def __init__(
        self,
        path: str,
        survey: _Survey,
        wanted: Callable[[Any], bool] | None,
        scrubber: Scrubber,
        progress: Progress | None,
    ) -> None:
        self.bytes = 0
        self.kept = 0
        self._path = path
        self._survey = survey
        self._wanted = wanted
        self._scrubber = scrubber
        self._progress = progress

    def write(self, out: IO[bytes]) -> None:
        self.bytes = self.kept = 0
        self._leftover = Leftover()
        header = self._scrubber.header(self._survey.values)
        header["tracecli_share"] = {"version": 1, "whole": self._wanted is None}
        members = b",\n".join(b"%b: %b" % (orjson.dumps(key), orjson.dumps(value)) for key, value in header.items())
        self._put(out, b'{\n%b,\n"traceEvents": [\n' % members)
        with Source(self._path, Notes(), _half(self._progress, 1)) as source:
            for piece in pieces(source, Notes()):
                if piece.events and piece.depth == self._survey.depth:
                    self._events(out, _parse(piece))
        self._put(out, b"\n]\n}\n")

    def _events(self, out: IO[bytes], events: list[Any]) -> None:
        wanted, scrub = self._wanted, self._scrubber.event
        kept = [
            event for e in events if (wanted is None or wanted(e)) and ((event := scrub(e)) is not None or e is None)
        ]
        if not kept:
            return
        text = b",\n".join(map(orjson.dumps, kept))
        self._put(out, (b",\n" if self.kept else b"") + _MARKED.sub(rb"\1\2", text))
        self.kept += len(kept)

    def _put(self, out: IO[bytes], text: bytes) -> None:
        self._leftover.look(text)
        out.write(text)
        self.bytes += len(text)


def _write(target: Output, writer: _Writer) -> int | None:
    """Write the document; the size of the file, where it has one."""
    with target.open() as file, _packed(target.path, file) as out:
        writer.write(out)
    return target.size


@contextmanager
def _packed(target: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    if target.name.endswith(".gz"):
        # No name and no time in the header of the stream: both say more than was asked for.
        with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
            yield packed  # type: ignore[misc]
    else:
        yield file
