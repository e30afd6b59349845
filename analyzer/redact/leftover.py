"""A second look at what was written: the shapes of secrets, whatever key they stand under.

The first pass keeps only what is public, so nothing should be found here. Where something is (a kind that was kept
by name, a mistake of ours), no file is left.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from analyzer.errors import TraceError
from analyzer.redact.words import known

_SHAPES: tuple[tuple[str, re.Pattern[bytes]], ...] = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("an e-mail address", rb"[\w.+-]+@[\w-]+\.[A-Za-z]{2,}"),
        ("a private key", rb"-----BEGIN [A-Z ]*PRIVATE KEY"),
        ("an access key", rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("a token", rb"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20}|hf_[A-Za-z0-9]{20,}|"
                    rb"sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[\w-]{10,}|npm_[A-Za-z0-9]{30,}|AIza[\w-]{30,})"),
        ("a signed token", rb"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}"),
        ("a password in a URL", rb"://[^/\s:@\"]+:[^/\s@\"]+@"),
    )
)  # fmt: skip
_LONG = re.compile(rb"(?<![\w+/-])[A-Za-z0-9+/-]{28,}={0,2}(?![\w+/-])")
#: Bits a letter: words of English have about 3.6 at this length, base64 of noise above 4.3.
_NOISE = 4.2


class Leftover:
    """Looks at pieces of text as they are written."""

    def look(self, text: bytes) -> None:
        """Raises TraceError where the text holds the shape of a secret."""
        for what, pattern in _SHAPES:
            if pattern.search(text) is not None:
                self._fail(what)
        for found in _LONG.findall(text):
            if _entropy(found) >= _NOISE and not known(found.decode().replace("/", "_").replace("-", "_")):
                self._fail("a random string")

    @staticmethod
    def _fail(what: str) -> None:
        raise TraceError(
            f"what would be written holds {what}; nothing was written",
            None,
            "Leave --keep out, or rename what holds it; if it is none, it is a mistake of ours to report.",
        )


def _entropy(text: bytes) -> float:
    """Shannon's, in bits a letter; 0 where letters of both cases and digits are not all there."""
    if not (re.search(rb"[a-z]", text) and re.search(rb"[A-Z]", text) and re.search(rb"\d", text)):
        return 0.0
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
