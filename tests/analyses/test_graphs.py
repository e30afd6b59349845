"""Replayed graphs: figures worked out by hand."""

from __future__ import annotations

from pathlib import Path

from analyzer.analyses.graphs import Graphs, analyze
from tests.micro import Event, chains_of, kernel, launch, op


def replay(ts: float, corr: int, *, names: str = "ab") -> list[Event]:
    """A launch of 4 µs; from 10 µs on kernels of 10 and 8 µs, with 2 between them."""
    spans = zip(names, ((10, 10), (22, 8)), strict=False)
    return [launch("cudaGraphLaunch", ts, 4, corr), *(kernel(n, ts + at, dur, corr) for n, (at, dur) in spans)]


def found(path: Path, events: list[Event]) -> Graphs:
    return analyze(chains_of(path / "t.json", events))


def test_replays_of_one_graph_and_what_runs_between_them(tmp_path: Path) -> None:
    """
    replay 10-30, an operator's kernel 50-55, replay 70-90, one whose record is cut 110-120.
    Between: 40 of which 35 idle, with one launch outside; then 20, with none.
    """
    outside = [op("aten::add", 38, 8), launch("cudaLaunchKernel", 40, 4, 2), kernel("c", 50, 5, 2)]
    (graph,) = found(tmp_path, [*replay(0, 1), *outside, *replay(60, 3), *replay(100, 4, names="a")]).graphs
    assert (graph.begins_with, graph.replays, graph.incomplete, graph.events) == ("a", 3, 1, 2)
    assert (graph.device_ns_median, graph.idle_ns_median, graph.launch_ns_median) == (18_000, 2_000, 4_000)
    assert (graph.outside_median, graph.between_ns_median, graph.between_idle_ns) == (0.5, 30_000, 55_000)


def test_graphs_that_run_other_work_are_told_apart(tmp_path: Path) -> None:
    """By their kernels, though they begin with the same one; the one with the most device time first."""
    other = replay(200, 3)
    other[2]["name"] = "z"
    graphs = found(tmp_path, [*replay(0, 1), *replay(100, 2), *other]).graphs
    assert [(g.begins_with, g.replays, g.incomplete) for g in graphs] == [("a", 2, 0), ("a", 1, 0)]


def test_a_lone_replay_has_nothing_after_it(tmp_path: Path) -> None:
    (graph,) = found(tmp_path, replay(0, 1)).graphs
    assert (graph.outside_median, graph.between_ns_median, graph.between_idle_ns) == (None, None, 0)


def test_without_graphs_there_is_no_table(tmp_path: Path) -> None:
    result = found(tmp_path, [launch("cudaLaunchKernel", 0, 4, 1), kernel("k", 10, 5, 1)])
    assert (result.graphs, list(result.blocks()), result.first()) == ((), [], None)
