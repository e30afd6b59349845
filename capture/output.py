"""Where a trace goes, and how it gets there: whole or not at all."""

import contextlib
import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import torch

_SUFFIXES = (".json.gz", ".json")
_TRACE_NAME = re.compile(rb'"traceName":\s*"(?:[^"\\]|\\.)*"')
_TAIL_BYTES = 65536


def check(path: str | os.PathLike[str]) -> Path:
    """The path, if traces are written under such a name; else ValueError."""
    path = Path(path)
    if not path.name.endswith(_SUFFIXES) or path.name in _SUFFIXES:
        raise ValueError(f"a trace is written as NAME.json or NAME.json.gz, not {path.name!r}")
    return path


def rank() -> tuple[int, int] | None:
    """(rank, world size) in a distributed run, however it was started; else None."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    number, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "1")
    if number.isdecimal() and world.isdecimal():
        return int(number), int(world)
    return None


def name_for(path: Path, cycle: int, cycles: int) -> Path:
    """`run.json.gz`, with the rank and the repetition in the name where there is more than one."""
    suffix = next(s for s in _SUFFIXES if path.name.endswith(s))
    stem = path.name.removesuffix(suffix)
    if (where := rank()) is not None:
        stem += f".rank-{where[0]}"
    if cycles > 1:
        stem += f".part-{cycle + 1}"
    return path.with_name(stem + suffix)


def write(path: Path, export: Callable[[str], object]) -> None:
    """Let `export` write plain JSON beside `path`, then put it in place under its name.

    A reader never sees half a file, and a failure leaves none behind. Raises OSError, or what `export`
    raises.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = path.with_name(f".{path.name}.{os.getpid()}.part.json")
    packed = path.with_name(f".{path.name}.{os.getpid()}.part.gz")
    try:
        export(str(plain))
        _set_trace_name(plain, path.name.removesuffix(".gz"))
        if path.name.endswith(".gz"):
            with open(plain, "rb") as source, open(packed, "wb") as raw:
                # No time and no name inside: the same events give the same bytes.
                with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                _to_disk(raw.fileno())
            os.replace(packed, path)
        else:
            with open(plain, "rb") as source:
                _to_disk(source.fileno())
            os.replace(plain, path)
    finally:
        for leftover in (plain, packed):
            with contextlib.suppress(FileNotFoundError):
                leftover.unlink()


def _to_disk(descriptor: int) -> None:
    # Some file systems cannot; the file is then as safe as they make it.
    with contextlib.suppress(OSError):
        os.fsync(descriptor)


def _set_trace_name(path: Path, name: str) -> None:
    """The profiler notes the path it wrote to, which is our temporary one; put the final name there."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        start = max(0, size - _TAIL_BYTES)
        file.seek(start)
        tail = file.read()
        found = list(_TRACE_NAME.finditer(tail))
        if not found:
            return
        new = b'"traceName": ' + json.dumps(name).encode()
        file.seek(start + found[-1].start())
        file.write(new + tail[found[-1].end() :])
        file.truncate()
