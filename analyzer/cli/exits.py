"""Exit codes: what each says, once."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    FINE = 0
    BROKEN = 1  # and nothing else: a CI must be able to tell
    INPUT = 2
    BUG = 3
    INTERRUPT = 130
    PIPE = 141


MEANINGS = {
    Exit.FINE: "fine",
    Exit.BROKEN: "a limit is broken",
    Exit.INPUT: "usage, or a file that cannot be read or written",
    Exit.BUG: "a bug of ours",
    Exit.INTERRUPT: "interrupted",
    Exit.PIPE: "the reader of the output went away",
}
