"""Damaged text: what is repaired, exactly how, and what is told of it."""

from __future__ import annotations

import pytest

from analyzer.errors import TraceError
from analyzer.events.schema import Trace
from tests.sources.compare import device_rows, host_rows, read_bytes, read_in_blocks, same

EVENT = b'{"ph": "X", "cat": "cpu_op", "name": "%b", "pid": 1, "tid": 1, "ts": %d, "dur": 5}'


def around(middle: bytes, before: int = 2, after: int = 2) -> bytes:
    """A trace with `middle` in its list, after and before intact events n0, n1, ..."""
    events = [EVENT % (b"n%d" % i, 10 * i) for i in range(before + after)]
    return (b'{"schemaVersion": 1,\n"traceEvents": [\n' + b",\n".join(events[:before]) + b",\n" + middle
            + b",\n" + b",\n".join(events[before:]) + b'\n],\n"traceName": "x.json"}')  # fmt: skip


def names(trace: Trace) -> list[str]:
    return [row[1] for row in host_rows(trace)]


def codes(trace: Trace) -> dict[str, int | None]:
    return {w.code: w.count for w in trace.warnings}


@pytest.mark.parametrize(
    ("raw", "name", "code", "at", "count"),
    [
        (rb"lab\demo\q.py", "lab\\demo\\q.py", "invalid-escape", 3, 1),
        (rb"C:\new\demo.py", "C:\\new\\demo.py", "invalid-escape", 6, 1),
        (rb"\\server\share", "\\\\server\\share", "invalid-escape", 8, 1),
        (rb"dir\x\ ", "dir\\x\\ ", "invalid-escape", 3, 1),
        (rb"a\u12 b", "a\\u12 b", "invalid-escape", 1, 1),
        (b'Box("left", "right")', 'Box("left", "right")', "bare-quote", 4, 4),
        (b'say "hi"', 'say "hi"', "bare-quote", 4, 1),  # the last one may well be the end: see below
        (b"two\nlines\there", "two\nlines\there", "control-byte", 3, 2),
        (b"nul\x00 esc\x1b[31m", "nul\x00 esc\x1b[31m", "control-byte", 3, 2),
        (b"a\xc7\x80\xff8", "aǀ�8", "invalid-utf8", 3, 1),
        (b"\xe2\x82 cut", "� cut", "invalid-utf8", 0, 1),
        (b"half \\ud83d here", "half � here", "lone-surrogate", 0, 1),
    ],
)
def test_names(raw: bytes, name: str, code: str, at: int, count: int) -> None:
    if raw.endswith(b'"') and code == "bare-quote":
        count = raw.count(b'"')
    text = around(EVENT % (raw, 15))
    trace = read_bytes(text)
    assert names(trace) == ["n0", "n1", name, "n2", "n3"]
    (warning,) = trace.warnings
    assert (warning.code, warning.byte, warning.count) == (code, text.index(raw) + at, count)
    assert (trace.damaged_events, trace.truncated) == (0, False)


def test_a_raw_path_may_end_with_a_backslash() -> None:
    text = around(EVENT.replace(b'"pid"', b'"path": "D:\\q\\", "pid"') % (b"a", 15))
    trace = read_bytes(text)
    assert names(trace) == ["n0", "n1", "a", "n2", "n3"]
    assert codes(trace) == {"invalid-escape": 1}


@pytest.mark.parametrize(
    ("word", "code"),
    [
        (b"NaN", "bare-word"), (b"nan", "bare-word"), (b"-nan", "bare-word"), (b"inf", "bare-word"),
        (b"-Infinity", "bare-word"), (b"N/A", "bare-word"), (b"0x1F", "bare-word"), (b"ncclSum", "bare-word"),
        (b"None", "bare-word"), (b"True", "bare-word"), (b"-nan(ind)", "bare-word"), (b"", "bare-word"),
        (b".5", "bad-number"), (b"5.", "bad-number"), (b"01", "bad-number"), (b"+5", "bad-number"),
        (b"1e999", "bad-number"), (b"9" * 1000, "bad-number"),
    ],
)  # fmt: skip
def test_words_that_are_no_values(word: bytes, code: str) -> None:
    event = (EVENT % (b"a", 15))[:-1] + b', "args": {"x": ' + word + b"}}"
    trace = read_bytes(around(event))
    assert names(trace) == ["n0", "n1", "a", "n2", "n3"]
    assert codes(trace) == {code: 1}
    assert trace.warnings[0].byte == around(event).index(b'"x": ') + 5


