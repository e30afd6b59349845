"""MANIFEST.json: what each recorded file is, why it is kept, and what a report of it must find.

fixtures         what was recorded, by name; written anew with each recording
failed, skipped  why there is none
findings         by fixture, what an expert would say of it: `must`, errors and warnings in the report's order;
                 `notes`, likewise; `why`, in a sentence. Written by hand, and kept when a fixture is recorded anew
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = "MANIFEST.json"


def digest(path: Path) -> dict[str, Any]:
    """Size in bytes, and SHA-256 in hexadecimal."""
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a folder; an empty one where there is none yet. Raises ValueError if it is no JSON."""
    path = folder / NAME
    if not path.exists():
        return {"version": 1, "total_bytes": 0, "fixtures": {}, "failed": {}, "skipped": {}, "findings": {}}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def put(folder: Path, kind: str, name: str, entry: Any) -> None:
    """Set one entry; kind is `fixtures`, `failed` or `skipped`. Safe against other ranks that do the same."""
    with _locked(folder):
        manifest = read(folder)
        for other in ("fixtures", "failed", "skipped"):
            manifest[other].pop(name, None)
        manifest[kind][name] = entry
        manifest[kind] = dict(sorted(manifest[kind].items()))
        manifest["total_bytes"] = sum(f["bytes"] for f in manifest["fixtures"].values())
        beside = folder / f".{NAME}.{os.getpid()}.part"
        beside.write_text(json.dumps(manifest, indent=1) + "\n")
        os.replace(beside, folder / NAME)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # The folder itself is the lock, so that no file is left behind.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
