"""A stretch of the event list: bytes in, columns and notes out. Runs in workers and in-process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from analyzer.sources.kineto.elements import OtherDocument, Sink
from analyzer.sources.kineto.framing import EVENT_START, Borders, Text, element_end, skip_space
from analyzer.sources.kineto.literals import mend_all
from analyzer.sources.kineto.repair import Broken, Incomplete, mend
from analyzer.sources.kineto.resume import next_event
from analyzer.sources.limits import CHUNK, MAX_DAMAGE

#: Where in the list the text stands: at its start, behind a comma, behind an element.
START, COMMA, ELEMENT = 0, 1, 2

#: How a stretch ended: more text is needed, the list was closed, or the file stopped
#: cleanly between two elements or inside one; or there was too much damage to go on.
MORE, CLOSED, STOPPED, CUT, HOPELESS = 0, 1, 2, 3, 4

_MIN_CHUNK = 1024


@dataclass(slots=True)
class Stretch:
    """What became of a stretch.

    end       position in the text up to which it was read.
    state     where in the list that is (START, COMMA, ELEMENT).
    how       MORE, CLOSED, STOPPED, CUT or HOPELESS.
    last      offset in the file of the end of the last whole element, -1: none was read.
    damaged   events that could not be recovered.
    notes     code -> [offset in the file of the first, times].
    """

    end: int
    state: int
    how: int = MORE
    last: int = -1
    damaged: int = 0
    notes: dict[str, list[int]] = field(default_factory=dict)

    def note(self, code: str, byte: int, times: int = 1) -> None:
        """Remember a repair; of each kind the first place and the number of times."""
        seen = self.notes.setdefault(code, [byte, 0])
        seen[0] = min(seen[0], byte)
        seen[1] += times


class BlockParser:
    """Parses stretches of one event list; `sink` takes the elements."""

    def __init__(self, sink: Sink, chunk: int = CHUNK) -> None:
        self.sink = sink
        self.chunk = chunk
        self.borders = Borders()
        self._size = chunk  # of the next chunk to try
        self._mend_many = True

    def parse(self, text: Text, start: int, end: int, offset: int, state: int, final: bool) -> Stretch:
        """Read elements from text[start:end].

        offset  of text[0] in the file. final: the file ends at `end`.
        """
        at = start
        done = Stretch(start, state)
        if not self.borders.separators:
            self.borders.learn(text, skip_space(text, at, end), end)
        while True:
            at = skip_space(text, at, end)
            done.end, done.state = at, state
            if at >= end:
                done.how = STOPPED if final else MORE
                return done
            c = text[at : at + 1]
            if c == b",":
                if state != ELEMENT:
                    done.note("stray-comma", offset + at)
                state = COMMA
                at += 1
                continue
            if c == b"]":
                if state == COMMA:
                    done.note("stray-comma", offset + at)
                done.end, done.how = at + 1, CLOSED
                return done
            if state == ELEMENT and c == b"}":
                done.note("stray-bracket", offset + at)
                at += 1
                continue
            if state != ELEMENT and c == b"[":
                inner = skip_space(text, at + 1, end)
                if inner + 64 > end and not final:
                    return done
                if EVENT_START.match(text, inner, end):
                    done.note("stray-bracket", offset + at)
                    at = inner
                    continue
            missing = state == ELEMENT
            stop = None
            if not missing or c == b"{":
                stop = self._chunk(text, at, end, offset, done)
                if stop is None:
                    self._size = min(self.chunk, max(self._size * 2, _MIN_CHUNK))
                    try:
                        stop = self._element(text, at, end, offset, final, done)
                    except Incomplete:
                        return done
            if stop is not None:
                if missing:
                    done.note("missing-comma", offset + at)
                at, state = stop, ELEMENT
                done.last = offset + at
                continue
            try:
                step = self._skip_damage(text, at, end, offset, final, done)
            except Incomplete:
                return done
            if step is None:
                done.how = CUT
                return done
            at, is_event = step
            if done.notes["damaged-event"][1] > MAX_DAMAGE:
                done.how = HOPELESS
                return done
            state = COMMA if is_event else ELEMENT

    def _chunk(self, text: Text, at: int, end: int, offset: int, done: Stretch) -> int | None:
        """Take as many elements as a chunk holds; None where no cut gives valid JSON.

        Where it does not at first, smaller pieces are tried; and the next ones start small, since
        damage comes in clusters.
        """
        while self._size >= _MIN_CHUNK or self._size == self.chunk:
            size = self._size
            stop = self.borders.last(text, at, min(at + size, end))
            if stop is None:
                return None
            piece = b"[%b]" % bytes(text[at:stop])
            try:
                self.sink.add(piece)
            except OtherDocument:
                self._size = (stop - at) // 2
                continue
            except orjson.JSONDecodeError:
                # Where that did not help once, it is not tried again before all is well.
                self._mend_many = self._mend_many and self._take_mended(piece, offset + at, done)
                if not self._mend_many:
                    self._size = (stop - at) // 2
                    continue
            self._size = min(self.chunk, size * 2)
            self._mend_many = self._mend_many or size == self.chunk
            return stop
        return None

    def _take_mended(self, piece: bytes, offset: int, done: Stretch) -> bool:
        """Take a chunk whose faults all lie inside strings and words."""
        mended = mend_all(piece)
        if mended is None:
            return False
        text, notes = mended
        try:
            elements = orjson.loads(text)
        except orjson.JSONDecodeError:
            return False
        # Whatever else is odd is left to be looked at element by element.
        if not all(type(e) is dict for e in elements):
            return False
        if text.count(b'"ph"') != sum("ph" in e for e in elements):
            return False
        try:
            self.sink.add(text)
        except OtherDocument:
            return False
        for code, position, times in notes:
            done.note(code, offset - 1 + position, times)
        return True

    def _element(self, text: Text, at: int, end: int, offset: int, final: bool, done: Stretch) -> int | None:
        """Take one element, mended if need be; None where it is beyond repair. Raises Incomplete."""
        stop = element_end(text, at, end)
        if stop is not None:
            if stop == end and not final and text[stop - 1] not in b'}]"':
                raise Incomplete  # a number or a word may go on
            try:
                self.sink.add(b"[%b]" % bytes(text[at:stop]))
            except OtherDocument:
                return None
            except orjson.JSONDecodeError:
                pass
            else:
                return stop
        try:
            mended = mend(text, at, end, final)
            if not mended.text.startswith(b"{") and any(code != "bad-number" for code, _, _ in mended.notes):
                return None  # a word between events is none of them
            self.sink.add(b"[%b]" % mended.text)
        except (Broken, orjson.JSONDecodeError, OtherDocument):
            return None
        for code, position, times in mended.notes:
            done.note(code, offset + position, times)
        return mended.end

    @staticmethod
    def _skip_damage(text: Text, at: int, end: int, offset: int, final: bool, done: Stretch) -> tuple[int, bool] | None:
        """Find where to go on behind an element that is beyond repair; None: the file ends before."""
        where, cut = at, False
        try:
            where = mend(text, at, end, final).end
        except Broken as broken:
            where, cut = broken.at, broken.cut
        step = next_event(text, at + 1, end, final)
        if step is not None or not cut:
            done.damaged += int(text[at : at + 1] == b"{")
            done.note("damaged-event", offset + min(where, end - 1))
        return step

    def result(self, done: Stretch) -> dict[str, Any]:
        """The stretch and what its elements became, as plain values for `marshal`."""
        return {
            "end": done.end,
            "state": done.state,
            "how": done.how,
            "last": done.last,
            "damaged": done.damaged,
            "notes": done.notes,
            **self.sink.take(),
        }
