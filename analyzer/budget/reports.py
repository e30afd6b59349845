"""The baseline: a report that `tracecli analyze -o FILE.json` has saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analyzer.errors import TraceError
from analyzer.model import SCHEMA_VERSION

_WRITE = "tracecli analyze RUN.json -o baseline.json writes one"


def read(path: str) -> dict[str, Any]:
    """The contract of a saved report. Raises TraceError where it is none."""
    import orjson

    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        raise TraceError("there is no such report", path, _WRITE) from None
    except (OSError, ValueError) as e:
        raise TraceError(f"the report cannot be read: {getattr(e, 'strerror', None) or e}", path) from None
    if not text.strip():
        raise TraceError("the report is empty", path, _WRITE)
    try:
        contract = orjson.loads(text.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as e:
        raise TraceError(f"is no JSON report: {e}", path, _WRITE) from None
    version = contract.get("schema_version") if isinstance(contract, dict) else None
    if not isinstance(contract, dict) or not isinstance(version, int) or not isinstance(contract.get("trace"), dict):
        empty = contract == {} or contract == []
        raise TraceError("the report is empty" if empty else "is no report of tracecli", path, _WRITE)
    if version > SCHEMA_VERSION:
        raise TraceError(
            f"the report is of version {version}, and this tracecli knows up to {SCHEMA_VERSION}",
            path,
            "update tracecli, or write the report again with this one",
        )
    return contract
