"""Encodings, packed files, and files that are no traces."""

from __future__ import annotations

import gzip
import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from analyzer.errors import TraceError
from analyzer.sources.kineto.read import read
from tests.sources import micro
from tests.sources.compare import host_rows, read_bytes, same

TEXT = micro.dump(micro.mixed(4, 50))


@pytest.mark.parametrize(
    ("encoding", "code"),
    [("utf-8-sig", "byte-order-mark"), ("utf-16", "utf-16"), ("utf-16-le", "utf-16"), ("utf-16-be", "utf-16"),
     ("utf-32", "utf-16")],
)  # fmt: skip
def test_encodings(encoding: str, code: str) -> None:
    trace = read_bytes(TEXT.decode().encode(encoding))
    assert host_rows(trace) == host_rows(read_bytes(TEXT))
    assert [(w.code, w.byte) for w in trace.warnings] == [(code, 0)]
    with pytest.raises(TraceError):
        read_bytes(TEXT.decode().encode(encoding), strict=True)


def test_offsets_count_the_mark() -> None:
    text = b'\xef\xbb\xbf[{"ph": "X", "name": "a\\d"}]'
    (warning,) = (w for w in read_bytes(text).warnings if w.code == "invalid-escape")
    assert warning.byte == text.index(b"\\")


def test_several_gzip_members() -> None:
    parts = [TEXT[:100], TEXT[100:1000], b"", TEXT[1000:]]
    packed = b"".join(map(gzip.compress, parts))
    assert same(read_bytes(packed), read_bytes(gzip.compress(TEXT)))
    assert read_bytes(packed).warnings == ()
    assert read_bytes(packed + b"\0" * 512).warnings == ()


@pytest.mark.parametrize(
    ("packed", "code"),
    [
        (gzip.compress(TEXT)[:-8], "gzip-truncated"),
        (gzip.compress(TEXT)[:-1], "gzip-truncated"),
        (gzip.compress(TEXT)[:-8] + b"\0" * 8, "gzip-damaged"),
        (gzip.compress(TEXT) + b"garbage", "gzip-extra-data"),
    ],
)
def test_faults_behind_the_last_packed_byte_cost_nothing(packed: bytes, code: str) -> None:
    trace = read_bytes(packed)
    assert [w.code for w in trace.warnings] == [code]
    assert same(read_bytes(gzip.compress(TEXT)), trace) is False
    assert (trace.events, trace.bytes, trace.truncated) == (50, len(TEXT), False)
    with pytest.raises(TraceError, match="strict"):
        read_bytes(packed, strict=True)


def test_a_cut_stream_gives_what_it_holds() -> None:
    packed = gzip.compress(TEXT)[: len(gzip.compress(TEXT)) // 2]
    trace = read_bytes(packed)
    assert 5 < trace.events < 50
    assert trace.truncated_at_byte == trace.bytes
    assert {"gzip-truncated", "truncated"} <= {w.code for w in trace.warnings}


def test_a_damaged_stream_gives_what_comes_before() -> None:
    # Stored blocks, so that the place of the fault is known: the first block is whole.
    packer = zlib.compressobj(0, wbits=31)
    packed = bytearray(packer.compress(TEXT[:3000]) + packer.flush(zlib.Z_FULL_FLUSH))
    good = len(packed)
    packed += packer.compress(TEXT[3000:]) + packer.flush()
    packed[good] = 0x07  # a block type that does not exist
    trace = read_bytes(bytes(packed))
    assert trace.bytes == 3000
    assert "gzip-damaged" in {w.code for w in trace.warnings}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b" \n\t ", "white space"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "PNG"),
        (b"PK\x03\x04" + b"\0" * 50, "zip"),
        (b"\x28\xb5\x2f\xfd" + b"\0" * 50, "Zstandard"),
        (b"\xfd7zXZ\x00" + b"\0" * 50, "xz"),
        (b"7z\xbc\xaf\x27\x1c" + b"\0" * 50, "7z"),
        (b"BZh91AY", "bzip2"),
        (pickle.dumps({"a": 1}), "pickle"),
        (b"SQLite format 3\x00" + b"\0" * 50, "SQLite"),
        (b"\x0a\x14" + b"\x08\x01" * 10 + b"\x0a\x02\x08\x01", "protobuf"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"not a trace\n", "not JSON"),
        (b"ts,dur\n1,2\n", "not JSON"),
        (b"\x00\x01\x02\x03" * 20, "binary"),
        (b'{"schema": "1.1.1", "pid": 5, "time": "x", "nodes": []}', "execution trace"),
        (b'[{"file": "a", "batch_size": 3}]', "none has a phase"),
        (b'{"rocprofiler-sdk-tool": [1]}', "rocprof"),
        (b'{"a": 1, "b": {"c": []}}', "'a', 'b'"),
        (b"{}", "no `traceEvents`"),
        (b"[1, 2, 3]", "none has a phase"),
        (b'"just text"', "not JSON"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_files_that_are_no_traces_are_told_apart(data: bytes, said: str, packed: bool) -> None:
    with pytest.raises(TraceError, match=said) as caught:
        read_bytes(gzip.compress(data) if packed else data)
    assert caught.value.where is not None
    assert caught.value.hint


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="directory"):
        read(tmp_path)
    with pytest.raises(TraceError, match="no such file"):
        read(tmp_path / "absent.json")
    with pytest.raises(TraceError, match="cannot be opened"):
        read("a\0b")
    closed = tmp_path / "closed.json"
    closed.write_bytes(TEXT)
    closed.chmod(0)
    if os.geteuid():
        with pytest.raises(TraceError, match="permission"):
            read(closed)


def test_importing_the_reader_is_cheap() -> None:
    code = (
        "import sys; import analyzer.sources.kineto.read, analyzer.events.schema; "
        "sys.exit(bool({'polars', 'numpy'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
