"""Input meant to harm: bounded memory and time, and a clear message or what could be had."""

from __future__ import annotations

import contextlib
import resource
import time
import zlib
from collections.abc import Iterator

import pytest

from analyzer.errors import TraceError
from analyzer.sources import limits
from tests.sources.compare import host_rows, read_bytes

EVENTS = b",".join(
    b'{"ph":"X","cat":"cpu_op","name":"n%d","pid":1,"tid":1,"ts":%d,"dur":1}' % (i, i) for i in range(20)
)
HEAD = b'{"traceEvents":['
SECONDS = 10.0
MEGABYTES = 400


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    yield
    assert time.process_time() - started < SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MEGABYTES


@pytest.mark.parametrize("where", ["event", "head"])
def test_a_string_without_end(where: str) -> None:
    size = limits.MAX_ELEMENT + (8 << 20)
    text = HEAD + EVENTS + b',{"ph":"X","name":"' if where == "event" else b'{"a":"'
    with pytest.raises(TraceError, match="larger than 32 MB") as caught:
        read_bytes(text + b"a" * size + b'"}')
    assert "byte" in (caught.value.where or "")


def test_a_huge_value_behind_the_events() -> None:
    trace = read_bytes(HEAD + EVENTS + b'],"x":"' + b"a" * (limits.MAX_ELEMENT + (8 << 20)) + b'"}')
    assert len(trace.host) == 20
    assert [w.code for w in trace.warnings] == ["oversized-header"]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (HEAD + EVENTS + b',{"ph":"X","args":' + b"[" * 10**6 + b"]" * 10**6 + b"}," + EVENTS + b"]}", 40),
        (HEAD + EVENTS + b',{"ph":"X","args":' + b'{"a":' * 10**6, 20),
        (b'{"a":' + b"[" * 10**6 + b"]" * 10**6 + b',"traceEvents":[' + EVENTS + b"]}", 20),
        (HEAD + b'{"ph":' * 300_000 + b"1" + b"}" * 300_000 + b"," + EVENTS + b"]}", None),
        (HEAD + b",".join([b'{"ph":"X","name":"a'] * 50_000) + b"," + EVENTS + b"]}", 20),
        (HEAD + b"," * 10**6 + EVENTS + b"}" * 10**6 + b"]}", 20),
        (HEAD + EVENTS + b',{"ph":"X","name":"' + b'a", "' * 50_000 + b'"},' + EVENTS + b"]}", 40),
        (HEAD + EVENTS + b',{"ph":"X","name":"' + b"\\q" * 200_000 + b'"},' + EVENTS + b"]}", 40),
        (HEAD + EVENTS + b',{"ph":"X","ts":' + b"9" * 10**6 + b"}," + EVENTS + b"]}", 40),
        (HEAD + b'"' * 500_001 + b"," + EVENTS + b"]}", None),
        (HEAD + b" " * 10**7 + EVENTS + b"]}", 20),
    ],
    ids=["brackets", "braces", "head", "nested", "starts", "commas", "quotes", "escapes", "digits", "odd", "space"],
)
def test_what_is_intact_survives(text: bytes, rows: int | None) -> None:
    trace = read_bytes(text)
    if rows is not None:
        assert len(trace.host) == rows


@pytest.mark.parametrize("text", [b"[" * 10**6, b'{"a":' * 10**6, b'{"ph":' * 10**5, b"{" * 10**6])
def test_brackets_and_nothing_else(text: bytes) -> None:
    with contextlib.suppress(TraceError):
        assert not len(read_bytes(text).host)


def test_damage_everywhere() -> None:
    with pytest.raises(TraceError, match="beyond use"):
        read_bytes(HEAD + b",".join([b'{"ph":"X" 1}', EVENTS[: EVENTS.index(b"}") + 1]] * 30_000) + b"]}")


@pytest.mark.parametrize("filling", [b" ", EVENTS[: EVENTS.index(b"}") + 1] + b","])
def test_a_decompression_bomb(filling: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyzer.sources.stream.MAX_FREE_TEXT", 4 << 20)
    packer = zlib.compressobj(5, wbits=31)
    piece = filling * ((1 << 20) // len(filling))
    packed = packer.compress(HEAD) + b"".join(packer.compress(piece) for _ in range(16))
    with pytest.raises(TraceError, match="bomb"):
        read_bytes(packed + packer.flush())


def test_numbers_of_a_thousand_digits() -> None:
    digits = b"9" * 1000
    event = b'{"ph":"X","cat":"cpu_op","name":"a","pid":%b,"tid":%b,"ts":%b,"dur":%b}'
    text = b"[" + b",".join(
        event % fields
        for fields in [(b"1", b"1", digits, b"1"), (b"1", b"1", b"5." + digits, b"1"), (digits, digits, b"5", b"1")]
    ) + b"]"  # fmt: skip
    trace = read_bytes(text)
    assert trace.events == 3
    assert [row[5] for row in host_rows(trace)] == [1000, 1000]


def test_arguments_nested_deeper_than_can_be_written() -> None:
    deep = b"[" * 400 + b"]" * 400
    event = b'{"ph":"X","cat":"%b","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"%b":%b}}'
    fields = [(b"cpu_op", b"Input Dims"), (b"cpu_op", b"Collective name"), (b"kernel", b"grid")]
    trace = read_bytes(b"[" + b",".join(event % (cat, key, deep) for cat, key in fields) + b"]")
    assert (len(trace.host), len(trace.device), trace.warnings) == (2, 1, ())


def test_markup_and_escapes_in_names_are_text() -> None:
    name = "\x1b[2J[red]<script>\u202e\x00\x07"
    escaped = "".join(f"\\u{ord(c):04x}" for c in name)
    trace = read_bytes(f'[{{"ph":"X","cat":"cpu_op","name":"{escaped}","pid":1,"tid":1,"ts":1,"dur":1}}]'.encode())
    assert host_rows(trace)[0][1] == name
