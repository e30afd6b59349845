"""The stretch of a source that is held in memory while it is read."""

from __future__ import annotations

from analyzer.sources.stream import Source


class Passage:
    """The stretch of text that is being looked at: `text[at:]` is still to be read.

    offset  of text[0] in the file. final: the file ends where the text does.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = b""
        self.at = 0
        self.offset = source.offset
        self.final = False

    @property
    def end(self) -> int:
        return len(self.text)

    @property
    def position(self) -> int:
        """Offset in the file of what is to be read next."""
        return self.offset + self.at

    def more(self, size: int) -> None:
        """Drop what was read and append `size` bytes, or what there is."""
        kept = len(self.text) - self.at
        buffer = bytearray(kept + size)
        buffer[:kept] = self.text[self.at :]
        view = memoryview(buffer)
        filled = kept
        while filled < len(buffer):
            taken = self.source.readinto(view[filled:])
            if not taken:
                self.final = True
                break
            filled += taken
        self.offset += self.at
        self.at = 0
        self.text = bytes(view[:filled])

    def give_back(self) -> None:
        """Put everything that was not read back into the source."""
        self.source.unread(self.text[self.at :])
        self.text = b""
        self.at = 0
        self.offset = self.source.offset
        self.final = False
