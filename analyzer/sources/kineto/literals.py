"""Strings and words that are no JSON, made valid: one by one, or all of a list in one go.

Two callers, one set of rules. `repair` reads an event that is damaged in its structure and asks for its literals;
`mend_all` goes over the literals of a whole piece ten times faster, for files that have the same fault in every
other event, as those of one platform do.
"""

from __future__ import annotations

import math
import re

from analyzer.sources.kineto.framing import skip_space

#: What was done: code, position, times.
Done = tuple[str, int, int]

_QUOTE, _CLOSE = b'"'[0], b"}"[0]

_ANY_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\)')
_ODD = re.compile(rb"[\\\x00-\x1f\x80-\xff]")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^ \t\r\n,\[\]{}":]+|\}[ \t\r\n]*(?=\{)', re.DOTALL)
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
    (b"nan", b"inf", b"infinity", b"n/a", b"na", b"none", b"null", b"nil", b"undefined", b"ind", b"qnan", b"snan")
)
#: Digits that are worth a conversion.
_LONGEST_NUMBER = 1 << 20


def mend_all(piece: bytes) -> tuple[bytes, list[Done]] | None:
    """Repair words and the insides of strings in a list of elements; None if that is not all there is to repair.

    piece: `[elements]`. Positions in the notes are those in `piece`.
    """
    notes: list[Done] = []

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
        fixed, code = mend_word(token)
        if code:
            notes.append((code, found.start(), 1))
        return token if fixed is None else fixed

    text = _TOKEN.sub(swap, piece)
    return (text, notes) if notes else None


def mend_body(body: bytes, at: int, notes: list[Done], raw: bool = False) -> bytes:
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


def mend_word(word: bytes) -> tuple[bytes | None, str]:
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
