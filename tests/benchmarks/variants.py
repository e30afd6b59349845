"""Other files made of a trace's events: several times over, on one line, packed."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path


def plain(trace: Path, out: Path) -> Path:
    """The text of a trace, unpacked."""
    with trace.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed:
        return trace
    with gzip.open(trace) as source, out.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return out


def repeated(trace: Path, out: Path, times: int) -> Path:
    """All events `times` over, in one list, as they stand; the copies have the times and ids of the original."""
    text = trace.read_bytes()
    first = text.index(b"[", text.index(b'"traceEvents"')) + 1
    behind = text.find(b'"traceName"', first)
    last = text.rindex(b"]", first, behind if behind > 0 else len(text))
    with out.open("wb") as target:
        target.write(text[:first])
        target.write(b",".join([text[first:last]] * times))
        target.write(text[last:])
    return out


def single_line(trace: Path, out: Path) -> Path:
    """The same events without any white space."""
    with out.open("w") as target:
        json.dump(json.loads(trace.read_bytes()), target, separators=(",", ":"))
    return out


def packed(trace: Path, out: Path) -> Path:
    with trace.open("rb") as source, gzip.open(out, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return out
