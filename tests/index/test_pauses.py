"""Pauses and cadence: idle time in which the host did something else than launching, and where."""

from __future__ import annotations

import pytest

from analyzer.index.parts import Part
from tests.micro import annotation, chain, frame, kernel, launch, op, step

PACE = 20  # µs from launch to launch: a pause is then 200 µs and more


def run(*pauses: float, before=(), count: int = 8, at: float = 0, corr: int = 1):
    """Launches every PACE µs, each of 4 µs and its kernel of 10; then the pauses, one launch after each."""
    micro = []
    for n in range(count):
        micro += one(at + PACE * n, corr + n)
    end = at + PACE * count
    for n, length in enumerate(pauses):
        end += length
        micro += one(end, corr + count + n)
    return [*micro, *before]


def one(at: float, corr: int):
    return [launch("cudaLaunchKernel", at, 4, corr), kernel("k", at + 5, 10, corr)]


def pauses(built):
    return [
        (p.place, p.kind, p.count, round(p.total_ns / 1000), round(p.max_ns / 1000)) for p in built.idle.pauses.rows
    ]


def part(built, which=Part.PAUSES):
    return built.account.parts[which] / 1000


def test_what_each_launch_takes_is_cadence(chains):
    built = chains(run())
    assert (pauses(built), part(built)) == ([], 0)


def test_the_hosts_part_of_a_gap_far_beyond_the_pace_is_a_pause(chains):
    """The kernel before ends at 155, the launch comes at 460: 305 µs of nothing recorded."""
    built = chains(run(300))
    assert pauses(built) == [(None, "unrecorded", 1, 305, 305)]
    assert part(built) == 305


@pytest.mark.parametrize(("pace", "length", "found"), [(20, 199, 0), (20, 201, 1), (60, 590, 0), (60, 610, 1)])
def test_a_pause_is_200_microseconds_and_ten_times_the_pace(chains, pace, length, found):
    """A gap begins 15 µs after a launch; the pause is what is left until the next launch."""
    micro = [e for n in range(8) for e in one(pace * n, n + 1)]
    micro += one(7 * pace + 15 + length, 99)
    assert len(chains(micro).idle.pauses.rows) == found


def test_a_millisecond_is_a_pause_at_any_pace(chains):
    micro = [e for n in range(8) for e in one(500 * n, n + 1)]
    assert len(chains([*micro, *one(3515 + 1010, 99)]).idle.pauses.rows) == 1


def test_a_millisecond_is_asked_for_at_a_steps_border(chains):
    """Steps meet inside the gap: getting the next one going is usual."""
    assert pauses(chains([*run(300), step(1, 0, 300), step(2, 300, 175)])) == []
    assert len(pauses(chains([*run(1100), step(1, 0, 300), step(2, 300, 975)]))) == 1


def test_a_millisecond_is_asked_for_between_threads(chains):
    def other(length):
        return [launch("cudaLaunchKernel", 160 + length, 4, 99, tid=2), kernel("k", 165 + length, 10, 99)]

    assert pauses(chains([*run(), *other(300)])) == []
    assert len(pauses(chains([*run(), *other(1100)]))) == 1


@pytest.mark.parametrize(
    "owner",
    [annotation("Optimizer.step#SGD.step", 150, 320), frame("/x/torch/optim/adam.py(1): step", 150, 320),
     frame("/x/torch/autograd/function.py(1): apply", 150, 320)],
)  # fmt: skip
def test_python_of_optimizers_and_autograd_is_cadence(chains, owner):
    built = chains(run(300, before=[owner]))
    assert pauses(built) == []
    assert part(built, Part.DISPATCH) > 300


def test_an_operator_that_took_many_times_its_usual_is_a_pause(chains):
    """aten::mm takes 30 µs five times, and once 1,300: of it 1,200 and more lie in the gap."""
    usual = [e for n in range(5) for e in chain("aten::mm", 40 * n, n + 1, 40 * n + 12, 10)]
    slow = [op("aten::mm", 200, 1300), launch("cudaLaunchKernel", 1490, 5, 50), kernel("k", 1500, 10, 50)]
    found = pauses(chains([*usual, *slow]))
    assert [f[:3] for f in found] == [("aten::mm", "named", 1)]


def test_an_operator_that_always_takes_that_long_is_cadence(chains):
    micro = [e for n in range(6) for e in (op("aten::mm", 1500 * n, 1400),
             launch("cudaLaunchKernel", 1500 * n + 1390, 5, n + 1),
             kernel("k", 1500 * n + 1400, 10, n + 1))]  # fmt: skip
    assert pauses(chains(micro)) == []


def test_an_operator_that_launches_nothing_and_computes_for_a_millisecond_is_a_pause(chains):
    micro = [*run(1500), op("aten::sort", 165, 1300)]
    assert [f[:3] for f in pauses(chains(micro))] == [("aten::sort", "named", 1)]


