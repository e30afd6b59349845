"""The one error that a user sees: what went wrong, where, and what to do about it."""

from __future__ import annotations


class TraceError(Exception):
    """Input that cannot be used. The CLI prints it and exits with 2; nothing else does.

    what   a sentence: the fault, in the reader's words.
    where  the file, with the byte offset (0-based, of the uncompressed text) where one is known.
    hint   what the user can do next.
    """

    def __init__(self, what: str, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.what if self.where is None else f"{self.where}: {self.what}"]
        if self.hint:
            parts.append(self.hint)
        return "\n".join(parts)
