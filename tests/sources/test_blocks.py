"""Where blocks and chunks end, and who parses them, changes nothing."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import TraceError
from analyzer.sources.kineto import pool
from analyzer.sources.kineto.framing import Borders, element_end
from analyzer.sources.kineto.read import read
from tests.sources import micro
from tests.sources.compare import differences, host_rows, read_bytes, read_in_blocks, same
from tests.sources.fuzz import mutate, originals
from tests.sources.oracle import facts

POOL = originals()
PAGE = 4096


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    layout=st.sampled_from(micro.LAYOUTS),
    block=st.integers(1, 5000),
    chunk=st.integers(1, 5000),
)
def test_any_size_gives_the_same_trace(seed: int, layout: str, block: int, chunk: int) -> None:
    text = micro.dump(micro.mixed(seed, 25), layout)
    assert same(read_bytes(text), read_in_blocks(text, block=block, chunk=chunk))


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), block=st.integers(1, 500), chunk=st.integers(1, 2000))
def test_any_size_gives_the_same_repairs(seed: int, block: int, chunk: int) -> None:
    text = mutate(random.Random(seed), POOL).text
    try:
        whole = read_bytes(text)
    except TraceError:
        with pytest.raises(TraceError):
            read_in_blocks(text, block=block, chunk=chunk)
    else:
        assert same(whole, read_in_blocks(text, block=block, chunk=chunk))


def long_trace(layout: str, count: int = 3000) -> bytes:
    return micro.dump(micro.mixed(11, count), layout)


@pytest.mark.parametrize("layout", micro.LAYOUTS)
@pytest.mark.parametrize("jobs", [2, 3])
def test_workers_give_the_same_trace(layout: str, jobs: int) -> None:
    text = long_trace(layout)
    trace = read_in_blocks(text, block=16 * PAGE, chunk=5000, jobs=jobs)
    assert same(read_bytes(text), trace)
    assert differences(trace, facts(text)) == []


def test_workers_and_damage_all_over() -> None:
    """Faults of every kind, some across the borders of blocks; the list ends in a block's middle."""
    rng = random.Random(3)
    text = bytearray(long_trace("kineto", 4000))
    for _ in range(60):
        at = rng.randrange(200, len(text) - 200)
        text[at : at + rng.randrange(3)] = rng.choice(
            [b'"', b"\\", b"\xff", b"", b",", b"}", b"]", b"\n", b'{"ph": "X",']
        )
    damaged = bytes(text)
    whole = read_bytes(damaged, jobs=1)
    assert whole.damaged_events
    assert same(whole, read_in_blocks(damaged, block=8 * PAGE, chunk=3000, jobs=2))
    assert same(whole, read_in_blocks(damaged, block=PAGE, chunk=100, jobs=2))


def test_workers_and_several_lists() -> None:
    part = micro.dump(micro.mixed(2, 900), "spaced")[:-1]
    text = part + b", " + part[1:] + b', "x": {"traceEvents": [1, 2]}}'
    whole = read_bytes(text)
    assert whole.events == 1800
    assert same(whole, read_in_blocks(text, block=8 * PAGE, chunk=3000, jobs=2))


def test_an_event_larger_than_a_block() -> None:
    events = micro.mixed(2, 50)
    events.insert(25, micro.op("x" * 10 * PAGE, 1, 1))
    text = micro.dump(events)
    assert same(read_bytes(text), read_in_blocks(text, block=PAGE, chunk=100, jobs=2))


def test_a_lost_worker_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = long_trace("kineto", 6000)
    answers = pool.Pool.answers
    calls = 0

    def lossy(self: pool.Pool, wait: bool) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            os.kill(self._workers[0]._process.pid, signal.SIGKILL)
        return answers(self, wait)

    monkeypatch.setattr(pool.Pool, "answers", lossy)
    trace = read_in_blocks(text, block=8 * PAGE, chunk=3000, jobs=2)
    assert calls >= 4
    assert same(read_bytes(text), trace)


def test_no_workers_where_none_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    text = long_trace("kineto", 600)

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("no more processes")

    monkeypatch.setattr(pool.subprocess, "Popen", refuse)
    assert same(read_bytes(text), read_in_blocks(text, block=8 * PAGE, chunk=3000, jobs=2))


def test_workers_are_gone_afterwards(tmp_path: Path) -> None:
    import psutil

    path = tmp_path / "big.json"
    path.write_bytes(micro.dump(micro.mixed(1, 40_000)))
    assert path.stat().st_size > 6 << 20
    before = set(psutil.Process().children())
    assert len(host_rows(read(path, jobs=2))) > 1000
    assert set(psutil.Process().children()) <= before


def test_element_end_is_that_of_the_json() -> None:
    text = b'{"a": "}]\\"", "b": [1, {"c": 2}]}, {"d": 1}'
    assert element_end(text, 0, len(text)) == text.rindex(b", {")
    assert element_end(text, 0, 20) is None
    assert element_end(b"[1, 2", 0, 5) is None
    assert element_end(b"12", 0, 2) == 2
    wide = b'{"a": "' + b"x" * 100_000 + b'"} '
    assert element_end(wide, 0, len(wide)) == len(wide) - 1


def test_borders_are_learnt_from_what_stands_between_events() -> None:
    borders = Borders()
    text = micro.dump(micro.mixed(1, 30))
    at = text.index(b"[") + 1
    borders.learn(text, at + 3, len(text))
    assert borders.separators[0].startswith(b"},\n  {\n    ")
    stop = borders.last(text, at, len(text))
    assert stop is not None
    assert text[stop - 1 : stop] == b"}"
    assert Borders().last(b'{"a": 1} , {"b": 2}', 0, 19) == 8
    assert Borders().last(b'{"a": 1}', 0, 8) is None
