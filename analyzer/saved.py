"""Reports that were saved as JSON: the one loader of all kinds.

What a file is, is told by its content: by the keys of its outermost object, in whatever order and layout a
tool has left them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from analyzer.errors import TraceError
from analyzer.report import codec
from analyzer.report.columns import keys_of
from analyzer.report.document import SCHEMA_VERSION, Kind, Report
from analyzer.report.results import Results
from analyzer.sources.limits import HEAD, MAX_SEARCH
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Source

_VERSION = "schema_version"
#: Keys that every trace has, wherever its list of events stands, and no report.
_OF_TRACES = frozenset((b"traceEvents", b"schemaVersion"))
_WRITE = "tracecli analyze TRACE -o report.json writes one"
_SAVE = "save it again with this tracecli"
#: A string, with what follows it: the colon of a key, or the end of the text; a bracket; a quote that is not closed.
_TOKEN = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(?:[ \t\r\n]*+(:|\Z))?|[{}\[\]]|"', re.DOTALL)


def kinds() -> dict[str, Kind]:
    """All kinds of report by name."""
    from analyzer.budget.outcome import CHECK
    from analyzer.compare.report import COMPARISON
    from analyzer.info import FILE
    from analyzer.pipeline import run_kind

    return {kind.name: kind for kind in (run_kind(), FILE, COMPARISON, CHECK)}


def load(path: str, kind: str | None = None) -> Report | None:
    """The report that was saved in a file, packed by gzip or not; None if the file is none: a trace, perhaps.

    kind  the one that is wanted; None: any.

    Decides by the head of the file, so that a large trace is not read for it. Raises TraceError where the file
    is a report, but damaged, of another schema version, or of another kind; and where it cannot be read.
    """
    if not os.path.isfile(path):
        return None  # a pipe is read once, by the reader
    source = Source(path, Notes())
    try:
        text = _text(source)
    finally:
        source.close()
    return None if text is None else _report(text, path, kind)


def _report(text: bytes, path: str, wanted: str | None) -> Report | None:
    import orjson

    try:
        plain = orjson.loads(text)
    except orjson.JSONDecodeError as e:
        raise TraceError(f"a saved report, but damaged: {e}", path, _SAVE) from None
    if _VERSION not in plain:
        return None
    if plain[_VERSION] != SCHEMA_VERSION:
        newer = isinstance(plain[_VERSION], int) and plain[_VERSION] > SCHEMA_VERSION
        raise TraceError(
            f"a report of schema version {plain[_VERSION]!r}; this tool reads {SCHEMA_VERSION}",
            path,
            f"update tracecli, or {_SAVE}" if newer else _SAVE,
        )
    kind = kinds().get(name) if isinstance(name := plain.get("kind"), str) else None
    if kind is None:
        known = f"this tool knows {', '.join(kinds())}"
        raise TraceError(f"a report of unknown kind {name!r}; {known}", path, f"update tracecli, or {_SAVE}")
    if wanted not in (None, kind.name):
        raise TraceError(f"the report of a {kind.name}, not of a {wanted}", path, _WRITE if wanted == "run" else None)
    return Report(kind, _results(kind, plain, path))


def _results(kind: Kind, plain: dict[str, Any], path: str) -> Results:
    import msgspec

    try:
        return Results(codec.load(result, plain) for result in kind.results)
    except msgspec.ValidationError as e:
        raise TraceError(f"a saved report, but damaged: {e}", path, _SAVE) from None


def _text(source: Source) -> bytes | None:
    """The whole text, if it is that of a report."""
    pieces: list[bytes] = []
    if not _is_report(_pieces(source, pieces)):
        return None
    for _ in _pieces(source, pieces):
        pass
    return b"".join(pieces)


def _pieces(source: Source, seen: list[bytes]) -> Iterator[bytes]:
    """The text in pieces that grow, the head first, each put to those that were seen."""
    size = HEAD
    while True:
        buffer = bytearray(size)
        filled = 0
        while filled < size and (taken := source.readinto(memoryview(buffer)[filled:])):
            filled += taken
        if filled:
            seen.append(bytes(buffer[:filled]))
            yield seen[-1]
        if filled < size:
            return
        size *= 2


def _is_report(pieces: Iterable[bytes]) -> bool:
    """By the first key that tells. Where none does in the head: go on while all keys could be a report's."""
    outer = _OuterKeys()
    found: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        for key in outer.feed(piece):
            if key in _OF_TRACES or key == _VERSION.encode():
                return key not in _OF_TRACES
            found.append(key)
        if outer.ended or size > MAX_SEARCH or not _declared().issuperset(found):
            break
    return bool(found) and size <= MAX_SEARCH and _declared().issuperset(found)


def _declared() -> frozenset[bytes]:
    """Outermost keys of all kinds of report."""
    results = {result for kind in kinds().values() for result in kind.results}
    return frozenset({b"kind", *(key.encode() for result in results for key in keys_of(result))})


class _OuterKeys:
    """Keys of the outermost object, and those of traces wherever they are. ended: there is no more to come."""

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""
        self._depth = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        text = self._rest + piece
        if self._depth == 0 and text.lstrip()[:1] not in (b"{", b""):
            self.ended = True
            return
        at = 0
        for token in _TOKEN.finditer(text):
            if token[0][:1] == b'"':
                if token[1] is None or token[2] == b"":
                    break  # it may go on, or its colon may come, in the next piece
                if token[2] and (self._depth == 1 or token[1] in _OF_TRACES):
                    yield token[1]
            else:
                self._depth += 1 if token[0] in b"{[" else -1
                if self._depth == 0:
                    self.ended = True
                    return
            at = token.end()
        self._rest = text[at:]
