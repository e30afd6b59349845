"""First use: the excess of the first call of anything over its later ones, at whatever depth it lies."""

from __future__ import annotations

import polars as pl
import pytest

from analyzer.index.activity import Cause
from tests.micro import annotation, call, kernel, launch, op, overhead, step

FIRST = [launch("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 5, 1)]


def last(at: float):
    return [launch("cudaLaunchKernel", at - 10, 5, 2), kernel("b", at, 10, 2)]


@pytest.fixture
def first_use(chains):
    """µs of first use in the gap [10, 2000] before the work launched at 1990."""

    def of(*events):
        pieces = chains([*FIRST, *events, *last(2000)]).idle.gap_pieces
        return pieces.filter(pl.col("cause") == int(Cause.FIRST_USE))["ns"].sum() / 1000

    return of


def later(make, *lengths):
    return [make(2100 + 1000 * i, length) for i, length in enumerate(lengths)]


MAKERS = {
    "operator": lambda ts, dur: op("aten::mm", ts, dur),
    "collective": lambda ts, dur: annotation("nccl:all_reduce", ts, dur),
    "annotation": lambda ts, dur: annotation("forward", ts, dur),
    "region": lambda ts, dur: op("Torch-Compiled Region: 0/0", ts, dur),
    "bare call": lambda ts, dur: call("cudaEventCreateWithFlags", ts, dur),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_the_first_of_anything_has_an_excess_over_the_median_of_the_later_ones(first_use, make):
    """500 against a median of 50."""
    assert first_use(make(20, 500), *later(make, 40, 60)) == pytest.approx(450, abs=0.01)


def test_a_step_is_no_call(first_use):
    """Each has a name of its own, and the first one holds all that is done once."""
    assert first_use(step(1, 20, 500), step(2, 2100, 40), step(3, 3000, 60)) == 0


def test_a_nest_of_equal_names_is_one_call_wherever_the_excess_lies(first_use):
    """[20, 520] with itself inside, [40, 510]: 500, later 65 in all, of which the inner ones 20."""

    def nest(ts, outer, inner):
        return [op("aten::mm", ts, outer), op("aten::mm", ts + 20, inner)]

    micro = [*nest(20, 500, 470), *nest(2100, 65, 20), *nest(2300, 65, 20)]
    assert first_use(*micro) == pytest.approx(435, abs=0.01)


def test_two_calls_suffice_where_the_first_took_ten_times(first_use):
    assert first_use(op("aten::mm", 20, 500), op("aten::mm", 2100, 49)) == pytest.approx(451, abs=0.01)
    assert first_use(op("aten::mm", 20, 500), op("aten::mm", 2100, 51)) == 0


def test_waits_allocation_and_the_profilers_time_are_taken_out_first(first_use):
    """Of 500 µs, 200 a synchronize, 100 cudaMalloc and 60 the profiler's: 140 are left, less the usual 30."""
    micro = [
        op("aten::mm", 20, 500), call("cudaStreamSynchronize", 30, 200), call("cudaMalloc", 240, 100),
        overhead("Activity Buffer Request", 350, 60), op("aten::mm", 2100, 30), op("aten::mm", 2300, 30),
    ]  # fmt: skip
    assert first_use(*micro) == pytest.approx(110, abs=0.01)


def shaped(ts, dur, shapes):
    return op("aten::sort", ts, dur, shapes=shapes)


def test_calls_with_the_first_ones_shapes_are_its_like(first_use):
    """Small inputs take 40; one with the first one's shape takes 480: nothing was done once."""
    micro = [shaped(20, 500, [[999]]), shaped(2100, 40, [[1]]), shaped(2300, 40, [[1]]), shaped(2500, 480, [[999]])]
    assert first_use(*micro) == 0
    micro[-1] = shaped(2500, 45, [[999]])
    assert first_use(*micro) == pytest.approx(455, abs=0.01)


def test_a_larger_input_of_what_computes_on_the_host_is_no_first_use(first_use):
    micro = [shaped(20, 500, [[999]]), shaped(2100, 40, [[1]]), shaped(2300, 40, [[1]])]
    assert first_use(*micro) == 0


@pytest.mark.parametrize(("work", "excess"), [(40, 460), (400, 0)])
def test_a_first_call_that_launched_as_much_more_work_had_a_larger_input(first_use, work, excess):
    """Kernels of 40 µs later; the first one's tells."""

    def one(ts, dur, device, corr):
        return [op("aten::mm", ts, dur), launch("cudaLaunchKernel", ts + dur - 10, 5, corr),
                kernel("k", ts + 5000, device, corr, device=1)]  # fmt: skip

    assert first_use(*one(20, 500, work, 5), *one(2100, 40, 40, 6), *one(3000, 40, 40, 7)) == pytest.approx(
        excess, abs=0.01
    )