def test_the_place_is_what_is_open_over_most_of_it_and_rarest_in_the_run(chains):
    """`main` is open always, `log` for all of the pause, `write` for 200 of 305."""
    micro = run(300, before=[
        frame("run.py(1): main", 0, 1000), frame("run.py(9): log", 150, 310), frame("<built-in write>", 200, 200),
    ])  # fmt: skip
    (found,) = chains(micro).idle.pauses.rows
    assert (found.place, found.kind, found.within) == ("<built-in write>", "named", "run.py(9): log")
    assert found.stack == ("run.py(1): main", "run.py(9): log", "<built-in write>")


def test_an_operator_is_within_the_python_function_that_called_it(chains):
    """Frames without a file, and those that only other functions are in, say nothing of where."""
    micro = run(1300, before=[
        frame("run.py(1): main", 0, 2000), frame("run.py(5): order", 150, 1310), frame("<built-in sort>", 160, 1290),
        op("aten::sort", 165, 1280),
    ])  # fmt: skip
    (found,) = chains(micro).idle.pauses.rows
    assert (found.place, found.within) == ("aten::sort", "run.py(5): order")


def test_without_frames_an_operator_is_within_what_is_around_it(chains):
    """And where nothing is around it, within nothing."""
    asked = [annotation("evaluate", 150, 1400), op("aten::sort", 165, 1280)]
    (found,) = chains(run(1300, before=asked)).idle.pauses.rows
    assert (found.place, found.within) == ("aten::sort", "evaluate")
    (found,) = chains(run(1300, before=asked[1:])).idle.pauses.rows
    assert (found.place, found.within) == ("aten::sort", None)


def test_the_stack_of_a_pause_is_that_of_its_middle(chains):
    """A pause of 155 to 1460 µs: `early` is open until 700, `late` from 710; the middle is at 807."""
    halves = [frame("run.py(3): early", 150, 550), frame("run.py(4): late", 710, 760)]
    (found,) = chains(run(1300, before=[frame("run.py(1): main", 0, 2000), *halves])).idle.pauses.rows
    assert found.stack == ("run.py(1): main", "run.py(4): late")


def test_half_of_a_pause_is_enough_for_a_name(chains):
    """The pause lasts 305 µs, from 155 to 460."""

    def named(length):
        (found,) = chains(run(300, before=[frame("run.py(3): half", 155, length)])).idle.pauses.rows
        return found.place

    assert named(152.5) == "run.py(3): half"
    assert named(152.4) is None


def test_many_short_calls_add_up_by_name(chains):
    """16 calls of 15 µs in a pause of 305: no single one is open over half of it."""
    calls = [frame("tree.py(3): visit", 160 + 18 * i, 15) for i in range(16)]
    (found,) = chains(run(300, before=[frame("run.py(1): main", 0, 1000), *calls])).idle.pauses.rows
    assert (found.place, found.within) == ("tree.py(3): visit", "run.py(1): main")


def test_pauses_of_one_place_are_one_row(chains):
    """Three: 305, 285 and 385 µs (a gap begins 15 µs after the launch before it)."""
    gc = [frame("<built-in function collect>", 150, 900)]
    (found,) = chains(run(300, 300, 400, before=gc)).idle.pauses.rows
    assert (found.count, round(found.total_ns / 1000), round(found.median_ns / 1000)) == (3, 975, 305)
    assert found.starts == (155_000, 475_000, 775_000)


def test_only_a_step_open_is_nothing_recorded(chains):
    (found,) = chains([*run(1300), step(1, 0, 5000)]).idle.pauses.rows
    assert (found.place, found.kind) == (None, "unrecorded")


def turns(lengths):
    micro, at = [], 0.0
    for n in range(8):
        micro += one(PACE * n, n + 1)
    at = PACE * 8
    for n, length in enumerate(lengths):
        at += length * 1000
        micro += one(at, 100 + n)
        at += 15
    return micro


def test_parts_of_five_milliseconds_are_waits_for_the_interpreters_lock(chains):
    """16 host parts of 5, 10 and 15 ms, each a hundred µs off."""
    lengths = [5.1 * (1 + n % 3) + 0.1 * (-1) ** n for n in range(16)]
    (found,) = chains(turns(lengths)).idle.pauses.rows
    assert (found.kind, found.count) == ("interference", 16)


@pytest.mark.parametrize(
    "lengths", [[5.1 * (1 + n % 3) for n in range(14)], [4.3 + 0.77 * n for n in range(20)]],
    ids=["fourteen of them", "no quantum"],
)  # fmt: skip
def test_other_long_parts_are_not(chains, lengths):
    assert {p.kind for p in chains(turns(lengths)).idle.pauses.rows} == {"unrecorded"}
