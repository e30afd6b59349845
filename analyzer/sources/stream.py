"""Where the text of a trace comes from: a file, a pipe or standard input; plain or gzip; any Unicode.

A source is a stream of UTF-8 bytes that is read once, front to back, into buffers of the caller.
What a file is, is told by its content, never by its name.
"""

from __future__ import annotations

import codecs
import os
import queue
import stat
import sys
import threading
import zlib
from collections.abc import Callable
from typing import IO, Any, Protocol

from analyzer.errors import TraceError
from analyzer.sources.limits import MAX_FREE_TEXT, MAX_RATIO
from analyzer.sources.notes import Notes

Progress = Callable[[int, "int | None"], None]

_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"
_UTF16 = ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
          (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))  # fmt: skip


class Stream(Protocol):
    """Bytes, front to back."""

    def readinto(self, buffer: memoryview) -> int:
        """Fill the front of `buffer`; the number of bytes, 0 only at the end."""
        ...

    def close(self) -> None: ...


class _File:
    """The bytes of a file, as they are."""

    def __init__(self, source: str, progress: Progress | None, file: IO[bytes] | None, copy: IO[bytes] | None) -> None:
        self.size: int | None = None
        self.taken = 0
        self._progress = progress
        self._path = source
        self._copy = copy
        self._own = source != "-" and file is None
        self._raw: Any = file
        if file is not None:
            return
        if not self._own:
            self._raw = getattr(sys.stdin, "buffer", None)
            if self._raw is None:
                raise TraceError("standard input is closed", source, "Name a file instead.")
            return
        try:
            info = os.stat(source)
            if stat.S_ISDIR(info.st_mode):
                raise TraceError(
                    "this is a directory; a single trace file is wanted",
                    source,
                    "Name one of the files in it.",
                )
            self._raw = open(source, "rb", buffering=0)  # noqa: SIM115
            if stat.S_ISREG(info.st_mode):
                self.size = info.st_size
        except FileNotFoundError:
            raise TraceError("there is no such file", source, "Check the path.") from None
        except PermissionError:
            raise TraceError("no permission to read this file", source, "Check its access rights.") from None
        except (OSError, ValueError) as error:
            raise TraceError(f"the file cannot be opened: {_reason(error)}", source) from None

    def readinto(self, buffer: memoryview) -> int:
        try:
            taken = self._raw.readinto(buffer) or 0
        except (OSError, ValueError) as error:
            raise TraceError(f"reading failed after {self.taken:,} bytes: {_reason(error)}", self._path) from None
        self.taken += taken
        if self._copy is not None:
            try:
                self._copy.write(buffer[:taken])
            except OSError as error:
                raise TraceError(
                    f"no copy can be kept of what is read: {_reason(error)}",
                    self._path,
                    "Write it to a file and name that, or set TMPDIR to a folder with room.",
                ) from None
        if self._progress is not None and taken:
            self._progress(self.taken, self.size)
        return int(taken)

    def close(self) -> None:
        if self._own and self._raw is not None:
            self._raw.close()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class _Prefixed:
    """A stream with some bytes put back in front."""

    def __init__(self, prefix: bytes, stream: Stream) -> None:
        self._prefix = prefix
        self._stream = stream

    def readinto(self, buffer: memoryview) -> int:
        if not self._prefix:
            return self._stream.readinto(buffer)
        taken = min(len(buffer), len(self._prefix))
        buffer[:taken] = self._prefix[:taken]
        self._prefix = self._prefix[taken:]
        return taken

    def close(self) -> None:
        self._stream.close()


class _Produced:
    """A stream whose bytes come in pieces, from `_next`."""

    def __init__(self) -> None:
        self._piece = memoryview(b"")

    def _next(self) -> bytes:
        """The next piece, never empty before the end."""
        raise NotImplementedError

    def readinto(self, buffer: memoryview) -> int:
        if not self._piece:
            self._piece = memoryview(self._next())
        taken = min(len(buffer), len(self._piece))
        buffer[:taken] = self._piece[:taken]
        self._piece = self._piece[taken:]
        return taken


