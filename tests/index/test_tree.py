"""Nesting of host events, self time, and the sums and searches over the tree."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analyzer.events.schema import HOST, Cat
from analyzer.index import paths, tree
from analyzer.index.timeline import cut, flatten, overlay
from tests.micro import annotation, call, op


def nesting(built) -> dict[str, str | None]:
    """Name -> name of its parent."""
    names = built.trace.text(built.host.frame["name"]).to_list()
    return {n: names[p] if p >= 0 else None for n, p in zip(names, built.host.parent, strict=True)}


def self_us(built) -> dict[str, float]:
    names = built.trace.text(built.host.frame["name"]).to_list()
    return {n: int(ns) / 1000 for n, ns in zip(names, built.host.self_ns, strict=True)}


# -- nesting -------------------------------------------------------------------------------------------


def test_an_event_inside_another_on_its_thread_is_its_child(chains):
    built = chains([op("outer", 0, 100), op("inner", 10, 20), op("after", 100, 5)])
    assert nesting(built) == {"outer": None, "inner": "outer", "after": None}


def test_events_of_other_threads_and_processes_never_nest(chains):
    built = chains([op("outer", 0, 100), op("thread", 10, 20, tid=2), op("process", 10, 20, pid=101)])
    assert nesting(built) == {"outer": None, "thread": None, "process": None}


def test_of_two_that_start_together_the_longer_one_is_outside(chains):
    built = chains([op("short", 0, 10), op("long", 0, 20)])
    assert nesting(built) == {"long": None, "short": "long"}


def test_of_equal_intervals_the_annotation_is_outside_then_the_operator_then_the_call(chains):
    micro = [call("cuCall", 0, 10, cat="cuda_driver"), call("cudaCall", 0, 10), op("operator", 0, 10),
             annotation("annotation", 0, 10)]  # fmt: skip
    assert nesting(chains(micro)) == {
        "annotation": None, "operator": "annotation", "cudaCall": "operator", "cuCall": "cudaCall",
    }  # fmt: skip


def test_of_equal_operators_the_first_in_the_file_is_outside(chains):
    assert nesting(chains([op("first", 0, 10), op("second", 0, 10)])) == {"first": None, "second": "first"}


def test_an_event_that_starts_where_another_ends_is_not_inside_it(chains):
    assert nesting(chains([op("a", 0, 10), op("b", 10, 10)])) == {"a": None, "b": None}


def test_an_event_without_length_holds_nothing_and_may_lie_inside(chains):
    built = chains([op("outer", 0, 10), op("point", 5, 0), op("later", 5, 2)])
    assert nesting(built) == {"outer": None, "point": "later", "later": "outer"}
    assert self_us(built) == {"outer": 8, "point": 0, "later": 2}


def test_a_child_that_outlives_its_parent_is_clamped_to_it_and_counted(chains):
    """[80, 130] inside [0, 100] becomes [80, 100]: 30 µs cut. Self time of the parent: 100 - 20 = 80."""
    built = chains([op("parent", 0, 100), op("child", 80, 50)])
    assert nesting(built) == {"parent": None, "child": "parent"}
    assert self_us(built) == {"parent": 80, "child": 20}
    (warning,) = built.warnings
    assert (warning.code, warning.count) == ("outlived-parent", 1)
    assert "30.000 µs" in warning.message


def test_a_clamped_child_clamps_its_own_children(chains):
    """parent [0, 100], child [50, 200] -> [50, 100], grandchild [60, 150] -> [60, 100]."""
    built = chains([op("parent", 0, 100), op("child", 50, 150), op("grandchild", 60, 90)])
    assert self_us(built) == {"parent": 50, "child": 10, "grandchild": 40}
    assert (built.host.clamped, built.host.clamped_ns) == (2, 150_000)


def test_what_begins_after_the_clamped_end_of_its_neighbour_is_not_cut(chains):
    """a [0, 20], b [10, 30] -> [10, 20]; c [20, 40] begins where b, once clamped, has ended: it stays whole."""
    built = chains([op("a", 0, 20), op("b", 10, 20), op("c", 20, 20)])
    assert nesting(built) == {"a": None, "b": "a", "c": None}
    assert self_us(built) == {"a": 10, "b": 10, "c": 20}


def test_a_staircase_of_overlaps_is_clamped_however_long(chains):
    """Each event starts in the one before and outlives it: all are cut to the first one's end, 10 µs."""
    built = chains([op(f"s{i}", i * 0.1, 10) for i in range(60)])
    assert set((built.host.end / 1000).tolist()) == {10.0}
    assert built.host.clamped == 59
    assert built.host.self_ns.sum() == 10_000