@pytest.mark.parametrize(("spelled", "dur"), [(b"0x10", 16_000), (b"+7.5", 7_500), (b"007", 7_000), (b".5", 500)])
def test_numbers_are_read_for_what_they_are(spelled: bytes, dur: int) -> None:
    trace = read_bytes(around((EVENT % (b"a", 15)).replace(b'"dur": 5', b'"dur": ' + spelled)))
    assert trace.host["dur"].to_list() == [5000, 5000, dur, 5000, 5000]


def test_a_duration_that_is_not_a_number_is_none() -> None:
    trace = read_bytes(around((EVENT % (b"a", 15)).replace(b'"dur": 5', b'"dur": nan')))
    assert names(trace) == ["n0", "n1", "n2", "n3"]
    assert codes(trace) == {"bare-word": 1, "bad-duration": 1}
    assert trace.events == 5


@pytest.mark.parametrize(
    ("middle", "code", "count"),
    [
        (b"%b,", "stray-comma", 1),
        (b",,%b", "stray-comma", 2),
        (b"%b}", "stray-bracket", 1),
        (b"%b\n%b", "missing-comma", 1),
        (b"%b%b", "missing-comma", 1),
    ],
)
def test_commas_between_events(middle: bytes, code: str, count: int) -> None:
    events = middle.count(b"%b")
    text = around(middle % tuple(EVENT % (b"m", 15) for _ in range(events)))
    trace = read_bytes(text)
    assert names(trace) == ["n0", "n1", *["m"] * events, "n2", "n3"]
    assert codes(trace) == {code: count}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b'"tid": 1,', b'"tid": 1', "missing-comma"),
        (b'"dur": 5}', b'"dur": 5,}', "stray-comma"),
        (b'"tid": 1,', b'"tid": 1,,', "stray-comma"),
        (b'"name": "m",', b'"name": "m"', "missing-comma"),
    ],
)
def test_commas_inside_events(old: bytes, new: bytes, code: str) -> None:
    trace = read_bytes(around((EVENT % (b"m", 15)).replace(old, new)))
    assert names(trace) == ["n0", "n1", "m", "n2", "n3"]
    assert codes(trace) == {code: 1}


@pytest.mark.parametrize("text", [b"[%b,]", b"[,%b]", b'{"traceEvents": [%b, ]}'])
def test_commas_at_the_ends(text: bytes) -> None:
    trace = read_bytes(text % (EVENT % (b"m", 15)))
    assert names(trace) == ["m"]
    assert codes(trace) == {"stray-comma": 1}


@pytest.mark.parametrize(
    "broken",
    [
        (EVENT % (b"m", 15))[:-1],  # no closing brace
        (EVENT % (b"m", 15))[:40],
        (EVENT % (b"m", 15)).replace(b'"name": "m"', b'"name": "m'),
        (EVENT % (b"m", 15)).replace(b'"name":', b'"name"'),
        b'{"ph": "X", "args": {"a": [1, 2}}',
        b'{"ph" "X"}',
        b"{ lorem ipsum",
    ],
)
def test_an_event_beyond_repair_is_left_out_alone(broken: bytes) -> None:
    text = around(broken)
    trace = read_bytes(text)
    assert names(trace) == ["n0", "n1", "n2", "n3"]
    assert (trace.events, trace.damaged_events, trace.truncated) == (4, 1, False)
    (warning,) = trace.warnings
    assert warning.code == "damaged-event"
    assert warning.byte is not None
    start = text.index(broken)
    assert start <= warning.byte <= start + len(broken) + 4
    assert "middle" in warning.message


def test_a_foreign_event_in_the_middle_of_a_string() -> None:
    torn = b'{"ph": "X", "cat": "cpu_op", "name": "aten:' + EVENT % (b"foreign", 15) + b",\n" + b':add", "ts": 1}'
    trace = read_bytes(around(torn))
    assert names(trace) == ["n0", "n1", "foreign", "n2", "n3"]
    assert trace.damaged_events == 1


def test_another_document_in_the_middle_of_the_list() -> None:
    inner = b'{"schemaVersion": 1, "traceEvents": [\n' + EVENT % (b"a", 15) + b",\n" + EVENT % (b"b", 16)
    trace = read_bytes(around(inner))
    assert names(trace) == ["n0", "n1", "a", "b", "n2", "n3"]


def test_an_early_closing_bracket() -> None:
    trace = read_bytes(around(EVENT % (b"m", 15) + b"]"))
    assert names(trace) == ["n0", "n1", "m", "n2", "n3"]
    assert codes(trace) == {"stray-bracket": 1}