class _Gzip(_Produced):
    """Unpacks in a thread, so that parsing goes on beside it. Takes several members, and whatever
    can be had of a damaged or cut stream."""

    def __init__(self, stream: Stream, notes: Notes, path: str) -> None:
        super().__init__()
        self._stream = stream
        self._notes = notes
        self._path = path
        self._in = self._out = 0
        self._pieces: queue.Queue[bytes | BaseException] = queue.Queue(maxsize=8)
        self._closed = False
        self._done = False
        self._thread = threading.Thread(target=self._run, name="tracecli-gzip", daemon=True)
        self._thread.start()

    def _next(self) -> bytes:
        if self._done:
            return b""
        piece = self._pieces.get()
        if isinstance(piece, BaseException):
            self._done = True
            raise piece
        self._done = not piece
        return piece

    def close(self) -> None:
        self._closed = True
        while self._thread.is_alive():
            try:
                self._pieces.get(timeout=0.05)
            except queue.Empty:
                continue
        self._stream.close()

    def _run(self) -> None:
        try:
            self._unpack()
            self._pieces.put(b"")
        except BaseException as error:  # noqa: BLE001 - raised again in the reader's thread
            self._pieces.put(error)

    def _read(self) -> bytes:
        buffer = bytearray(256 << 10)
        taken = self._stream.readinto(memoryview(buffer))
        self._in += taken
        return bytes(buffer[:taken])

    def _put(self, piece: bytes) -> None:
        if not piece:
            return
        self._out += len(piece)
        if self._out > MAX_FREE_TEXT and self._out > MAX_RATIO * self._in:
            raise TraceError(
                f"the file unpacks to over {MAX_RATIO} times its size: a decompression bomb, not a trace",
                self._path,
                "Unpack it by hand and look at it, if you trust where it comes from.",
            )
        self._pieces.put(piece)

    def _unpack(self) -> None:
        unpacker = zlib.decompressobj(31)
        data = self._read()
        while not self._closed:
            before = unpacker.copy()
            try:
                piece = unpacker.decompress(data, _PIECE)
            except zlib.error:
                self._salvage(before, data)
                return
            self._put(piece)
            data = unpacker.unconsumed_tail
            if unpacker.eof:
                data = unpacker.unused_data
                while not data.strip(b"\0"):  # members may be padded to blocks of a tape
                    data = self._read()
                    if not data:
                        return
                data = data.lstrip(b"\0")
                if len(data) < 2:
                    data += self._read()
                if not data.startswith(_GZIP):
                    self._notes.add("gzip-extra-data")
                    return
                unpacker = zlib.decompressobj(31)
            elif not data and not piece:
                data = self._read()
                if not data:
                    self._put(unpacker.flush())
                    self._notes.add("gzip-truncated")
                    return
            elif not data:
                data = self._read() or b""

    def _salvage(self, unpacker: Any, data: bytes) -> None:
        """Everything that unpacks before the fault, byte by byte near it."""
        self._notes.add("gzip-damaged")
        for step in (4096, 64, 1):
            while data:
                before = unpacker.copy()
                try:
                    piece = unpacker.decompress(data[:step])
                except zlib.error:
                    unpacker = before
                    break
                self._put(piece)
                data = data[step:]
                if unpacker.eof:
                    return


class _Transcoded(_Produced):
    """UTF-16 or UTF-32 as UTF-8."""

    def __init__(self, stream: Stream, encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._done = False

    def _next(self) -> bytes:
        buffer = bytearray(_PIECE)
        while not self._done:
            taken = self._stream.readinto(memoryview(buffer))
            self._done = not taken
            text = self._decoder.decode(bytes(buffer[:taken]), final=self._done)
            if text:
                return text.encode("utf-8", "replace")
        return b""

    def close(self) -> None:
        self._stream.close()


class Source:
    """The text of a trace as UTF-8.

    source  a path, or "-". file: what is open under it already. copy: gets all bytes of the file as they are read.
    format  "json" or "json.gz", as found. `offset`: of the next byte that `readinto` gives.
    Raises TraceError where the file cannot be opened or read, or unpacks without end.
    """

    def __init__(
        self,
        source: str,
        notes: Notes,
        progress: Progress | None = None,
        *,
        file: IO[bytes] | None = None,
        copy: IO[bytes] | None = None,
    ) -> None:
        self.path = source
        self.offset = 0
        self.format = "json"
        self.at_end = False
        self._back: list[bytes] = []
        raw = _File(source, progress, file, copy)
        self.size = raw.size
        self._raw = raw
        self._stream: Stream = raw
        try:
            head = self._sniff()
            if head.startswith(_GZIP):
                self.format = "json.gz"
                self._stream = _Gzip(self._stream, notes, source)
                head = self._sniff()
            self._decode(head, notes)
        except BaseException:
            self.close()
            raise

    @property
    def taken(self) -> int:
        """Bytes read of the file itself."""
        return self._raw.taken

    def _sniff(self) -> bytes:
        """The first bytes, put back. A pipe may give them in dribs."""
        head = b""
        buffer = bytearray(4096)
        while len(head) < 64:
            taken = self._stream.readinto(memoryview(buffer))
            if not taken:
                break
            head += bytes(buffer[:taken])
        self._stream = _Prefixed(head, self._stream)
        return head

    def _decode(self, head: bytes, notes: Notes) -> None:
        if head.startswith(codecs.BOM_UTF8):
            # The mark counts for offsets: they refer to the file as it is.
            self._stream.readinto(memoryview(bytearray(3)))
            self.offset = 3
            notes.add("byte-order-mark", 0)
            return
        encoding = next((name for mark, name in _UTF16 if head.startswith(mark)), None)
        if encoding is not None:
            self._stream.readinto(memoryview(bytearray(4 if "32" in encoding else 2)))
        elif len(head) >= 4 and head[0] in b"{[ \r\n\t" and head[1] == 0 and head[2] != 0:
            encoding = "utf-16-le"
        elif len(head) >= 4 and head[0] == 0 and head[1] in b"{[ \r\n\t" and head[2] == 0:
            encoding = "utf-16-be"
        if encoding is not None:
            notes.add("utf-16", 0)
            self._stream = _Transcoded(self._stream, encoding)

    def readinto(self, buffer: memoryview) -> int:
        """Fill the front of `buffer` with text; 0 only at the end."""
        if self._back:
            piece = self._back.pop()
            taken = min(len(buffer), len(piece))
            buffer[:taken] = piece[:taken]
            if taken < len(piece):
                self._back.append(piece[taken:])
        else:
            taken = 0 if self.at_end else self._stream.readinto(buffer)
            self.at_end = self.at_end or not taken
        self.offset += taken
        return taken

    def unread(self, piece: bytes) -> None:
        """Put bytes back: they are read again, first."""
        if piece:
            self._back.append(piece)
            self.offset -= len(piece)

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
