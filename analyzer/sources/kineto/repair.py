"""One damaged JSON value, read with tolerance and written anew as valid JSON.

Repairs are exact: text inside strings is kept as it stands, numbers that mean nothing become null.
What cannot be told for certain (a member that is missing, a value cut in two) is `Broken`, and the
event is given up; `next_event` then finds the next intact one.

Decisions depend on the text alone, never on where a block of it happens to end: where the end is
too near to judge, `Incomplete` asks for more.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import orjson

from analyzer.sources.kineto.framing import EVENT_START, Text, element_end, skip_space
from analyzer.sources.limits import MAX_DEPTH, MAX_ELEMENT, MAX_SEARCH

_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"'[0], b"\\"[0], b","[0], b":"[0]
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = b"{"[0], b"}"[0], b"["[0], b"]"[0]

_NOT_SPECIAL = re.compile(rb'[^"\\]*')
_STRING_BODY = re.compile(rb'"(?:[^"\\]|\\.)*', re.DOTALL)
_ANY_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\)')
_ODD = re.compile(rb"[\\\x00-\x1f\x80-\xff]")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^ \t\r\n,\[\]{}":]+|\}[ \t\r\n]*(?=\{)', re.DOTALL)
_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_WORD = re.compile(rb'[^ \t\r\n,\[\]{}":]+')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_RAW_BACKSLASH = re.compile(rb'\\(")?')
_SURROGATES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LOOSE_NUMBER = re.compile(rb"([+-]?)0*(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?")
_HEX = re.compile(rb"0[xX][0-9a-fA-F]{1,16}")
_NAME = re.compile(rb"[A-Za-z_][\w.<>/+*&#@$-]*")
_NOTHING = frozenset(
    (
        b"nan",
        b"inf",
        b"infinity",
        b"n/a",
        b"na",
        b"none",
        b"null",
        b"nil",
        b"undefined",
        b"ind",
        b"qnan",
        b"snan",
    )
)
#: Bytes from a list's closing bracket to the colon of the key behind it, at most.
_WIDEST_CLOSE = 256
#: Digits that are worth a conversion.
_LONGEST_NUMBER = 1 << 20
#: What a parse in full counts for, in bytes looked at: it may fail deep down.
_COST_OF_PARSE = 4096
_VALUE_START = frozenset(b'"-0123456789[{tfnNI')

#: Keys that stand beside the event list at the top of real files.
_TOP_KEYS = (
    rb"traceName|displayTimeUnit|baseTimeNanoseconds|schemaVersion|deviceProperties|distributedInfo|INFO|ERROR"
    rb"|WARNING|metadata|otherData|systemTraceEvents|stackFrames|samples|traceEvents|record_shapes|with_stack"
    rb"|with_flops|with_modules|profile_memory|trace_id|viztracer_metadata|file_info|host_name"
    rb"|cuda_runtime_version|cuda_driver_version|cupti_version|roctracer_version|hip_runtime_version"
)
_LIST_CLOSE = re.compile(rb'\][ \t\r\n]*,[ \t\r\n]*"(?:' + _TOP_KEYS + rb')"[ \t\r\n]*:')
_FILE_CLOSE = re.compile(rb"\][ \t\r\n]*(?:\}[ \t\r\n]*)?\Z")


class Incomplete(Exception):
    """The text ends before it can be judged."""


class Broken(Exception):
    """The value cannot be recovered. `at`: where that became certain. `cut`: the text ended. `nested`:
    an event begins inside it."""

    def __init__(self, at: int, cut: bool = False, nested: bool = False) -> None:
        super().__init__(at)
        self.at = at
        self.cut = cut
        self.nested = nested


@dataclass(slots=True)
class Mended:
    """Valid JSON, where the original ended, and what was done: (code, position, times)."""

    text: bytes
    end: int
    notes: list[tuple[str, int, int]] = field(default_factory=list)


def mend(text: Text, at: int, end: int, final: bool, container: int = _OPEN_LIST) -> Mended:
    """Read the value at `at` with tolerance. `final`: nothing follows `end`.

    container: `[` or `{`, in which the value stands; says what may follow it.
    Raises Incomplete, Broken.
    """
    return _Mender(text, at, end, final, container).run()


class _Mender:
    def __init__(self, text: Text, at: int, end: int, final: bool, container: int) -> None:
        self.text = text
        self.at = at
        self.end = end
        self.final = final
        self.container = container
        self.notes: list[tuple[str, int, int]] = []
        self.out = bytearray()

    def run(self) -> Mended:
        i = self.at
        stack: list[int] = []
        out, notes = self.out, self.notes
        want = "value"
        while True:
            if want == "comma" and not stack:
                return Mended(bytes(out), i, notes)
            i = self._space(i)
            if i - self.at > MAX_ELEMENT:
                raise Broken(i)
            c = self.text[i]
            top = stack[-1] if stack else 0
            if want == "comma":
                if c == _COMMA:
                    i += 1
                    want = "key" if top == _OPEN else "value"
                    self._pending(i - 1)
                elif c == (_CLOSE if top == _OPEN else _CLOSE_LIST):
                    out.append(c)
                    stack.pop()
                    i += 1
                elif (top == _OPEN and c == _QUOTE) or (top == _OPEN_LIST and c in _VALUE_START):
                    notes.append(("missing-comma", i, 1))
                    self._pending(i)
                    want = "key" if top == _OPEN else "value"
                else:
                    raise Broken(i)
            elif want == "key":
                if c == _QUOTE:
                    i = self._string(i, _COLON)
                    if len(stack) > 1 and out.endswith(b'"ph"'):
                        raise Broken(i, nested=True)  # an event inside an event: this one has lost its end
                    i = self._space(i)
                    if self.text[i] != _COLON:
                        raise Broken(i)
                    out.append(_COLON)
                    i += 1
                    want = "value"
                elif c == _COMMA:
                    notes.append(("stray-comma", i, 1))
                    i += 1
                elif c == _CLOSE:
                    self._drop_pending(i)
                    out.append(c)
                    stack.pop()
                    i += 1
                    want = "comma"
                else:
                    raise Broken(i)
            elif c in (_OPEN, _OPEN_LIST):
                if len(stack) >= MAX_DEPTH:
                    raise Broken(i)
                stack.append(c)
                out.append(c)
                i += 1
                want = "key" if c == _OPEN else "value"
            elif c == _QUOTE:
                i = self._string(i, top or self.container)
                want = "comma"
            elif c == _CLOSE_LIST and top == _OPEN_LIST:
                self._drop_pending(i)
                out.append(c)
                stack.pop()
                i += 1
                want = "comma"
            elif c == _COMMA and top == _OPEN_LIST:
                notes.append(("stray-comma", i, 1))
                i += 1
            elif c in (_COMMA, _CLOSE) and top == _OPEN:
                notes.append(("bare-word", i, 1))  # "key": , with nothing for a value
                out += b"null"
                want = "comma"
            else:
                i = self._word(i)
                want = "comma"

    def _pending(self, at: int) -> None:
        self.out.append(_COMMA)

    def _drop_pending(self, at: int) -> None:
        if self.out and self.out[-1] == _COMMA:
            self.out.pop()
            self.notes.append(("stray-comma", at, 1))

    def _space(self, i: int) -> int:
        """First position from `i` that is no white space and inside the text."""
        i = skip_space(self.text, i, self.end)
        if i >= self.end:
            raise self._out_of_text(i)
        return i

    def _out_of_text(self, at: int) -> Exception:
        return Broken(at, cut=True) if self.final else Incomplete()

    # -- strings -----------------------------------------------------------------------------

    def _string(self, i: int, context: int) -> int:
        """Copy the string that opens at `i`; return the position behind it.

        context: `:` for a key, else the container that the value stands in.
        """
        text, end = self.text, self.end
        start = j = i + 1
        raw_from: int | None = None
        quotes: list[int] = []
        while True:
            found = _NOT_SPECIAL.match(text, j, end)
            assert found is not None
            j = found.end()
            if j - i > MAX_ELEMENT:
                raise Broken(j)
            if j + 1 >= end and (j >= end or not self.final or text[j] == _BACKSLASH):
                raise self._out_of_text(j)
            if text[j] == _BACKSLASH:
                if j + 6 > end and not self.final:
                    raise Incomplete
                escape = _ESCAPE.match(text, j, end)
                if escape is None:
                    raw_from = j if raw_from is None else raw_from
                    j += 1
                elif text[j + 1] == _QUOTE and raw_from is not None and self._ends(j + 1, context):
                    j += 1  # a raw path that ends with a backslash
                    break
                else:
                    j = escape.end()
                continue
            if self._ends(j, context):
                break
            before = j - 1
            while before > i and text[before] in b" \t\r\n":
                before -= 1
            if text[before] == _OPEN and EVENT_START.match(text, before, end):
                raise Broken(before)  # another event begins inside this string
            if context == _COLON:
                raise Broken(j)  # keys hold no quotes: what follows is no key's colon
            quotes.append(j)
            j += 1
        self._copy(start, j, quotes, raw_from)
        return j + 1

    def _ends(self, quote: int, context: int) -> bool:
        """Is the quote at `quote` followed by what follows a string in this context?"""
        i = self._after(quote + 1)
        if i is None:
            return True
        c = self.text[i]
        if context == _COLON:
            return c == _COLON
        if context == _OPEN:
            if c == _COMMA:
                i = self._after(i + 1)
                # A member that has lost its colon is a member: better no event than a wrong one.
                return i is None or self.text[i] in b",}" or self._is_key(i, b':"')
            if c == _CLOSE:
                i = self._after(i + 1)
                return i is None or self.text[i] in b",}]{"
            return c == _QUOTE and i > quote + 1 and self._is_key(i)
        if c == _COMMA:
            i = self._after(i + 1)
            return i is None or self.text[i] in _VALUE_START or self.text[i] in b",]"
        if c == _CLOSE_LIST:
            i = self._after(i + 1)
            return i is None or self.text[i] in b",}]"
        return False

    def _after(self, i: int) -> int | None:
        """Next position that is no white space; None at the end of the file."""
        i = skip_space(self.text, i, self.end)
        if i < self.end:
            return i
        if self.final:
            return None
        raise Incomplete

    def _is_key(self, i: int, followers: bytes = b":") -> bool:
        """Does a key stand at `i`, with its colon or what else of `followers`?"""
        if self.text[i] != _QUOTE:
            return False
        found = _STRING_BODY.match(self.text, i, self.end)
        assert found is not None
        if found.end() >= self.end:
            if self.final:
                return False
            raise Incomplete
        after = self._after(found.end() + 1)
        return after is not None and self.text[after] in followers

    def _copy(self, start: int, stop: int, quotes: list[int], raw_from: int | None) -> None:
        """Append text[start:stop] as a valid JSON string; `quotes` in it are bare."""
        notes = self.notes
        if raw_from is not None:
            notes.append(("invalid-escape", raw_from, 1))
        if quotes:
            notes.append(("bare-quote", quotes[0], len(quotes)))
        pieces = []
        for low, high in zip([start, *(q + 1 for q in quotes)], [*quotes, stop], strict=True):
            pieces.append(mend_body(bytes(self.text[low:high]), low, notes, raw_from is not None))
        self.out += b'"' + b'\\"'.join(pieces) + b'"'

    # -- words -------------------------------------------------------------------------------

    def _word(self, i: int) -> int:
        """Copy a number, a literal, or what stands in place of one."""
        found = _WORD.match(self.text, i, self.end)
        if found is None:
            raise Broken(i)
        stop = found.end()
        if stop >= self.end and not self.final:
            raise Incomplete
        if stop >= self.end:
            raise Broken(stop, cut=True)
        word = found[0]
        fixed, code = _fix_word(word)
        if fixed is None:
            raise Broken(i)
        if code:
            self.notes.append((code, i, 1))
        self.out += fixed
        return stop


def _fix_word(word: bytes) -> tuple[bytes | None, str]:
    """A bare word as valid JSON, and the code of the repair ("" where none was needed)."""
    if word in (b"true", b"false", b"null"):
        return word, ""
    if _NUMBER.fullmatch(word):
        sane = len(word) <= _LONGEST_NUMBER and math.isfinite(float(word))
        return (word, "") if sane else (b"null", "bad-number")
    if _HEX.fullmatch(word):
        return b"%d" % int(word, 16), "bare-word"
    lower = word.lower().lstrip(b"+-")
    if lower in _NOTHING or lower.startswith((b"nan(", b"-nan(")):
        return b"null", "bare-word"
    if lower in (b"true", b"false"):
        return lower, "bare-word"
    loose = _LOOSE_NUMBER.fullmatch(word)
    if loose is not None and (loose[2] or loose[3] or b"0" in word) and len(word) <= 300:
        sign = b"-" if loose[1] == b"-" else b""
        number = sign + (loose[2] or b"0") + (b"." + loose[3] if loose[3] else b"")
        number += b"e" + loose[4] if loose[4] else b""
        return (number if math.isfinite(float(number)) else b"null"), "bad-number"
    if len(word) <= 300 and _NAME.fullmatch(word):
        return b'"' + word + b'"', "bare-word"
    return None, ""


# -- the next intact event -------------------------------------------------------------------


def next_event(text: Text, at: int, end: int, final: bool) -> tuple[int, bool] | None:
    """(position, is an event) of what goes on after damage: the next event that can be read, or the
    bracket that closes the list. None: nothing does, up to the end of the file. Raises Incomplete.
    """
    spent = 0
    searched = at
    for found in EVENT_START.finditer(text, at, end):
        start = found.start()
        # The closing bracket is looked for piece by piece, or every search would go to the end.
        close = _LIST_CLOSE.search(text, searched, min(end, start + _WIDEST_CLOSE))
        if close is not None and close.start() < start:
            return close.start(), False
        searched = start
        if spent > MAX_SEARCH:
            break
        looked = _looked_at(text, start, end, final)
        if looked < 0:
            return start, True
        spent += looked
    close = _LIST_CLOSE.search(text, searched, end)
    if close is not None:
        return close.start(), False
    if not final:
        raise Incomplete
    closing = _FILE_CLOSE.search(text, max(at, end - 4096), end)
    return (closing.start(), False) if closing is not None else None


def _looked_at(text: Text, at: int, end: int, final: bool) -> int:
    """-1 where an event can be read at `at`; else how many bytes it took to see that none can."""
    looked = 64
    try:
        mended = mend(text, at, end, final)
    except Broken as broken:
        looked += broken.at - at
        stop = element_end(text, at, end) if broken.nested else None
        if stop is None:
            return looked + (_COST_OF_PARSE if broken.nested else 0)
        piece = bytes(text[at:stop])
    else:
        piece = mended.text
        looked += mended.end - at
    try:
        value = orjson.loads(piece)
    except orjson.JSONDecodeError:
        return looked
    return -1 if type(value) is dict and "ph" in value else looked


# -- many elements at once -------------------------------------------------------------------


def mend_many(piece: bytes) -> Mended | None:
    """Repair words and the insides of strings in a list of elements, in one go; None if that is not all
    there is to repair. The same repairs as `mend`, element by element, but ten times faster: files of
    one platform often have the same fault in every other event.

    piece: `[elements]`. Positions in the notes are those in `piece`.
    """
    notes: list[tuple[str, int, int]] = []

    def swap(found: re.Match[bytes]) -> bytes:
        token = found[0]
        if token[0] == _CLOSE:
            notes.append(("missing-comma", found.end(), 1))
            return b"},"
        if token[0] == _QUOTE:
            if _ODD.search(token) is None:
                return token
            return b'"' + mend_body(token[1:-1], found.start() + 1, notes) + b'"'
        after = skip_space(piece, found.end(), len(piece))
        if piece[after : after + 1] == b":":
            return token  # a key without quotes
        fixed, code = _fix_word(token)
        if code:
            notes.append((code, found.start(), 1))
        return token if fixed is None else fixed

    text = _TOKEN.sub(swap, piece)
    return Mended(text, len(piece), notes) if notes else None


def mend_body(body: bytes, at: int, notes: list[tuple[str, int, int]], raw: bool = False) -> bytes:
    """The inside of a string as valid JSON; `at`: its position, for the notes.

    raw: some backslash in it escapes nothing, so that all of them are meant as they stand; found out
    here if not known.
    """
    if not raw:
        for found in _ANY_ESCAPE.finditer(body):
            if found[1]:
                raw = True
                notes.append(("invalid-escape", at + found.start(), 1))
                break
    original = body
    if raw:
        body = _RAW_BACKSLASH.sub(lambda m: m[0] if m[1] else b"\\\\", body)
    first = _CONTROL.search(original)
    if first is not None:
        body, times = _CONTROL.subn(lambda m: b"\\u%04x" % m[0][0], body)
        notes.append(("control-byte", at + first.start(), times))
    if not body.isascii():
        try:
            original.decode()
        except UnicodeDecodeError as error:
            whole = body.decode("utf-8", "replace")
            times = whole.count("\ufffd") - body.count("\ufffd".encode())
            notes.append(("invalid-utf8", at + error.start, max(1, times)))
            body = whole.encode()
    if not raw and b"\\u" in body:
        times = 0

        def swap(found: re.Match[bytes]) -> bytes:
            nonlocal times
            if not found[1]:
                return found[0]
            times += 1
            return b"\\ufffd"

        body = _SURROGATES.sub(swap, body)
        if times:
            notes.append(("lone-surrogate", at, times))
    return body
