"""The traces and cases that lie beside a checkout, where there are any."""

from __future__ import annotations

import gzip
from pathlib import Path

SHARED = Path(__file__).parents[3] / "shared"
CASES = SHARED / "cases"
TRACES = SHARED / "traces"


def text_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def small_traces(limit: int) -> list[Path]:
    """Packed traces of up to `limit` bytes, in order of their names."""
    return [p for p in sorted(TRACES.rglob("*.json.gz")) if p.stat().st_size <= limit]
