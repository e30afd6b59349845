"""The window in parts, and what the figures rest on."""

from __future__ import annotations

import pytest

from analyzer.analyses.verdict import analyze
from analyzer.index import parts
from analyzer.report import codec
from analyzer.report.blocks import Table
from tests.micro import BUFFER, chain, frame, kernel, launch, memcpy, op, overhead


@pytest.fixture
def verdict(chains):
    return lambda events, **header: analyze(chains(events, **header))


def one_kernel():
    """
    aten::mm [0, 10] launches at [3, 7]; kernel [40, 100].
    Lead-in [0, 40]: dispatch until the call returns at 7, then latency, all of it below the limit: dispatch 40.
    Compute 60.
    """
    return chain("aten::mm", 0, 1, 40, 60)


def test_parts_are_listed_largest_first_and_add_up_to_the_window(verdict):
    found = verdict(one_kernel()).verdict
    assert [(p.part, p.ns, p.share) for p in found.parts if p.ns] == [
        ("compute", 60_000, 0.6), ("dispatch", 40_000, 0.4),
    ]  # fmt: skip
    assert found.bound == "compute-bound"


def test_every_part_has_a_row_of_its_own(verdict):
    plain = codec.dump(verdict(one_kernel()))["verdict"]
    assert {p["part"] for p in plain["parts"]} == {part.key for part in parts.Part}
    assert sum(p["us"] for p in plain["parts"]) == 100


def test_without_device_work_there_is_nothing_to_divide(verdict):
    found = verdict([op("aten::mm", 0, 30)], devices=[])
    assert (found.verdict.bound, found.verdict.parts) == ("cpu-only", ())
    assert found.section() is None


def test_parts_that_are_nothing_are_not_shown(verdict):
    section = verdict(one_kernel()).section()
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert table.shown(10) == (("compute", 60_000, 0.6, "k"), ("dispatch", 40_000, 0.4, "cudaLaunchKernel"))
    assert section.detail


def test_the_window_of_an_empty_trace_is_not_known(verdict):
    window = verdict([]).window
    assert (window.start_ns, window.end_ns, window.duration_ns) == (None, None, None)


# -- trust ----------------------------------------------------------------------------------------------------


def test_trust_counts_what_is_linked_what_is_not_and_what_is_skewed(verdict):
    """Correlation 1 starts 2 µs before its call at 20; 77 has none."""
    micro = [
        op("x", 0, 90), launch("cudaLaunchKernel", 20, 5, 1), kernel("a", 18, 5, 1),
        launch("cudaLaunchKernel", 40, 5, 2), kernel("b", 50, 5, 2), memcpy("DtoD", 60, 5, 77),
    ]  # fmt: skip
    found = verdict(micro)
    trust = found.trust
    assert (trust.linked, trust.unlinked, trust.clock_skewed, trust.linked_share) == (2, 1, 1, 2 / 3)
    assert found.trusted() == (
        "2 of 3 device events linked to a launch",
        "1 launched before recording, or without a launch record",
        "1 start before their launch (clock skew)",
    )


def test_trust_says_what_the_profiler_took_and_that_stacks_were_on(verdict):
    """[10, 30] and [20, 40]: 30 µs."""
    micro = [*one_kernel(), frame("run.py(1): main", 0, 90), overhead(BUFFER, 10, 20), overhead(BUFFER, 20, 20)]
    assert verdict(micro).trusted()[1:] == (
        "the profiler's own work took 30.0 µs",
        "Python stacks on: CPU times are inflated by the profiler itself",
    )


def test_without_device_work_no_share_is_linked(verdict):
    found = verdict([op("x", 0, 10)])
    assert (found.trust.linked_share, found.trust.idle_reliable) == (None, None)
    assert found.trusted() == ("no device events",)
