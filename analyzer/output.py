"""The one writer of files: whole or not at all, and never over what was not meant.

A regular file is written beside its place and put there when all is well; what stood there stays until
then, and for good where anything fails. Devices and pipes are written straight, since they cannot be
replaced. Links are followed, as a shell's `>` does.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from analyzer.errors import TraceError


class Output:
    """A file to write, checked when it is made: before the work that fills it.

    path     as the user named it. size: bytes of the file once it is written; None for a device or a pipe.
    force    replace the file that is there.
    private  for the owner alone, whoever may read the file that is there.
    inputs   files that are read: not written over by whatever name, force or not; `-` is none.

    Raises TraceError where the file cannot be written, or must not be.
    """

    def __init__(
        self,
        path: Path,
        *,
        force: bool = False,
        private: bool = False,
        inputs: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        self.path = path
        self.size: int | None = None
        self._force = force
        self._private = private
        try:
            with _said(path):
                self._check(inputs)
        except ValueError as e:  # a name that no system takes
            raise TraceError(f"cannot write: {e}", str(path)) from e

    def _check(self, inputs: Iterable[str | os.PathLike[str]]) -> None:
        before = _stat(self.path)
        if before is not None and stat.S_ISDIR(before.st_mode):
            raise TraceError("cannot write: this is a folder", str(self.path))
        self._straight = before is not None and _is_straight(self.path, before.st_mode)
        self._real = os.path.realpath(self.path)
        if not self._straight and any(_same(self.path, other) for other in inputs if os.fspath(other) != "-"):
            raise TraceError("cannot write: this file is also read, or written as another", str(self.path))
        if before is not None and (not self._straight or stat.S_ISBLK(before.st_mode)):
            self._refuse()
        if self._straight:
            # Opened once and no more: a pipe's reader takes its closing for the end.
            if not os.access(self.path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        if before is not None:  # what is protected from writing is not replaced either
            os.close(os.open(self.path, os.O_WRONLY))
        with self._part():  # the folder takes a file
            pass

    def _refuse(self) -> None:
        if not self._force:
            raise TraceError("there is such a file already", str(self.path), "--force overwrites it.")

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The file, to be filled from its beginning; it is in its place once the block has ended well."""
        with _said(self.path):
            if self._straight:
                # What stands behind `/dev/stdout` may be a file that others write too.
                with open(os.open(self.path, os.O_WRONLY | os.O_APPEND), "wb") as file:
                    yield file
                return
            with self._part() as (part, file):
                yield file
                file.flush()
                os.fsync(file.fileno())  # some disks say only now that they are full
                self.size = os.fstat(file.fileno()).st_size
                file.close()
                before = _stat(self.path)
                if before is not None:  # it may have come since it was looked for
                    self._refuse()
                    if not self._private:
                        _take_over(part, before)
                os.replace(part, self._real)

    @contextmanager
    def _part(self) -> Iterator[tuple[str, IO[bytes]]]:
        """A file beside the target, under a name that nobody can have prepared; gone in the end."""
        part = os.path.join(os.path.dirname(self._real), f".tracecli-{os.urandom(8).hex()}.part")
        mode = 0o600 if self._private or os.path.exists(self._real) else 0o666
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode), "wb") as file:
                yield part, file
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)


_BINARY = getattr(os, "O_BINARY", 0)


def of(target: Output | Path) -> Output:
    """An output that was checked before, or that of a path, which replaces what is there."""
    return target if isinstance(target, Output) else Output(target, force=True)


@contextmanager
def _said(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as e:
        raise TraceError(f"cannot write: {e.strerror or e}", str(path)) from e


def _stat(path: Path) -> os.stat_result | None:
    """Of what the name leads to; None where nothing is there yet."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_straight(path: Path, mode: int) -> bool:
    """No regular file, or one that another process has opened and lends under the name of its descriptor."""
    folder = os.path.realpath(path.parent)
    return not stat.S_ISREG(mode) or folder == "/dev" or folder.startswith("/proc/")


def _same(path: Path, other: str | os.PathLike[str]) -> bool:
    """Do both names lead to one file, there or not yet?"""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))


def _take_over(part: str, before: os.stat_result) -> None:
    """Owner, where that is allowed, and mode of the file that was there."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(part, before.st_uid, before.st_gid)
    os.chmod(part, stat.S_IMODE(before.st_mode))
