"""What stands around the lists of events: walks the outermost objects, keeps small values.

A list of events is an array under the key `traceEvents`, at the top or inside other objects, or the
whole document, if that is an array.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from analyzer.errors import TraceError
from analyzer.sources.kineto.framing import EVENT_START, element_end, skip_space
from analyzer.sources.kineto.repair import Broken, Incomplete, mend
from analyzer.sources.limits import MAX_ELEMENT, MAX_HEADER_VALUE
from analyzer.sources.notes import Notes
from analyzer.sources.passage import Passage

#: What `walk` found: a list of events begins; the last one goes on behind a stray bracket; the
#: document ends; the file ends before the document does; a value behind the events is too large.
LIST, RESUMED, END, CUT, GIVEN_UP = "list", "resumed", "end", "cut", "given up"

_KEY = "traceEvents"
_NEXT_MEMBER = re.compile(rb'"[A-Za-z_][\w .-]{0,80}"[ \t\r\n]*:')
_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_STEP = 64 << 10
_KEPT_KEYS = 256
#: Objects inside objects around a list of events.
_MAX_OPEN = 64


class Outer:
    """Walks the document; `values` are the small members of the top object, `keys` all of them.

    lines  the document is one event a line, with no list around them.
    depth  of the list that was found last: 0 for an array as the whole document, 1 at the top.
    """

    def __init__(self, passage: Passage, notes: Notes) -> None:
        self.values: dict[str, Any] = {}
        self.keys: dict[str, None] = {}
        self.depth = 0
        self.lists = 0
        self.lines = False
        self._passage = passage
        self._notes = notes
        self._open = 0  # objects around
        self._key = ""
        self._want = "value"

    def walk(self) -> str:
        """Go on up to a list of events (the passage then stands behind its bracket) or the end.

        Raises TraceError where a value in front of the first list is too large to read.
        """
        passage = self._passage
        while True:
            try:
                found = self._step()
            except Incomplete:
                if passage.end - passage.at > MAX_ELEMENT:
                    return self._oversized()
                left = passage.end - passage.at
                passage.more(min(max(_STEP, left), MAX_ELEMENT + 1 - left))
                continue
            if found:
                return found

    def _oversized(self) -> str:
        where = self._passage.position
        if self.lists:
            self._notes.add("oversized-header", where)
            return GIVEN_UP
        raise TraceError(
            f"a single value at byte {where:,} is larger than {MAX_ELEMENT >> 20} MB",
            f"{self._passage.source.path}, byte {where}",
            "No profiler writes such: is this a trace?",
        )

    def _step(self) -> str:
        """One token. Moves the passage only when the token is whole. Raises Incomplete."""
        passage = self._passage
        at = passage.at = skip_space(passage.text, passage.at, passage.end)
        if at >= passage.end:
            if passage.final:
                return CUT
            raise Incomplete
        c = passage.text[at : at + 1]
        if self._want == "comma":
            return self._comma(c)
        if self._want == "key":
            return self._member(c)
        return self._value(c)

    def _comma(self, c: bytes) -> str:
        passage = self._passage
        if c == b",":
            after = skip_space(passage.text, passage.at + 1, passage.end)
            if after + 64 > passage.end and not passage.final:
                raise Incomplete
            if self.lists and EVENT_START.match(passage.text, after, passage.end):
                self._notes.add("stray-bracket", passage.position)
                passage.at = after
                return RESUMED
            passage.at += 1
            self._want = "key"
        elif c == b"}":
            return self._close()
        elif c == b'"':
            self._notes.add("missing-comma", passage.position)
            self._want = "key"
        else:
            return self._skip_damage()
        return ""

    def _close(self) -> str:
        self._passage.at += 1
        self._open -= 1
        self._want = "comma"
        return END if self._open == 0 else ""

    def _member(self, c: bytes) -> str:
        passage = self._passage
        if c == b"}":
            return self._close()
        if c == b",":
            self._notes.add("stray-comma", passage.position)
            passage.at += 1
            return ""
        if c != b'"':
            return self._skip_damage()
        stop = element_end(passage.text, passage.at, passage.end)
        if stop is None:
            if not passage.final and passage.end - passage.at < 4096:
                raise Incomplete
            return self._skip_damage()
        after = skip_space(passage.text, stop, passage.end)
        if after >= passage.end and not passage.final:
            raise Incomplete
        if passage.text[after : after + 1] != b":":
            return self._skip_damage()
        self._key = passage.text[passage.at + 1 : stop - 1].decode("utf-8", "replace")
        if self._open == 1 and len(self.keys) < _KEPT_KEYS:
            self.keys[self._key] = None
        passage.at = after + 1
        self._want = "value"
        return ""

    def _value(self, c: bytes) -> str:
        passage = self._passage
        if c == b"[" and (self._open == 0 or self._key == _KEY):
            passage.at += 1
            self.depth = self._open
            self.lists += 1
            self._want = "comma"
            return LIST
        if c == b"{":
            if self._open == 0 and self._is_event():
                self.lines = True
                self.lists += 1
                return LIST
            if self._open == 0 or not self._whole_object():
                passage.at += 1
                self._open += 1
                self._want = "key"
                if self._open > _MAX_OPEN:
                    raise TraceError(
                        f"objects nested deeper than {_MAX_OPEN} at byte {passage.position:,}",
                        f"{passage.source.path}, byte {passage.position}",
                        "No profiler writes such: is this a trace?",
                    )
            return ""
        stop = element_end(passage.text, passage.at, passage.end)
        if stop is not None and stop == passage.end and not passage.final:
            raise Incomplete
        if stop is not None and self._keep(stop):
            return ""
        try:
            mended = mend(passage.text, passage.at, passage.end, passage.final, container=b"{"[0])
        except Broken as broken:
            if broken.cut:
                passage.at = passage.end
                return CUT
            return self._skip_damage()
        for code, at, times in mended.notes:
            self._notes.add(code, passage.offset + at, times)
        if self._open == 1 and len(mended.text) <= MAX_HEADER_VALUE and len(self.values) < _KEPT_KEYS:
            try:
                self.values[self._key] = orjson.loads(mended.text)
            except orjson.JSONDecodeError:
                self._notes.add("damaged-header", passage.position)
        passage.at = mended.end
        self._want = "comma"
        return ""

    def _is_event(self) -> bool:
        """Does the document begin with an event, as one event a line, with no list around?"""
        passage = self._passage
        if not passage.final and passage.end - passage.at < 64:
            raise Incomplete
        if not EVENT_START.match(passage.text, passage.at, passage.end):
            return False
        stop = element_end(passage.text, passage.at, passage.end)
        if stop is None:
            if not passage.final and passage.end - passage.at < _STEP:
                raise Incomplete
            return False
        try:
            event = orjson.loads(passage.text[passage.at : stop])
        except orjson.JSONDecodeError:
            return False
        return "ph" in event and _KEY not in event

    def _whole_object(self) -> bool:
        """Take an object in one go, if it is small and holds no list of events."""
        passage = self._passage
        limit = min(passage.end, passage.at + MAX_HEADER_VALUE)
        stop = element_end(passage.text, passage.at, limit)
        if stop is None:
            if passage.end - passage.at < MAX_HEADER_VALUE and not passage.final:
                raise Incomplete
            stop = _matching_brace(passage.text, passage.at, limit)
            if stop is None or b'"traceEvents"' in passage.text[passage.at : stop]:
                return False
            self._notes.add("damaged-header", passage.position)
            passage.at = stop
            self._want = "comma"
            return True
        if b'"traceEvents"' in passage.text[passage.at : stop]:
            return False
        return self._keep(stop)

    def _keep(self, stop: int) -> bool:
        """Take the valid JSON up to `stop`. False: it is not quite valid."""
        passage = self._passage
        if self._open == 1 and stop - passage.at <= MAX_HEADER_VALUE and len(self.values) < _KEPT_KEYS:
            try:
                self.values[self._key] = orjson.loads(passage.text[passage.at : stop])
            except orjson.JSONDecodeError:
                return False
        passage.at = stop
        self._want = "comma"
        return True

    def _skip_damage(self) -> str:
        """Go on at the next member. None is left in sight: the rest is no part of the document."""
        passage = self._passage
        if self._want == "comma" and self._open == 0:
            return END
        found = _NEXT_MEMBER.search(passage.text, passage.at + 1, passage.end)
        if found is None and not passage.final:
            raise Incomplete
        self._notes.add("damaged-header", passage.position)
        if found is None:
            passage.at = passage.end
            return CUT
        passage.at = found.start()
        self._want = "key"
        return ""


def _matching_brace(text: bytes, at: int, end: int) -> int | None:
    """End of the object that opens at `at`, by its brackets alone."""
    depth = 0
    for found in _BRACKET.finditer(text, at, end):
        token = found[0]
        if token in b"{[":
            depth += 1
            if depth > _MAX_OPEN:
                return None
        elif token in b"}]":
            depth -= 1
            if depth == 0:
                return found.end()
    return None
