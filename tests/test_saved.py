"""The one loader of saved reports: told by content, in any layout, and every wrong file gets the right message."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import saved
from analyzer.errors import TraceError
from analyzer.render import Options, render
from analyzer.report.document import SCHEMA_VERSION, Report
from analyzer.sources.limits import HEAD
from analyzer.sources.stream import Source
from tests import kinds, micro

KINDS = ("run", "file", "comparison", "check")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Kind -> its JSON."""
    reports = kinds.of_each(tmp_path_factory.mktemp("kinds"))
    return {kind: render(report, "json", Options()) for kind, report in reports.items()}


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Report | None]:
    """Load a file with this text."""

    def of(text: bytes, kind: str | None = None, name: str = "input.json") -> Report | None:
        path = tmp_path / name
        path.write_bytes(text)
        return saved.load(str(path), kind)

    return of


def again(text: bytes, **layout: Any) -> bytes:
    return json.dumps(json.loads(text), **layout).encode()


def backwards(text: bytes) -> bytes:
    plain = json.loads(text)
    return json.dumps(dict(reversed(plain.items()))).encode()


def large(text: bytes) -> bytes:
    """`jq -S` of a report whose first list is larger than any head: what says that it is a report comes late."""
    plain = json.loads(text)
    first = min(key for key, value in plain.items() if isinstance(value, list) and value)
    plain[first] = plain[first] * (3 * HEAD // len(json.dumps(plain[first])) + 1)
    return json.dumps(plain, sort_keys=True, indent=2).encode()


LAYOUTS: dict[str, Callable[[bytes], bytes]] = {
    "as it was written": lambda text: text,
    "compact": lambda text: again(text, separators=(",", ":")),
    "tabs": lambda text: again(text, indent="\t"),
    "sorted keys": lambda text: again(text, sort_keys=True, indent=2),
    "backwards": backwards,
    "escaped": lambda text: again(text, ensure_ascii=True),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "blank lines before": lambda text: b"\r\n\r\n  " + text,
    "gzip": gzip.compress,
    "UTF-16": lambda text: text.decode().encode("utf-16"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_report_is_known_in_any_layout(load: Any, texts: dict[str, bytes], kind: str, layout: str) -> None:
    report = load(LAYOUTS[layout](texts[kind]), kind)
    assert report.kind.name == kind
    assert json.loads(render(report, "json", Options())) == json.loads(texts[kind])


def test_a_name_says_nothing(load: Any, texts: dict[str, bytes]) -> None:
    assert load(texts["run"], name="run.trace.txt") is not None
    assert load(gzip.compress(texts["run"]), name="report.json") is not None


def test_keys_that_are_sorted_and_begin_with_a_long_list_are_a_report(load: Any, texts: dict[str, bytes]) -> None:
    text = large(texts["run"])
    assert b"schema_version" not in text[:HEAD]
    assert load(text).kind.name == "run"


@pytest.mark.parametrize(("kind", "wanted"), [(a, b) for a in KINDS for b in ("run", "check") if a != b])
def test_another_kind_than_is_wanted_is_named(load: Any, texts: dict[str, bytes], kind: str, wanted: str) -> None:
    """`info -o` and `compare -o` are no runs, whatever their schema version."""
    with pytest.raises(TraceError) as caught:
        load(texts[kind], wanted)
    assert caught.value.what == f"the report of a {kind}, not of a {wanted}"
    assert caught.value.where is not None
    assert caught.value.where.endswith("input.json")


@pytest.mark.parametrize("version", [1, SCHEMA_VERSION + 1, "two", None])
def test_another_schema_version_is_named(load: Any, texts: dict[str, bytes], version: Any) -> None:
    plain = {**json.loads(texts["run"]), "schema_version": version}
    with pytest.raises(TraceError) as caught:
        load(json.dumps(plain).encode())
    assert caught.value.what == f"a report of schema version {version!r}; this tool reads {SCHEMA_VERSION}"
    assert ("update tracecli" in (caught.value.hint or "")) == (version == SCHEMA_VERSION + 1)


def test_a_report_of_the_first_version_says_its_version_and_not_that_it_has_no_kind(load: Any) -> None:
    with pytest.raises(TraceError, match="of schema version 1; this tool reads 2"):
        load(b'{"schema_version": 1, "tool": {"name": "tracecli", "version": "0.1"}, "trace": {}}')


@pytest.mark.parametrize("kind", ["ranks", None, 3, ["run"]])
def test_a_kind_of_a_later_tool_is_named(load: Any, kind: Any) -> None:
    with pytest.raises(TraceError) as caught:
        load(json.dumps({"schema_version": SCHEMA_VERSION, "kind": kind}).encode())
    assert f"unknown kind {kind!r}" in caught.value.what


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_is_missing_is_named(load: Any, texts: dict[str, bytes], kind: str) -> None:
    plain = json.loads(texts[kind])
    for key in plain.keys() - {"schema_version", "kind"}:
        with pytest.raises(TraceError, match=f"damaged.*`{key}`"):
            load(json.dumps({k: v for k, v in plain.items() if k != key}).encode())


def places(node: Any, path: str = "$") -> Iterator[tuple[str, list[Any]]]:
    """All figures, of lists those of the first row: where they stand as the message has it, and the keys there."""
    if isinstance(node, dict):
        for key, value in node.items():
            for place, keys in places(value, f"{path}.{key}"):
                yield place, [key, *keys]
    elif isinstance(node, list):
        for i, value in enumerate(node[:1]):
            for place, keys in places(value, f"{path}[{i}]"):
                yield place, [i, *keys]
    else:
        yield path, []


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_of_the_wrong_type_is_named_with_its_place(load: Any, texts: dict[str, bytes], kind: str) -> None:
    free = ("$.capture", "$.devices") if kind == "file" else ("$.capture", "$.schema_version", "$.kind")
    tried = 0
    for place, keys in places(json.loads(texts[kind])):
        if place.startswith(free) or place in ("$.schema_version", "$.kind"):
            continue
        plain = json.loads(texts[kind])
        node = plain
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = {"a": ["b"]}
        with pytest.raises(TraceError, match="a saved report, but damaged") as caught:
            load(json.dumps(plain).encode())
        # A mapping of figures is told by the mapping alone.
        assert place.rpartition(".")[0] in caught.value.what, place
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("layout", ["as it was written", "sorted keys", "compact"])
def test_a_report_that_was_cut_is_damaged_and_no_trace(load: Any, texts: dict[str, bytes], layout: str) -> None:
    text = LAYOUTS[layout](texts["run"])
    for end in (len(text) // 2, len(text) - 2):
        with pytest.raises(TraceError, match="a saved report, but damaged"):
            load(text[:end])
    with pytest.raises(TraceError, match="a saved report, but damaged"):
        load(text + b"}")


def test_a_packed_report_that_was_cut_is_damaged(load: Any, texts: dict[str, bytes]) -> None:
    with pytest.raises(TraceError, match="a saved report, but damaged"):
        load(gzip.compress(texts["run"])[:-200])


OTHERS = {
    "empty": b"",
    "blank": b" \n",
    "a list": b"[1, 2, 3]",
    "a list of events": b'[{"ph": "X", "name": "schema_version"}]',
    "an empty object": b"{}",
    "a number": b"12",
    "a text": b'"schema_version"',
    "no JSON": b"schema_version",
    "a trace": json.dumps({"schemaVersion": 1, "traceEvents": []}).encode(),
    "a trace with sorted keys": json.dumps(
        {"baseTimeNanoseconds": 1, "deviceProperties": [{"id": 0}], "schemaVersion": 1, "traceEvents": []}
    ).encode(),
    "a trace with keys of ours before its events": json.dumps(
        {"annotations": "mine", "devices": [], "trace": "x", "traceEvents": [], "schema_version": 1}
    ).encode(),
    "a trace inside an object of our name": json.dumps({"trace": {"traceEvents": []}, "schema_version": 2}).encode(),
    "keys inside strings and objects": json.dumps({"a": {"schema_version": 2}, "b": '"schema_version": 2'}).encode(),
    "an execution trace": json.dumps({"schema": "1.1", "pid": 1, "nodes": []}).encode(),
    "keys of ours without a version": json.dumps({"devices": [], "kind": "run"}).encode(),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_report_is_left_to_the_reader_of_traces(load: Any, what: str) -> None:
    assert load(OTHERS[what]) is None
    assert load(gzip.compress(OTHERS[what])) is None


def test_a_real_trace_is_no_report(tmp_path: Path) -> None:
    assert saved.load(str(micro.write(tmp_path / "run.json", micro.everything()))) is None


def test_what_cannot_be_looked_at_first_is_left_to_the_reader_of_traces(tmp_path: Path) -> None:
    """A pipe is read once; a folder and a file that is not there have messages of their own."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("-", str(pipe), str(tmp_path), str(tmp_path / "missing.json")):
        assert saved.load(path) is None


@pytest.mark.parametrize(
    ("head", "most"),
    [
        (b'{"schemaVersion": 1, "traceEvents": [', HEAD),
        (b'{"deviceProperties": [{"id": 0}], "traceEvents": [', HEAD),
        (b"[", HEAD),
        (b'{"data": [', HEAD),  # nothing that tells: neither a report's key nor a trace's
        (b'{"annotations": 1, "events": [', HEAD),
        (b'{"annotations": [', 8 * HEAD),  # it could be a report with sorted keys
    ],
)
def test_a_large_trace_is_not_read_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: bytes, most: int
) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(1 << 30)
    taken = 0
    read = Source.readinto

    def counted(self: Source, buffer: memoryview) -> int:
        nonlocal taken
        size = read(self, buffer)
        taken += size
        return size

    monkeypatch.setattr(Source, "readinto", counted)
    monkeypatch.setattr(saved, "MAX_SEARCH", 4 * HEAD)
    assert saved.load(str(path)) is None
    assert 0 < taken <= most


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(['"', "\\", '{"', "]}", '":']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), JSON), st.sampled_from([None, 1]), st.booleans(), st.integers(1, 9))
def test_outer_keys_are_those_of_the_object_however_the_text_is_cut(
    plain: dict[str, Any], indent: int | None, ascii_only: bool, size: int
) -> None:
    """Slow oracle: the keys that a parser finds."""
    text = json.dumps(plain, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    outer = saved._OuterKeys()
    found = [key for at in range(0, len(text), size) for key in outer.feed(text[at : at + size])]
    escaped = [json.dumps(key, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogatepass") for key in plain]
    assert found == escaped
    assert outer.ended