def test_self_time_takes_out_direct_children_only(chains):
    """outer 100 - 60 = 40; middle 60 - 25 = 35; inner 25; together 100."""
    built = chains([op("outer", 0, 100), op("middle", 10, 60), op("inner", 20, 25)])
    assert self_us(built) == {"outer": 40, "middle": 35, "inner": 25}


# -- against a plain stack walk ------------------------------------------------------------------------

EVENTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(0, 20), st.integers(0, 3), st.sampled_from([0, 1, 3])),
    max_size=16,
)


def host_frame(events) -> pl.DataFrame:
    """(thread, start, length, name, category) as a frame of schema.HOST."""
    rest = (0, -1, -1, -1, None, None)
    rows = [(cat, name, thread, ts, dur, *rest) for thread, ts, dur, name, cat in events]
    return pl.DataFrame(rows, schema={k: getattr(pl, v) for k, v in HOST.items()}, orient="row")


def plain_forest(events):
    """The same forest by a stack: (order of events, start, clamped end, parent) in preorder."""
    outer = {int(Cat.ANNOTATION): 0, int(Cat.OP): 1, int(Cat.RUNTIME): 2}
    order = sorted(
        range(len(events)),
        key=lambda i: (events[i][0], events[i][1], -(events[i][1] + events[i][2]), outer[events[i][4]], i),
    )
    start, end, parent, stack = [], [], [], []
    for row, i in enumerate(order):
        thread, ts, dur, _, _ = events[i]
        while stack and (events[order[stack[-1]]][0] != thread or end[stack[-1]] <= ts):
            stack.pop()
        parent.append(stack[-1] if stack else -1)
        start.append(ts)
        end.append(min(ts + dur, end[stack[-1]]) if stack else ts + dur)
        stack.append(row)
    return order, start, end, parent


def ancestors(parent, row):
    while parent[row] >= 0:
        row = parent[row]
        yield row


@given(EVENTS)
def test_the_forest_is_that_of_a_stack_walk(events):
    built = tree.build(host_frame(events))
    order, start, end, parent = plain_forest(events)
    assert built.name.tolist() == [events[i][3] for i in order]
    assert built.start.tolist() == start
    assert built.end.tolist() == end
    assert built.parent.tolist() == parent


@given(EVENTS)
def test_self_times_of_a_thread_add_up_to_the_union_of_its_events(events):
    built = tree.build(host_frame(events))
    for thread in {e[0] for e in events}:
        mine = built.thread == thread
        covered = {t for s, e in zip(built.start[mine], built.end[mine], strict=True) for t in range(s, e)}
        assert built.self_ns[mine].sum() == len(covered)
        assert (built.self_ns[mine] >= 0).all()


@given(EVENTS, st.integers(0, 3))
def test_searches_over_the_tree_are_those_of_a_walk_to_the_top(events, wanted_name):
    built = tree.build(host_frame(events))
    parent = built.parent.tolist()
    wanted = built.name == wanted_name
    for row in range(built.height):
        above = list(ancestors(parent, row))
        assert built.nearest(wanted)[row] == next((r for r in [row, *above] if wanted[r]), -1)
        assert built.enclosing(wanted)[row] == next((r for r in above if wanted[r]), -1)
        same = [r for r in above if built.name[r] == built.name[row]]
        assert built.outermost(built.name >= 0, built.name)[row] == (not same)
        assert built.outermost(wanted, built.name)[row] == (wanted[row] and not same)


