"""Other files made of a trace's events: several times over, on one line, packed."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

from analyzer.redact.raw import pieces
from analyzer.sources.notes import Notes
from analyzer.sources.stream import Source


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
    """All events `times` over, in one list; the copies have the times and ids of the original."""
    with out.open("wb") as target:
        for copy in range(times):
            with Source(str(trace), Notes()) as source:
                all_pieces = list(pieces(source, Notes())) if copy == times - 1 else pieces(source, Notes())
                separate = copy > 0
                for piece in all_pieces:
                    if piece.events:
                        target.write(b",\n  " if separate else b"")
                        target.write(piece.text)
                        separate = True
                    elif (copy == 0 and piece.offset == 0) or (copy == times - 1 and piece.offset > 0):
                        target.write(piece.text)
    return out


def single_line(trace: Path, out: Path) -> Path:
    """The same events without any white space."""
    with Source(str(trace), Notes()) as source, out.open("w") as target:
        target.write('{"schemaVersion":1,"traceEvents":[')
        first = True
        for piece in pieces(source, Notes()):
            if piece.events:
                text = json.dumps(json.loads(b"[" + piece.text + b"]"), separators=(",", ":"))[1:-1]
                target.write(text if first else "," + text)
                first = False
        target.write("]}")
    return out


def packed(trace: Path, out: Path) -> Path:
    with trace.open("rb") as source, gzip.open(out, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return out
