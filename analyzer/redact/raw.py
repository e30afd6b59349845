"""A trace as a stream of raw pieces, for what rewrites a file without understanding all of it.

The same walk as the reader's, without columns: what stands around the lists of events comes as it
is, events come in runs of whole ones. Damage is repaired in the same way and told in the notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.errors import TraceError
from analyzer.sources import sniff
from analyzer.sources.kineto import envelope
from analyzer.sources.kineto.block import CLOSED, COMMA, HOPELESS, MORE, START, BlockParser, parse_elements
from analyzer.sources.limits import BLOCK, HEAD, MAX_DAMAGE, MAX_ELEMENT
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Source, Window


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file, in its order.

    offset  in the file, where the piece begins.
    events  True: whole elements of a list of events, separated by commas, with none at either end;
            `[text]` is valid JSON. False: text around the lists as it stands, brackets of the lists
            included.
    depth   of the list that the events are of, as in `envelope.Outer`: those that lie least deep count.
    """

    offset: int
    text: bytes
    events: bool
    depth: int = 0


class _Runs(BlockParser):
    """Collects what it parses instead of making columns of it."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth
        self.runs: list[Piece] = []

    def _take(self, piece: bytes, offset: int) -> None:
        parse_elements(piece)
        self.runs.append(Piece(offset, piece[1:-1], True, self.depth))


def pieces(source: Source, notes: Notes, values: dict[str, Any] | None = None) -> Iterator[Piece]:
    """The pieces of a file. Raises TraceError as `read` does, but not for a file without events.

    values  is filled on the way with the small members of the top object, mended where need be.
    Memory is bounded by the largest element, not by the file.
    """
    window = Window(source)
    window.more(HEAD)
    sniff.check_head(window.text[:4096], source.path)
    walk = envelope.Outer(window, notes)
    if values is not None:
        walk.values = values
    around = bytearray()
    begun = window.offset
    state = START
    while True:
        window.on_drop = around.extend
        found = walk.walk()
        window.on_drop = None
        if found in (envelope.END, envelope.CUT, envelope.GIVEN_UP):
            yield from _rest(window, bytes(around), begun)
            return
        yield Piece(begun, bytes(around) + window.text[: window.at], False)
        around.clear()
        state = COMMA if found == envelope.RESUMED else START
        parser = _Runs(walk.depth)
        how = MORE
        while how == MORE:
            done = parser.parse(window.text, window.at, window.end, window.offset, state, window.final)
            yield from parser.runs
            parser.runs.clear()
            for code, (byte, times) in done.notes.items():
                notes.add(code, byte, times)
            window.at, state, how = done.end, done.state, done.how
            left = window.end - window.at
            if how == HOPELESS:
                raise TraceError(
                    f"damaged beyond use: more than {MAX_DAMAGE:,} stretches of it cannot be read",
                    source.path,
                    "Did several processes write this file at once? Record again, to a file for each rank.",
                )
            if how == MORE and left > MAX_ELEMENT:
                raise TraceError(
                    f"a single event at byte {window.position:,} is larger than {MAX_ELEMENT >> 20} MB",
                    f"{source.path}, byte {window.position}",
                    "No profiler writes such: the file is damaged there, or no trace.",
                )
            if how == MORE:
                window.more(min(max(BLOCK, left), MAX_ELEMENT + 1 - left))
        # What was read belongs to the list; from the bracket on, to what is around it.
        window.text = window.text[window.at - 1 if how == CLOSED else window.at :]
        window.offset = begun = window.position - (1 if how == CLOSED else 0)
        window.at = 1 if how == CLOSED else 0
        if how != CLOSED or walk.depth == 0:
            yield from _rest(window, b"", begun)
            return


def _rest(window: Window, before: bytes, begun: int) -> Iterator[Piece]:
    """Everything up to the end of the file."""
    text = before + window.text
    while True:
        if text:
            yield Piece(begun, text, False)
        if window.final:
            return
        begun += len(text)
        window.at = window.end
        window.more(BLOCK)
        text = window.text
