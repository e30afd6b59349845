"""What the reader repaired or left out: collected as it happens, told once for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.report.findings import Warning
from analyzer.sources.limits import MAX_DISTANCE_NS

_DAY = MAX_DISTANCE_NS // (3600 * 10**9)

#: code -> (message with {n}, is a repair of damaged text). A repair is an error in strict mode.
CODES: dict[str, tuple[str, bool]] = {
    "invalid-escape": ("{n} strings with raw backslashes (Windows paths) were read as they stand", True),
    "bare-quote": ("{n} bare quotes inside strings were read as text", True),
    "control-byte": ("{n} raw line breaks or control bytes inside strings were read as text", True),
    "invalid-utf8": ("{n} undecodable bytes were replaced by U+FFFD", True),
    "lone-surrogate": ("{n} halves of surrogate pairs were replaced by U+FFFD", True),
    "bare-word": ("{n} bare words (NaN, inf, N/A, ...) stood where JSON wants a value", True),
    "bad-number": ("{n} malformed or oversized numbers were repaired or left out", True),
    "stray-comma": ("{n} commas too many were skipped", True),
    "missing-comma": ("{n} missing commas were put in", True),
    "stray-bracket": ("{n} brackets too many were skipped", True),
    "byte-order-mark": ("the text starts with a byte order mark", True),
    "utf-16": ("the text is UTF-16; byte offsets refer to its UTF-8 form", True),
    "damaged-event": (
        "damage in the middle of the file: {n} stretches could not be read and were skipped",
        True,
    ),
    "damaged-header": ("{n} values beside the events could not be read and were skipped", True),
    "oversized-header": ("{n} values beside the events were too large to keep", False),
    "truncated": ("{text}", True),
    "no-closing-bracket": ("the list of events is not closed, as the array form allows", False),
    "extra-data": (
        "extra data after the JSON document at byte {byte}: did two processes write the same file? "
        "Only the first document is used",
        True,
    ),
    "repeated-event-list": (
        "the file holds more than one list of events; all {n} further ones are used",
        True,
    ),
    "nested-event-list": ("the list of events lies inside another object", False),
    "ignored-event-list": ("{n} nested lists of events were left aside for the one at the top", False),
    "gzip-truncated": ("the compressed stream ends too early: what it held up to there is used", True),
    "gzip-damaged": ("the compressed stream is damaged: what it held up to there is used", True),
    "gzip-extra-data": ("the compressed stream is followed by other bytes, which are ignored", True),
    "bad-duration": ("{n} events with a negative, absent or impossible duration were left out", False),
    "bad-timestamp": ("{n} events without a usable timestamp were left out", False),
    "far-timestamp": (f"{{n}} events more than {_DAY} h from the median of all others were left out", False),
    "unmatched-begin-end": ("{n} B or E events have no partner and were left out", False),
    "unknown-category": ("{n} events of unknown categories were left out: {text}", False),
    "no-category": ("{n} events without a category, on lanes that say nothing, were left out", False),
    "no-events": ("no events to analyse", False),
}


@dataclass(slots=True)
class _Seen:
    count: int
    byte: int | None
    text: str


class Notes:
    """Kinds of trouble with the first place and the number of times."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def add(self, code: str, byte: int | None = None, count: int = 1, text: str = "") -> None:
        assert code in CODES, code
        seen = self._seen.get(code)
        if seen is None:
            self._seen[code] = _Seen(count, byte, text)
        else:
            seen.count += count
            if byte is not None and (seen.byte is None or byte < seen.byte):
                seen.byte = byte

    def __contains__(self, code: str) -> bool:
        return code in self._seen

    def count(self, code: str) -> int:
        seen = self._seen.get(code)
        return seen.count if seen else 0

    def first_repair(self) -> Warning | None:
        """The repair that comes first in the file, for strict mode."""
        repairs = [w for w in self.warnings() if CODES[w.code][1]]
        return min(repairs, key=lambda w: -1 if w.byte is None else w.byte, default=None)

    def warnings(self) -> tuple[Warning, ...]:
        out = []
        for code, seen in self._seen.items():
            message = CODES[code][0].format(n=f"{seen.count:,}", byte=seen.byte, text=seen.text)
            out.append(Warning(code, message, seen.byte, seen.count))
        return tuple(out)
