"""Processes that parse blocks beside the reader's own.

The reader fills buffers that all share, says which stretch of which buffer to parse, and gets back
columns. A worker is a fresh interpreter that is started by its executable, never a fork: the caller
may hold threads and locks (Polars, a notebook) that a fork would copy in any state. It imports no
Polars and no numpy, and is up in a few hundredths of a second, in which this process goes on.

The standard library's pool would be as fast (two workers up in 0.06 s, these in 0.05), but its `spawn` imports the
caller's main module anew in each worker: a script that calls `analyze` outside of a guard would run three times.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import mmap
import os
import select
import struct
import subprocess
import sys
import tempfile
from collections import deque
from typing import Any

from analyzer.sources.kineto.block import BlockParser
from analyzer.sources.kineto.decode import Columns

#: Tasks that a worker may have before it has answered: one to work on, one to go on with.
_AHEAD = 2
_MAX_WORKERS = 16
_TASK = struct.Struct("<IIIQBB")  # buffer, start, end, offset in the file of its first byte, state, final
_LENGTH = struct.Struct("<I")
_COMMAND = (
    "import marshal, sys; sys.path[:] = marshal.loads(bytes.fromhex(sys.argv[1])); "
    "from analyzer.sources.kineto.pool import serve; serve(*map(int, sys.argv[2:]))"
)
_PIPE_SIZE = 1 << 20
_F_SETPIPE_SZ = 1031


class WorkerLost(Exception):
    """A worker ended before it had answered."""


class Buffers:
    """Memory that this process and its workers share, in equal parts."""

    def __init__(self, count: int, size: int) -> None:
        self.count = count
        self.size = size
        if hasattr(os, "memfd_create"):
            self.fd = os.memfd_create("tracecli")
        else:
            self.fd, path = tempfile.mkstemp(prefix="tracecli-")
            os.unlink(path)
        try:
            os.ftruncate(self.fd, count * size)
            self._maps = [mmap.mmap(self.fd, size, offset=i * size) for i in range(count)]
        except BaseException:
            os.close(self.fd)
            raise

    def __getitem__(self, index: int) -> mmap.mmap:
        return self._maps[index]

    def close(self) -> None:
        for part in self._maps:
            # A view may live on in the frames of an exception; the memory goes when they do.
            with contextlib.suppress(BufferError):
                part.close()
        os.close(self.fd)


class _Worker:
    def __init__(self, buffers: Buffers, chunk: int) -> None:
        path = marshal.dumps([os.path.abspath(p) if p else os.getcwd() for p in sys.path if isinstance(p, str)])
        arguments = (path.hex(), str(buffers.fd), str(buffers.count), str(buffers.size), str(chunk))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(buffers.fd,),
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.fcntl(self._out, _F_SETPIPE_SZ, _PIPE_SIZE)
        self.tasks: deque[int] = deque()
        self._answer = bytearray()
        self._separators: list[bytes] | None = None

    @property
    def fd(self) -> int:
        return self._out

    def give(self, number: int, task: bytes, separators: list[bytes]) -> None:
        """Send a task. Raises WorkerLost."""
        message = task
        known = b""
        if separators != self._separators:
            self._separators = list(separators)
            known = marshal.dumps(separators)
        message = task + _LENGTH.pack(len(known)) + known
        try:
            os.write(self._in, message)  # far below what a pipe takes at once
        except OSError:
            raise WorkerLost from None
        self.tasks.append(number)

    def receive(self) -> list[tuple[int, dict[str, Any]]]:
        """Read what is there; the answers that are whole. Raises WorkerLost."""
        try:
            piece = os.read(self._out, _PIPE_SIZE)
        except OSError:
            raise WorkerLost from None
        if not piece:
            raise WorkerLost
        self._answer += piece
        answers = []
        while len(self._answer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._answer)
            stop = _LENGTH.size + length
            if len(self._answer) < stop:
                break
            answers.append((self.tasks.popleft(), marshal.loads(self._answer[_LENGTH.size : stop])))
            del self._answer[:stop]
        return answers

    def close(self) -> None:
        process = self._process
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Pool:
    """Workers and their buffers. Blocks are numbered by the caller, and answered in any order."""

    def __init__(self, workers: int, block: int, chunk: int) -> None:
        workers = min(workers, _MAX_WORKERS)
        self.buffers = Buffers(_AHEAD * workers + 2, block)
        self._workers: list[_Worker] = []
        try:
            for _ in range(workers):
                self._workers.append(_Worker(self.buffers, chunk))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._workers)

    @property
    def has_room(self) -> bool:
        return any(len(worker.tasks) < _AHEAD for worker in self._workers)

    @property
    def is_busy(self) -> bool:
        return any(worker.tasks for worker in self._workers)

    def give(
        self,
        number: int,
        buffer: int,
        start: int,
        end: int,
        offset: int,
        state: int,
        final: bool,
        separators: list[bytes],
    ) -> None:
        """Have buffer[start:end] parsed; see `BlockParser.parse`. Raises WorkerLost."""
        worker = min(self._workers, key=lambda w: len(w.tasks))
        worker.give(number, _TASK.pack(buffer, start, end, offset, state, final), separators)

    def answers(self, wait: bool) -> list[tuple[int, int, dict[str, Any]]]:
        """(worker, number of the block, result) of what is done; with `wait`, of one block at least.

        Raises WorkerLost.
        """
        out: list[tuple[int, int, dict[str, Any]]] = []
        by_fd = {worker.fd: i for i, worker in enumerate(self._workers) if worker.tasks}
        poll = select.poll()
        for fd in by_fd:
            poll.register(fd, select.POLLIN | select.POLLHUP)
        while by_fd:
            ready = poll.poll(None if wait and not out else 0)
            if not ready:
                break
            for fd, _ in ready:
                index = by_fd[fd]
                out += [(index, number, result) for number, result in self._workers[index].receive()]
        return out

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self.buffers.close()


def can_start() -> bool:
    """Can this platform share memory with, and wait for, processes that it starts?"""
    return bool(sys.executable) and hasattr(select, "poll") and os.name == "posix"


def serve(fd: int, count: int, size: int, chunk: int) -> None:
    """A worker's life: parse what standard input names, until it ends."""
    gc.disable()
    buffers = [mmap.mmap(fd, size, prot=mmap.PROT_READ, offset=i * size) for i in range(count)]
    parser = BlockParser(Columns(), chunk)
    tasks, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        head = tasks.read(_TASK.size + _LENGTH.size)
        if len(head) < _TASK.size + _LENGTH.size:
            return
        buffer, start, end, offset, state, final = _TASK.unpack_from(head)
        (length,) = _LENGTH.unpack_from(head, _TASK.size)
        if length:
            parser.borders.use(marshal.loads(tasks.read(length)))
        done = parser.parse(buffers[buffer], start, end, offset, state, bool(final))
        answer = marshal.dumps(parser.result(done))
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()
