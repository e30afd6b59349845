"""One damaged JSON value, read with tolerance and written anew as valid JSON.

Repairs are exact: text inside strings is kept as it stands, numbers that mean nothing become null.
What cannot be told for certain (a member that is missing, a value cut in two) is `Broken`, and the
event is given up; `resume.next_event` then finds the next intact one.

Decisions depend on the text alone, never on where a block of it happens to end: where the end is
too near to judge, `Incomplete` asks for more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analyzer.sources.kineto import literals
from analyzer.sources.kineto.framing import EVENT_START, Text, skip_space
from analyzer.sources.limits import MAX_DEPTH, MAX_ELEMENT

_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"'[0], b"\\"[0], b","[0], b":"[0]
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = b"{"[0], b"}"[0], b"["[0], b"]"[0]

_NOT_SPECIAL = re.compile(rb'[^"\\]*')
_STRING_BODY = re.compile(rb'"(?:[^"\\]|\\.)*', re.DOTALL)
_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_WORD = re.compile(rb'[^ \t\r\n,\[\]{}":]+')
_VALUE_START = frozenset(b'"-0123456789[{tfnNI')


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
    """Valid JSON, where the original ended, and what was done."""

    text: bytes
    end: int
    notes: list[literals.Done]


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
        self.notes: list[literals.Done] = []
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
                    out.append(_COMMA)
                elif c == (_CLOSE if top == _OPEN else _CLOSE_LIST):
                    out.append(c)
                    stack.pop()
                    i += 1
                elif (top == _OPEN and c == _QUOTE) or (top == _OPEN_LIST and c in _VALUE_START):
                    notes.append(("missing-comma", i, 1))
                    out.append(_COMMA)
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
            pieces.append(literals.mend_body(bytes(self.text[low:high]), low, notes, raw_from is not None))
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
        fixed, code = literals.mend_word(word)
        if fixed is None:
            raise Broken(i)
        if code:
            self.notes.append((code, i, 1))
        self.out += fixed
        return stop
