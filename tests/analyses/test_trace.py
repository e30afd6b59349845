"""What the file holds: devices of its header, steps, its place in a distributed job."""

from __future__ import annotations

import pytest

from analyzer.analyses.trace import analyze
from tests.micro import H100, chain, op, step


@pytest.fixture
def file(chains):
    return lambda events, **header: analyze(chains(events, **header)).trace


def test_a_file_says_its_events_devices_steps_and_rank(file):
    micro = [step(3, 0, 50), *chain("aten::mm", 5, 1, 40, 20), step(4, 100, 50)]
    found = file(micro, distributedInfo={"rank": 3, "world_size": 8})
    assert (found.events, found.complete_events, found.damaged_events) == (5, 5, 0)
    assert [(d.id, d.name, d.sms) for d in found.devices] == [(0, "Test GPU 9.0", 132)]
    assert found.steps == ("ProfilerStep#3", "ProfilerStep#4")
    assert (found.rank, found.world_size) == (3, 8)
    assert (found.truncated, found.truncated_at_byte) == (False, None)


def test_what_a_header_spells_strangely_is_not_known(file):
    found = file(
        [op("x", 0, 1)],
        devices=[{**H100, "name": 7, "numSms": "many"}, {**H100, "id": "1"}],
        distributedInfo={"rank": "three", "world_size": True},
    )
    assert [(d.id, d.name, d.sms) for d in found.devices] == [(0, None, None)]
    assert (found.rank, found.world_size) == (None, None)
