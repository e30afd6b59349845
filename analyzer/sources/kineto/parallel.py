"""One list of events, read by workers: fills buffers, cuts them at borders, takes results in order.

Blocks are cut at borders that are likely, not certain. Each is parsed as if its start were one; it
counts only when the block before it ended exactly there. Where one did not (damage at a border, the
end of the list), everything behind is put back into the source, and read again from the right place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.sources.kineto.block import ELEMENT, MORE
from analyzer.sources.kineto.framing import Borders
from analyzer.sources.kineto.pool import Pool, WorkerLost
from analyzer.sources.stream import Source

#: (worker, result, offset of the buffer) of a block whose start is certain.
Accept = Callable[[int, dict[str, Any]], None]
#: (worker, result) of a block that does not count: only its new text is to be learnt.
Discard = Callable[[int, dict[str, Any]], None]


class _Block:
    __slots__ = ("buffer", "end", "offset")

    def __init__(self, buffer: int, end: int, offset: int) -> None:
        self.buffer = buffer
        self.end = end
        self.offset = offset


def read_blocks(source: Source, pool: Pool, borders: Borders, state: int, accept: Accept, discard: Discard) -> bool:
    """Read the list that `source` stands in, up to where blocks no longer fit together.

    The source then stands behind what was accepted. False: a worker was lost; nothing is missing, but
    the pool is of no more use. True: otherwise.
    """
    return _Run(source, pool, borders, state, accept, discard).run()


class _Run:
    def __init__(
        self, source: Source, pool: Pool, borders: Borders, state: int, accept: Accept, discard: Discard
    ) -> None:
        self.source = source
        self.pool = pool
        self.borders = borders
        self.state = state
        self.accept = accept
        self.discard = discard
        self.free = list(range(pool.buffers.count))
        self.blocks: dict[int, _Block] = {}
        self.results: dict[int, tuple[int, dict[str, Any]]] = {}
        self.given = self.taken = 0
        self.carry = b""
        self.exhausted = False  # nothing more is to be given

    def run(self) -> bool:
        try:
            while True:
                while not self.exhausted and self.free and self.pool.has_room:
                    self._give()
                if self.taken == self.given:
                    break
                for worker, number, result in self.pool.answers(wait=not self._can_take()):
                    self.results[number] = (worker, result)
                while self._can_take():
                    if not self._take():
                        self._wait_for_all()
                        return True
        except WorkerLost:
            self._put_back(0)
            return False
        self.source.unread(self.carry)
        return True

    def _can_take(self) -> bool:
        return self.taken in self.results

    def _give(self) -> None:
        """Fill a buffer and have it parsed, up to its last border."""
        source, carry = self.source, self.carry
        index = self.free.pop()
        text = self.pool.buffers[index]
        size = len(text)
        offset = source.offset - len(carry)
        text[: len(carry)] = carry
        filled, final = len(carry), False
        with memoryview(text) as view:
            while filled < size:
                taken = source.readinto(view[filled:])
                if not taken:
                    final = True
                    break
                filled += taken
        end: int | None = filled
        if not final:
            # Nothing is lost by a border that is a little early; looking for it far back is slow.
            end = self.borders.last(text, max(0, filled - size // 4), filled)
        if final or end is None:
            self.exhausted = True
        if end is None:
            self.carry = text[:filled]
            self.free.append(index)
            return
        self.carry = text[end:filled]
        number = self.given
        self.given += 1
        self.blocks[number] = _Block(index, end, offset)
        state = self.state if number == 0 else ELEMENT
        self.pool.give(number, index, 0, end, offset, state, final, self.borders.separators)

    def _take(self) -> bool:
        """Accept the next block. False: the next one does not begin where it ended."""
        number = self.taken
        worker, result = self.results.pop(number)
        block = self.blocks[number]
        read = result["end"]
        fits = result["how"] == MORE and read == block.end and result["state"] == ELEMENT
        self.accept(worker, result)
        self.taken += 1
        if fits:
            del self.blocks[number]
            self.free.append(block.buffer)
            return True
        self._put_back(read, number)
        return False

    def _put_back(self, read: int, number: int | None = None) -> None:
        """Put what was not accepted back into the source: of block `number` what is behind `read`, all
        later blocks, and what no block holds yet."""
        pieces = []
        for later in sorted(self.blocks):
            block = self.blocks[later]
            pieces.append(self.pool.buffers[block.buffer][read if later == number else 0 : block.end])
        pieces.append(self.carry)
        self.carry = b""
        self.source.unread(b"".join(pieces))

    def _wait_for_all(self) -> None:
        """Later blocks began at borders that were none: let their workers finish, and forget them."""
        while True:
            for number in sorted(self.results):
                self.discard(*self.results.pop(number))
            if not self.pool.is_busy:
                return
            for worker, number, result in self.pool.answers(wait=True):
                self.results[number] = (worker, result)
