"""Events become frames in one place: what the builder makes is what a reader of the same events makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from analyzer.events.builder import NULL, EventsBuilder
from analyzer.events.schema import COLLECTIVES, CONFIGS, DEVICE, HOST, INPUTS, MEMORY, THREADS, Cat
from analyzer.sources.kineto.read import read
from tests import micro
from tests.sources.compare import device_rows, host_rows

LANE = ("1", "2")


def test_rows_are_what_the_file_of_the_same_events_holds(tmp_path: Path) -> None:
    events = micro.everything()
    built = micro.trace_of(tmp_path / "run.json", events)
    trace = read(micro.write(tmp_path / "run.json", events), jobs=1)
    assert host_rows(built) == host_rows(trace)
    assert device_rows(built) == device_rows(trace)
    assert built.memory.equals(trace.memory)
    assert (built.events, built.complete_events, built.header) == (trace.events, trace.complete_events, trace.header)


def test_times_become_relative_to_the_first_event() -> None:
    builder = EventsBuilder()
    builder.host(Cat.OP, "b", LANE, 900, 5)
    builder.device(Cat.KERNEL, "k", ("0", "7"), 700, 5, stream=7)
    builder.memory(800, 64, device_type=1, device_id=0, allocated=None, reserved=None)
    trace = builder.build()
    assert (trace.base_ns, trace.host["ts"][0], trace.device["ts"][0], trace.memory["ts"][0]) == (700, 200, 0, 100)
    assert trace.memory["allocated"].to_list() == [None]


def test_columns_and_rows_share_their_tables_in_order_of_first_use() -> None:
    builder = EventsBuilder(names=["unused", "y", "x"], threads=[LANE])
    builder.columns(
        "host",
        {
            "cat": np.array([0, 0], np.uint8),
            "name": np.array([2, 1], np.int32),
            "thread": np.array([0, 0], np.int32),
            "ts": np.array([5, 9], np.int64),
            "dur": np.array([1, 1], np.int64),
            "seq": np.array([NULL, 3], np.int64),
        },
    )
    builder.host(Cat.OP, "z", LANE, 10, 1, inputs=["[[1]]", None, None, None])
    trace = builder.build()
    assert trace.names.to_list() == ["x", "y", "z", "[[[1]],null]"]
    assert trace.host["name"].to_list() == [0, 1, 2]
    assert trace.host["seq"].to_list() == [None, 3, None]
    assert trace.host["shapes"].to_list() == [-1, -1, 3]


def test_no_events_are_frames_of_the_schema_too() -> None:
    trace = EventsBuilder().build()
    for frame, schema in (
        (trace.host, HOST), (trace.device, DEVICE), (trace.memory, MEMORY), (trace.threads, THREADS),
        (trace.configs, CONFIGS), (trace.inputs, INPUTS), (trace.collectives, COLLECTIVES),
    ):  # fmt: skip
        assert {name: str(kind) for name, kind in frame.schema.items()} == schema
        assert frame.height == 0
