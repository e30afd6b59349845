"""What an analysis shows comes from its figures alone: read back from JSON, it shows the same."""

from __future__ import annotations

import json

import pytest

from analyzer.report import codec, values
from analyzer.report.blocks import Metric, Table
from tests import micro


def texts(result):
    """All that a result shows, as text, by block."""
    section = result.section()
    return [line for block in (section.blocks if section else ()) for line in lines(block)]


def lines(block):
    if isinstance(block, Table):
        units = [c.column.unit for c in block.columns]
        yield block.title, block.note, [c.column.title for c in block.columns]
        for row in block.shown(len(block.rows)):
            yield [values.text(value, unit) for value, unit in zip(row, units, strict=True)]
    elif isinstance(block, Metric):
        yield block.title, values.text(block.value, block.unit), block.note
    else:
        yield block


@pytest.mark.parametrize("events", [micro.everything, micro.shifted, list])
def test_a_result_that_was_read_back_shows_the_same(report, events):
    results = list(report(events()).results)
    assert {type(r).SECTION for r in results} >= {"devices", "gaps", "kernels"}
    for result in results:
        plain = json.loads(json.dumps(codec.dump(result), allow_nan=False))
        again = codec.load(type(result), plain)
        assert codec.dump(again) == plain
        assert texts(again) == texts(result)
