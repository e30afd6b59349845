"""Where elements of the event list begin and end, found in raw bytes.

The cheap way trusts the file's own layout: the text between two events, learnt from the first ones,
is searched from behind, and the JSON parser judges: if a chunk begins at the start of an element
and parses as `[chunk]`, it ends at the end of one. The exact way reads one element as JSON.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from mmap import mmap

from analyzer.sources.limits import MAX_ELEMENT

Text = bytes | bytearray | mmap

SPACE = re.compile(rb"[ \t\r\n]*")
#: The start of an event, as text: an opening brace and a key that events have.
EVENT_START = re.compile(rb'\{[ \t\r\n]*"(?:ph|name|cat|pid|tid|ts|dur|id|args|s|bp|tts|tdur|cname)"[ \t\r\n]*:')
#: Where one element of a list ends and an object follows, in any layout.
_ANY_BORDER = re.compile(rb"\}[ \t\r\n]*,?[ \t\r\n]*(?=\{)")
_FIRST_KEY = re.compile(rb'\{[ \t\r\n]*"[^"\\]{1,40}"')
_DECODER = json.JSONDecoder(strict=False)
_FIRST_LOOK = 16 << 10


def skip_space(text: Text, at: int, end: int) -> int:
    found = SPACE.match(text, at, end)
    return found.end() if found else at


def element_end(text: Text, at: int, end: int) -> int | None:
    """End of the JSON value that begins at `at`; None if it is none, or does not end before `end`."""
    size = _FIRST_LOOK
    while True:
        stop = min(end, at + size)
        # One character a byte: positions stay positions, whatever the text's encoding.
        piece = bytes(text[at:stop]).decode("latin-1")
        try:
            stop_at = _DECODER.raw_decode(piece)[1]
            # A number or a word at the very end of the piece may go on behind it.
            if stop_at < len(piece) or stop == end or piece[-1] in '}]"':
                return at + stop_at
        except json.JSONDecodeError as error:
            cut = error.pos >= len(piece) - 16 or error.msg.startswith(("Unterminated", "Invalid \\u"))
            if stop == end or not cut or size > MAX_ELEMENT:
                return None
        except (RecursionError, ValueError):
            return None
        size *= 8


class Borders:
    """Finds the last border between two elements before a position."""

    def __init__(self) -> None:
        self._separators: list[bytes] = []

    def learn(self, text: Text, at: int, end: int) -> None:
        """Look at the first elements of a list from `at`, and remember what stands between them."""
        gaps: Counter[bytes] = Counter()
        starts: Counter[bytes] = Counter()
        for _ in range(12):
            stop = element_end(text, at, end)
            if stop is None:
                break
            start = skip_space(text, stop, end)
            if start >= end:
                break
            if text[start : start + 1] == b",":
                start = skip_space(text, start + 1, end)
            key = _FIRST_KEY.match(text, start, end)
            if key is None or text[stop - 1 : stop] != b"}":
                break
            gaps[bytes(text[stop - 1 : start + 1])] += 1
            starts[bytes(text[stop - 1 : key.end()])] += 1
            at = start
        for seen in (starts, gaps):
            for separator, _ in seen.most_common(2):
                if separator not in self._separators:
                    self._separators.append(separator)

    @property
    def separators(self) -> list[bytes]:
        return self._separators

    def use(self, separators: list[bytes]) -> None:
        self._separators = list(separators)

    def last(self, text: Text, start: int, end: int) -> int | None:
        """Position just behind the closing brace of the last border in [start, end), if any."""
        for separator in self._separators:
            at = text.rfind(separator, start, end)
            if at >= 0:
                return at + 1
        # Another layout: the tail end is searched in full, since a pattern cannot search backwards.
        for reach in (1 << 12, 1 << 16, end - start):
            low = max(start, end - reach)
            found = None
            for found in _ANY_BORDER.finditer(text, low, end):  # noqa: B007
                pass
            if found is not None:
                return found.start() + 1
            if low == start:
                break
        return None