def test_two_writers_one_after_the_other() -> None:
    first = around(EVENT % (b"m", 15))
    trace = read_bytes(first + b'   ", "name": "x"},' + around(EVENT % (b"other", 15)))
    assert names(trace) == ["n0", "n1", "m", "n2", "n3"]
    (warning,) = trace.warnings
    assert (warning.code, warning.byte) == ("extra-data", len(first) + 3)
    assert not trace.truncated


def test_two_whole_documents() -> None:
    text = around(EVENT % (b"m", 15))
    trace = read_bytes(text + text)
    assert trace.events == 5
    assert codes(trace) == {"extra-data": 1}


@pytest.mark.parametrize("keep", [1, 40, 140, 200, 330, -30, -2, -1])
def test_a_file_that_is_cut(keep: int) -> None:
    text = around(EVENT % (b"m", 15))[:keep]
    if b'"traceEvents": [' not in text:
        with pytest.raises(TraceError, match=f"ends at byte {len(text)}"):
            read_bytes(text)
        return
    trace = read_bytes(text)
    whole = text.count(b'"dur": 5}')
    assert (trace.events, trace.damaged_events) == (whole, 0)
    assert trace.truncated_at_byte == len(text)
    (warning,) = (w for w in trace.warnings if w.code == "truncated")
    if text.endswith(b"}") or keep > 0:
        last = text.rfind(b'"dur": 5}') + 9
        assert not whole or f"{last:,}" in warning.message or "behind the last event" in warning.message


@pytest.mark.parametrize("end", [b"", b",", b",\n", b"\n"])
def test_the_array_form_needs_no_closing_bracket(end: bytes) -> None:
    trace = read_bytes(b"[\n" + EVENT % (b"a", 1) + b",\n" + EVENT % (b"b", 2) + end)
    assert names(trace) == ["a", "b"]
    assert not trace.truncated
    assert codes(trace) == {"no-closing-bracket": 1}
    assert read_bytes(b"[\n" + EVENT % (b"a", 1) + end, strict=True).events == 1


def test_damage_in_the_header_costs_no_event() -> None:
    head = rb'{"traceName": "C:\demo\x.json", "INFO": ["say "hi", ok"], "bad": {"a" 1}, "n": nan, "traceEvents": ['
    trace = read_bytes(head + EVENT % (b"a", 1) + b'], "x": {"y" 2}, "baseTimeNanoseconds": 7}')
    assert names(trace) == ["a"]
    assert trace.header.extra["traceName"] == "C:\\demo\\x.json"
    assert trace.header.base_time_ns == 7
    assert {"invalid-escape", "bare-quote", "bare-word", "damaged-header"} == set(codes(trace))


@pytest.mark.parametrize("size", [1, 64, 4096])
def test_the_same_fault_in_every_event(size: int) -> None:
    events = [EVENT % (rb"a\dir\%d" % i, i) for i in range(300)]
    events[7] = (EVENT % (b"x", 7)).replace(b'"dur": 5', b'"dur": nan')
    events[9] = EVENT % (b'b"c', 9)
    text = b"[" + b",\n".join(events) + b"]"
    trace = read_bytes(text)
    assert len(trace.host) == 299
    assert codes(trace) == {"invalid-escape": 298, "bare-word": 1, "bare-quote": 1, "bad-duration": 1}
    assert same(trace, read_in_blocks(text, block=size, chunk=size))


@pytest.mark.parametrize(
    "text",
    [
        around(EVENT % (rb"a\d", 15)),
        around(EVENT % (b'a"b', 15)),
        around(b"{ lorem"),
        around(EVENT % (b"m", 15))[:-40],
        around(EVENT % (b"m", 15)) + b"x",
        b"\xef\xbb\xbf" + around(EVENT % (b"m", 15)),
        around(b",%b" % (EVENT % (b"m", 15))),
    ],
)
def test_strict_reading_refuses_any_repair(text: bytes) -> None:
    assert read_bytes(text).events
    with pytest.raises(TraceError, match="strict") as caught:
        read_bytes(text, strict=True)
    assert caught.value.where is not None
    assert "byte" in caught.value.where
    assert caught.value.hint


def test_strict_reading_takes_what_is_odd_but_whole() -> None:
    text = around(EVENT.replace(b'"dur": 5', b'"dur": -1') % (b"m", 15))
    assert codes(read_bytes(text, strict=True)) == {"bad-duration": 1}


def test_device_work_survives_next_to_damage() -> None:
    kernel = b'{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"device": 0}}'
    trace = read_bytes(around(kernel + b",\n" + (EVENT % (b"m", 15))[:-9] + b",\n" + kernel))
    assert len(device_rows(trace)) == 2
    assert trace.damaged_events == 1
