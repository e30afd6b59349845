"""The table of kernels: what a row is, and which occupancy is shown."""

from __future__ import annotations

import pytest

from analyzer.analyses.kernels import analyze
from tests.micro import kernel, memcpy, memset


@pytest.fixture
def kernels(chains):
    return lambda events: analyze(chains(events))


def test_a_kernel_that_copies_is_a_kernel(kernels):
    """By its kind it is a copy like the other; by its category it is not."""
    found = kernels([kernel("direct_copy_kernel_cuda", 0, 30), memcpy("DtoD", 40, 20), memset(70, 10)]).kernels
    assert [(k.kind, k.category) for k in found] == [("copy", "kernel"), ("copy", "memcpy"), ("memset", "memset")]


def test_the_theoretical_occupancy_is_shown_else_the_reported_else_nothing(kernels):
    """256 threads of 32 registers: 8 blocks of 8 warps fill the 64 warps of a multiprocessor."""
    found = kernels([
        kernel("known", 0, 30, block=[256, 1, 1], grid=[8, 1, 1], registers=32, shared=0, occupancy=50),
        kernel("reported", 40, 20, occupancy=50), kernel("neither", 70, 10),
    ])  # fmt: skip
    (table,) = found.blocks()
    assert [row[-1] for row in table.shown(10)] == [1.0, 0.5, ""]


def test_the_share_of_the_time_is_of_all_work_however_much_is_shown(kernels):
    (table,) = kernels([kernel("a", 0, 60), kernel("b", 70, 30), memset(110, 10)]).blocks()
    assert [row[4] for row in table.shown(2)] == [0.6, 0.3]
