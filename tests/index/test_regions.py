"""Compiled regions: outermost ones and those that resume after a graph break."""

from __future__ import annotations

from tests.micro import annotation, op

LOOKUP = "TorchDynamo Cache Lookup"


def regions(built):
    """(name, parent's name, lookup's start, user µs at the break), in order."""
    names = built.trace.text(built.host.frame["name"]).to_list()
    return [
        (
            names[row],
            names[parent] if parent >= 0 else None,
            built.host.start[guard] / 1000 if guard >= 0 else None,
            user / 1000,
        )
        for row, parent, guard, user in built.host.regions.iter_rows()
    ]


def region(number: str, ts: float, dur: float):
    return op(f"Torch-Compiled Region: {number}", ts, dur)


def graph(ts: float, dur: float):
    return op(f"## Call CompiledFxGraph f{ts} ##", ts, dur)


def test_a_region_has_the_lookup_before_it(chains):
    micro = [op(LOOKUP, 0, 5), region("0/0", 10, 50), op(LOOKUP, 100, 5), op("aten::mm", 110, 5)]
    assert regions(chains(micro)) == [("Torch-Compiled Region: 0/0", None, 0, 0)]


def test_a_region_inside_another_resumes_after_a_break_and_the_users_code_lies_before_its_lookup(chains):
    """
    0/0 [10, 300]: graph [20, 60]; at the break print() until the lookup at 100; 1/0 [110, 290]: graph [120, 150];
    then until 200; 2/0 [210, 280].
    """
    micro = [
        op(LOOKUP, 0, 5), region("0/0", 10, 290), graph(20, 40), op(LOOKUP, 100, 5), region("1/0", 110, 180),
        graph(120, 30), op(LOOKUP, 200, 5), region("2/0", 210, 70), graph(220, 50),
    ]  # fmt: skip
    assert regions(chains(micro)) == [
        ("Torch-Compiled Region: 0/0", None, 0, 0),
        ("Torch-Compiled Region: 1/0", "Torch-Compiled Region: 0/0", 100, 40),
        ("Torch-Compiled Region: 2/0", "Torch-Compiled Region: 1/0", 200, 50),
    ]


def test_siblings_are_parted_by_the_users_code_between_them(chains):
    """Two compiled callees in one region: the second's break begins where the first ends, at 60."""
    micro = [region("0/0", 0, 200), region("1/0", 20, 40), op(LOOKUP, 90, 5), region("2/0", 100, 50)]
    assert regions(chains(micro))[2] == ("Torch-Compiled Region: 2/0", "Torch-Compiled Region: 0/0", 90, 30)


def test_dynamos_own_autograd_function_is_no_break(chains):
    micro = [region("0/0", 0, 200), op("CompiledFunction", 20, 100), annotation("x", 0, 1)]
    assert [name for name, *_ in regions(chains(micro))] == ["Torch-Compiled Region: 0/0"]


def test_without_dynamos_events_the_autograd_function_is_the_region(chains):
    assert [name for name, *_ in regions(chains([op("CompiledFunction", 20, 100)]))] == ["CompiledFunction"]
