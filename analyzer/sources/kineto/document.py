"""A document, read from its first byte to its last: its lists of events go to a sink, element by element.

The document is walked from the outside (`envelope`) up to a list of events; the list is read in blocks (`block`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.errors import TraceError
from analyzer.sources import sniff
from analyzer.sources.kineto import envelope
from analyzer.sources.kineto.block import CLOSED, COMMA, HOPELESS, MORE, START, STOPPED, BlockParser
from analyzer.sources.kineto.elements import Sink
from analyzer.sources.limits import BLOCK, CHUNK, HEAD, MAX_DAMAGE, MAX_ELEMENT
from analyzer.sources.notes import Notes
from analyzer.sources.passage import Passage
from analyzer.sources.stream import Source


@dataclass(slots=True)
class EventList:
    """One list of events: how deep it lies, what its blocks gave, how it ended."""

    depth: int
    byte: int
    lines: bool  # one event a line: no brackets, no commas
    results: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    how: int = MORE
    state: int = START
    last: int = -1


class Document:
    """One walk through a document.

    lists      the lists of events up to here; while the sink is given elements, the last one is theirs.
    values     small members of the top object. truncated: the file ends before the document does.
    """

    def __init__(
        self,
        source: Source,
        notes: Notes,
        sink: Sink,
        *,
        strict: bool = False,
        block: int = BLOCK,
        chunk: int = CHUNK,
        head: int = HEAD,
    ) -> None:
        self.source = source
        self.notes = notes
        self.strict = strict
        self.block = block
        self.head = head
        self.parser = BlockParser(sink, chunk)
        self.lists: list[EventList] = []
        self.passage = Passage(source)
        self.outer = envelope.Outer(self.passage, notes)
        self.truncated = False

    @property
    def depth(self) -> int:
        """Of the lists that count: those that lie least deep."""
        return min(events.depth for events in self.lists)

    @property
    def values(self) -> dict[str, Any]:
        return self.outer.values

    def walk(self) -> None:
        """Read the document. Raises TraceError where it cannot be one, or passes a limit."""
        self.passage.more(self.head)
        sniff.check_head(self.passage.text[:4096], self.source.path)
        outer = self.outer
        while True:
            found = outer.walk()
            if found in (envelope.END, envelope.GIVEN_UP):
                self._rest(tell=found == envelope.END)
                return
            if found == envelope.CUT:
                self.truncated = True
                return
            if found == envelope.LIST:
                events = EventList(outer.depth, self.passage.position - 1, outer.lines)
                self.lists.append(events)
            else:
                events = self.lists[-1]
                events.how, events.state = MORE, COMMA
            self._read_list(events)
            if self.strict:
                self.refuse_repairs()
            if events.how == CLOSED:
                if events.depth == 0:
                    self._rest()
                    return
                continue
            if events.how == STOPPED and events.lines:
                return
            if events.how == STOPPED and events.depth == 0:
                self.notes.add("no-closing-bracket", self.passage.position)
            else:
                self.truncated = True
            return

    def _rest(self, tell: bool = True) -> None:
        """Behind the document: only white space is expected; read to the end, to know the size."""
        passage = self.passage
        found = not tell
        while True:
            rest = passage.text[passage.at :].lstrip(b" \t\r\n")
            if rest and not found:
                found = True
                self.notes.add("extra-data", passage.offset + passage.end - len(rest))
            passage.at = passage.end
            if passage.final:
                return
            passage.more(self.block)

    def _read_list(self, events: EventList) -> None:
        """Read the list up to its end, or the file's."""
        passage = self.passage
        while True:
            done = self.parser.parse(passage.text, passage.at, passage.end, passage.offset, events.state, passage.final)
            self.absorb(events, self.parser.result(done))
            passage.at = done.end
            if events.how != MORE:
                return
            left = passage.end - passage.at
            if left > MAX_ELEMENT:
                raise TraceError(
                    f"a single event at byte {passage.position:,} is larger than {MAX_ELEMENT >> 20} MB",
                    f"{self.source.path}, byte {passage.position}",
                    "No profiler writes such: the file is damaged there, or no trace.",
                )
            if left <= self.block // 4:
                self.read_beside(events)
                if events.how != MORE:
                    return
            passage.more(min(max(self.block, left), MAX_ELEMENT + 1 - left))

    def absorb(self, events: EventList, result: dict[str, Any], origin: int = 0) -> None:
        """Take the result of a block. origin: the process that parsed it."""
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

    def read_beside(self, events: EventList) -> None:
        """Read a part of the list by other means, if there are any."""

    def chosen(self) -> list[EventList]:
        """The lists that count: those that lie least deep."""
        if not self.lists:
            if self.truncated:
                size = self.source.offset
                raise TraceError(
                    f"the file ends at byte {size:,}, before any event",
                    self.source.path,
                    "Was the run that wrote it stopped, or the disk full?",
                )
            raise sniff.no_event_list(self.source.path, self.outer.keys)
        depth = self.depth
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

    def refuse_repairs(self) -> None:
        """Raises TraceError where anything was repaired."""
        repair = self.notes.first_repair()
        if repair is None:
            return
        where = self.source.path if repair.byte is None else f"{self.source.path}, byte {repair.byte}"
        raise TraceError(
            f"strict reading: {repair.message} ({repair.code})",
            where,
            "Without --strict, what is damaged is repaired or left out, and reported.",
        )
