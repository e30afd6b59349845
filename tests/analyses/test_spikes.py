"""Spikes: kernels far from their own kind; level shifts: stretches of neighbours that moved together."""

from __future__ import annotations

import random

import pytest

from analyzer.analyses.spikes import UNSEEN
from tests.micro import kernel, launch, memcpy, op

USUAL = 100.0


def series(durations, *, pause=5.0, start=0.0, **options):
    """Kernels one after another, `pause` apart."""
    out, at = [], start
    for dur in durations:
        out.append(kernel("gemm", round(at, 3), dur, **options))
        at += dur + pause
    return out


def steady(count, seed=1, level=USUAL):
    """Around `level` within 1 µs, as a device's timestamps scatter."""
    rng = random.Random(seed)
    return [round(level + rng.uniform(-1, 1), 3) for _ in range(count)]


def with_one(duration, at=20, count=40):
    values = steady(count)
    values[at] = duration
    return values


def test_a_kernel_far_above_its_own_median_is_a_spike(contract):
    (spike,) = contract(series(with_one(400)))["spikes"]
    assert (spike["name"], spike["device"], spike["duration_us"], spike["call"]) == ("gemm", 0, 400, 20)
    assert spike["ratio"] == pytest.approx(4, abs=0.05)
    assert spike["reason"] == UNSEEN


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (with_one(290), "less than three times the median"),
        ([d / 10 for d in with_one(500)], "50 µs is not 50 µs above the median of 10"),
        (with_one(400, at=2, count=4), "four members do not say what is usual"),
        ([*steady(35), 400, 400, 400, 400, 400], "more than a tenth: a second kind of call"),
        ([*(20 + 4 * i for i in range(40)), 330], "from 20 to 176: a group that scatters so has no outliers"),
        (with_one(20), "faster is no spike"),
    ],
)
def test_what_is_no_spike(contract, values, why):
    assert contract(series(values))["spikes"] == [], why


def test_another_launch_shape_is_another_kind(contract):
    """Six calls of 400 µs in a larger grid: each group is steady."""
    micro = [*series(steady(30), grid=[8, 1, 1]), *series([400] * 6, start=10_000, grid=[99, 1, 1])]
    assert contract(micro)["spikes"] == []


def test_other_input_shapes_are_another_kind(contract):
    """One call of another shape among 40: alone in its group, it is not far from its own kind."""
    micro, at = [], 0.0
    for i, dur in enumerate(with_one(400)):
        shapes = [[4096, 4096]] if dur == 400 else [[64, 64]]
        micro += [op("aten::mm", at, 50, shapes=shapes), launch("cudaLaunchKernel", at + 5, 5, i + 1),
                  kernel("gemm", at + 20, dur, i + 1)]  # fmt: skip
        at += 600
    assert contract(micro)["spikes"] == []
    same = [{**e, "args": {"Input Dims": [[64, 64]]}} if e["name"] == "aten::mm" else e for e in micro]
    assert len(contract(same)["spikes"]) == 1


def test_other_devices_are_other_kinds(contract):
    micro = [*series(steady(30)), *series(steady(30, level=400), device=1)]
    assert contract(micro)["spikes"] == []


# -- what was different -------------------------------------------------------------------------------------------


def spike_reason(contract, micro):
    (spike,) = contract(micro)["spikes"]
    return spike["reason"]


def test_the_first_of_its_kind(contract):
    assert spike_reason(contract, series(with_one(400, at=0))) == "the first of its kind"


def test_a_copy_on_another_stream_at_the_same_time(contract):
    micro = series(with_one(400))
    assert "a memory copy on another stream" in spike_reason(
        contract, [*micro, memcpy("HtoD", micro[20]["ts"] + 50, 20, stream=9)]
    )


def test_other_work_on_another_stream_at_the_same_time(contract):
    micro = series(with_one(400))
    others = [kernel("x", micro[20]["ts"] + 50 + 30 * i, 20, stream=9) for i in range(2)]
    assert "2 events on another stream" in spike_reason(contract, [*micro, *others])


def test_work_on_another_stream_before_it_is_no_reason(contract):
    micro = series(with_one(400))
    assert spike_reason(contract, [*micro, memcpy("HtoD", micro[19]["ts"], 20, stream=9)]) == UNSEEN


def test_a_long_idle_time_just_before(contract):
    """12 ms idle: clocks drop, and ramp up again."""
    values = with_one(400)
    micro = [*series(values[:20]), *series(values[20:], start=20 * (USUAL + 5) + 12_000)]
    assert "the device was idle for 12.0 ms before" in spike_reason(contract, micro)


# -- level shifts ---------------------------------------------------------------------------------------------------


def test_a_stretch_of_slow_neighbours_is_one_level_shift_and_no_spikes(contract):
    """300 calls, of which 100 to 159 take 120 instead of 100 µs: a clock or power state."""
    values = [*steady(100), *steady(60, seed=2, level=120), *steady(140, seed=3)]
    found = contract(series(values))
    (shift,) = found["level_shifts"]
    assert found["spikes"] == []
    assert shift["count"] == pytest.approx(60, abs=8)
    assert shift["median_us"] == pytest.approx(120, abs=1)
    assert shift["baseline_us"] == pytest.approx(100, abs=1)
    assert shift["ratio"] == pytest.approx(1.2, abs=0.02)
    assert shift["start_us"] == pytest.approx(sum(values[:100]) + 100 * 5, abs=600)


def test_a_lone_spike_in_a_slow_stretch_is_still_a_spike(contract):
    values = [*steady(100), *steady(60, seed=2, level=120), *steady(140, seed=3)]
    values[130] = 900
    found = contract(series(values))
    assert [(s["call"], s["duration_us"]) for s in found["spikes"]] == [(130, 900)]
    assert len(found["level_shifts"]) == 1


def test_slow_stretches_with_a_short_break_between_are_one(contract):
    """Calls 100 to 139 and 146 to 185 are slow: six usual ones between do not make it two."""
    values = [*steady(100), *steady(40, 2, 120), *steady(6, 4), *steady(40, 5, 120), *steady(214, 3)]
    assert len(contract(series(values))["level_shifts"]) == 1


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (steady(300), "a steady run"),
        ([*steady(150), *steady(10, 2, 120), *steady(140, 3)], "ten calls are no stretch"),
        ([*steady(150), *steady(60, 2, 101.5), *steady(90, 3)], "1.5 µs is within what these calls scatter"),
        ([100 + i % 3 / 50 + 2 * (100 <= i < 160) for i in range(300)], "2% would help nobody"),
        ([d / 100 for d in [*steady(100), *steady(60, 2, 150), *steady(140, 3)]], "0.5 µs is the clock's grain"),
    ],
)
def test_what_is_no_level_shift(contract, values, why):
    values = [round(v, 3) for v in values]
    assert contract(series(values))["level_shifts"] == [], why


# -- what must not break it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [0.0] * 40 + [400.0] + [0.0] * 20,
        [0.0] * 100 + [20.0] * 60 + [0.0] * 140,
    ],
)
def test_a_kind_that_usually_takes_no_time_has_no_spikes_and_no_levels(contract, values):
    """No call is so many times as long as nothing."""
    found = contract(series(values))
    assert (found["spikes"], found["level_shifts"]) == ([], [])
