"""Files that are no traces, told apart by what they begin with, and what to do with each."""

from __future__ import annotations

from collections.abc import Collection

from analyzer.errors import TraceError

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive", "Unpack it (unzip) and name the JSON file inside."),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "Unpack it first: zstd -d FILE."),
    (b"\xfd7zXZ\x00", "an xz file", "Unpack it first: xz -d FILE."),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it (7z x) and name the JSON file inside."),
    (b"BZh", "a bzip2 file", "Unpack it first: bzip2 -d FILE."),
    (b"\x04\x22\x4d\x18", "an LZ4 file", "Unpack it first: lz4 -d FILE."),
    (b"\x1f\x9d", "a compress (.Z) file", "Unpack it first: uncompress FILE."),
    (b"Rar!", "a RAR archive", "Unpack it and name the JSON file inside."),
    (b"SQLite format 3\x00", "an SQLite database (Nsight Systems exports such)",
     "Record with torch.profiler and export_chrome_trace instead."),
    (b"\x89PNG", "a PNG picture", "Name the trace itself, not a picture of it."),
    (b"\xff\xd8\xff", "a JPEG picture", "Name the trace itself, not a picture of it."),
    (b"%PDF", "a PDF document", "Name the trace itself."),
    (b"\x7fELF", "a program", "Name a trace file."),
    (b"NVIDIA", "a report of an NVIDIA tool", "Record with torch.profiler and export_chrome_trace."),
    (b"\x93NUMPY", "a NumPy array", "Name a trace file."),
)  # fmt: skip
_HTML = (b"<!doctype", b"<html", b"<?xml", b"<")
_WANTED = "A trace is the JSON that torch.profiler's export_chrome_trace writes."


def check_head(head: bytes, path: str) -> None:
    """Raise TraceError if text that begins with `head` cannot be JSON of any kind."""
    if not head:
        raise TraceError("the file is empty", path, "Did the run that wrote it end, and export its trace?")
    for magic, what, hint in _MAGIC:
        if head.startswith(magic):
            raise TraceError(f"not a trace but {what}", path, hint)
    if head[257:262] == b"ustar":
        raise TraceError("not a trace but a tar archive", path, "Unpack it and name the JSON file inside.")
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and len(head) > 2:
        raise TraceError("not a trace but a Python pickle", path, "Never unpickle files of strangers. " + _WANTED)
    text = head.lstrip(b" \t\r\n")
    if not text:
        if len(head) < 4096:
            raise TraceError("the file holds nothing but white space", path, _WANTED)
        return
    if text[:1] in b"{[":
        return
    if text.lower().startswith(_HTML):
        raise TraceError(
            "not a trace but a web page or XML", path, "Was a sign-in page downloaded in the trace's place?"
        )
    if _looks_like_protobuf(head):
        raise TraceError(
            "not a trace in JSON but, it seems, a Perfetto protobuf trace",
            path,
            "Convert it first: traceconv json FILE FILE.json.",
        )
    if b"\0" in head or sum(b < 9 or 13 < b < 32 for b in head) > len(head) // 10:
        raise TraceError("not a trace but a binary file", path, _WANTED)
    start = text[:40].decode("utf-8", "replace").split("\n")[0]
    raise TraceError(f"not JSON: the text begins with {start!r}", path, _WANTED)


def _looks_like_protobuf(head: bytes) -> bool:
    """Perfetto: field 1 (packets), length-delimited, with a length whose packet starts a field."""
    if head[:1] != b"\x0a" or len(head) < 4:
        return False
    length, at = 0, 1
    for at in range(1, min(6, len(head))):
        length |= (head[at] & 0x7F) << 7 * (at - 1)
        if head[at] < 0x80:
            break
    following = head[at + 1 + length : at + 2 + length]
    return length > 0 and (following == b"\x0a" or (not following and b"\0" in head))


def no_events_of_trace(path: str, elements: int) -> TraceError:
    """A list of objects that are no events."""
    return TraceError(f"not a trace: a list of {elements:,} elements of which none has a phase (`ph`)", path, _WANTED)


def no_event_list(path: str, keys: Collection[str]) -> TraceError:
    """A JSON object without a list of events."""
    found = set(keys)
    if {"schema", "nodes"} <= found:
        return TraceError(
            "not a profiler trace but an execution trace (ExecutionTraceObserver: schema, pid, nodes)",
            path,
            "Name the trace that torch.profiler wrote beside it.",
        )
    if "rocprofiler-sdk-tool" in found:
        return TraceError(
            "not a trace but rocprofv3's own JSON",
            path,
            "Record with torch.profiler and export_chrome_trace.",
        )
    shown = ", ".join(repr(key) for key in sorted(found)[:8]) or "none"
    return TraceError(f"not a trace: no `traceEvents` in it (keys: {shown})", path, _WANTED)