@given(EVENTS, st.sets(st.integers(0, 3)))
def test_many_wanted_rows_and_few_are_found_alike(events, wanted_names):
    """`nearest` has a way for each."""
    built = tree.build(host_frame(events))
    wanted = np.isin(built.name, list(wanted_names))
    rows = np.flatnonzero(wanted)
    few = tree._spread(rows, built.last[rows], built.height)
    assert few.tolist() == tree._nearest(built.parent, wanted).tolist()


@given(EVENTS)
def test_a_subtree_is_a_range_of_rows_and_its_sum_a_difference(events):
    built = tree.build(host_frame(events))
    parent = built.parent.tolist()
    values = np.arange(1, built.height + 1, dtype=np.int64) ** 2
    below = built.below(values)
    for row in range(built.height):
        subtree = [r for r in range(built.height) if r == row or row in ancestors(parent, r)]
        assert list(range(row, built.last[row])) == subtree
        assert below[row] == values[subtree].sum()


@given(EVENTS)
def test_path_numbers_are_equal_exactly_for_equal_paths(events):
    built = tree.build(host_frame(events))
    parent = built.parent.tolist()
    number = paths.number(built, built.name.astype(np.int64))
    path = [tuple(int(built.name[r]) for r in [row, *ancestors(parent, row)]) for row in range(built.height)]
    for a in range(built.height):
        for b in range(built.height):
            assert (number[a] == number[b]) == (path[a] == path[b])


# -- the timeline of a thread ----------------------------------------------------------------------------


def plain_innermost(built, thread, t):
    """The last row in preorder that is open at t."""
    rows = [r for r in range(built.height) if built.thread[r] == thread and built.start[r] <= t < built.end[r]]
    return rows[-1] if rows else -1


@given(EVENTS)
def test_a_flattened_thread_says_at_any_instant_which_event_is_innermost(events):
    built = tree.build(host_frame(events))
    instants = np.arange(-1, 65, dtype=np.int64)
    for thread in {e[0] for e in events}:
        line = flatten(built, *built.rows_of(thread))
        assert (np.diff(line.time) > 0).all()
        assert line.at(instants).tolist() == [plain_innermost(built, thread, t) for t in instants]


@given(EVENTS, st.integers(0, 60))
def test_the_open_path_at_an_instant_is_that_of_the_innermost_event(events, t):
    built = tree.build(host_frame(events))
    for thread in {e[0] for e in events}:
        row = plain_innermost(built, thread, t)
        expected = [] if row < 0 else [row, *ancestors(built.parent.tolist(), row)]
        assert built.path_at(thread, t) == expected


@given(
    st.lists(st.integers(0, 50), max_size=8, unique=True).map(sorted),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30)), max_size=6),
)
def test_the_pieces_of_a_cut_interval_add_up_to_it_and_lie_each_in_one_segment(borders, spans):
    time = np.array(borders, np.int64)
    start = np.array([s for s, _ in spans], np.int64)
    end = np.array([s + n for s, n in spans], np.int64)
    interval, segment, begin, stop = cut(time, start, end)
    for k, (s, n) in enumerate(spans):
        mine = interval == k
        pieces = list(zip(begin[mine].tolist(), stop[mine].tolist(), segment[mine].tolist(), strict=True))
        assert sum(e - b for b, e, _ in pieces) == n
        at = s
        for b, e, seg in pieces:
            assert (b, e > b) == (at, True)
            inside = [j for j, border in enumerate(borders) if border <= b]
            assert seg == (inside[-1] if inside else -1)
            assert not any(b < border < e for border in borders)
            at = e


def test_lines_laid_over_each_other_keep_their_owners():
    """One line changes at 0 and 10, another at 5: three borders, and each line's owner from each on."""
    built = tree.build(host_frame([(0, 0, 10, 0, 0)]))
    other = tree.build(host_frame([(0, 5, 20, 0, 0)]))
    time, (a, b) = overlay(flatten(built, 0, 1), flatten(other, 0, 1))
    assert time.tolist() == [0, 5, 10, 25]
    assert a.tolist() == [0, 0, -1, -1]
    assert b.tolist() == [-1, 0, 0, -1]
