"""Phases: figures worked out by hand, and what is said where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import api
from analyzer.analyses.phases import NOTHING, Phase, PhasesResult, analyze
from analyzer.errors import TraceError
from tests import micro
from tests.micro import Event, annotation, chains_of, kernel, launch


def decode(ts: float, corr: int) -> list[Event]:
    """100 µs on the host: a kernel of 40 µs, then a graph of one kernel and one collective, 15 µs together."""
    return [
        annotation("step[DECODE bs=2]", ts, 100),
        launch("cudaLaunchKernel", ts + 10, 4, corr),
        kernel("sm90_xmma_gemm_f16f16", ts + 20, 40, corr),
        launch("cudaGraphLaunch", ts + 70, 4, corr + 1),
        kernel("vectorized_elementwise_kernel", ts + 80, 10, corr + 1),
        kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", ts + 90, 5, corr + 1),
    ]


def prefill(ts: float, corr: int) -> list[Event]:
    """100 µs on the host, and a device that is busy until 180 µs."""
    return [
        annotation("step[EXTEND bs=1 toks=107]", ts, 100),
        launch("cudaLaunchKernel", ts + 10, 4, corr),
        kernel("sm90_xmma_gemm_f16f16", ts + 20, 160, corr),
    ]


@pytest.fixture
def found(tmp_path: Path) -> PhasesResult:
    return analyze(chains_of(tmp_path / "t.json", [*prefill(0, 1), *decode(300, 2), *decode(500, 4)]))


def test_each_phase_has_its_own_figures(found: PhasesResult) -> None:
    decoded, prefilled = found.phases
    assert (decoded.name, decoded.calls, decoded.wall_ns_median, decoded.wall_ns) == ("decode", 2, 100_000, 200_000)
    assert (decoded.device_busy_ns_median, decoded.idle_ns_median) == (55_000, 45_000)
    assert decoded.communication_ns_median == 5_000
    assert (decoded.launches_median, decoded.graph_launches_median) == (2, 1)
    assert decoded.launches_outside_graphs_median == 1
    assert (decoded.batch_median, decoded.tokens_median) == (2, None)
    # The device is busy with it after the host has done: 0 to 180 µs.
    assert (prefilled.name, prefilled.calls, prefilled.wall_ns_median) == ("prefill", 1, 180_000)
    assert (prefilled.device_busy_ns_median, prefilled.idle_ns_median) == (160_000, 20_000)
    assert (prefilled.batch_median, prefilled.tokens_median) == (1, 107)


def test_each_phase_has_its_own_verdict(found: PhasesResult) -> None:
    assert {p.name: p.verdict for p in found.phases} == {"decode": "overhead-bound", "prefill": "compute-bound"}


def test_kinds_of_kernels_share_a_phases_device_time(found: PhasesResult) -> None:
    decoded = found.phases[0]
    assert [(k.kind, k.ns) for k in decoded.kernels] == [
        ("gemm", 80_000),
        ("elementwise", 20_000),
        ("communication", 10_000),
    ]
    assert sum(k.share for k in decoded.kernels) == pytest.approx(1)


def test_idle_time_by_cause_is_what_the_phase_ended(found: PhasesResult) -> None:
    """Gaps before decode's kernels: 180 to 320, 360 to 380, 395 to 520 and 560 to 580 µs."""
    decoded: Phase = found.phases[0]
    assert sum(c.ns for c in decoded.idle_by_cause) == (140 + 20 + 125 + 20) * 1_000


def test_how_steps_were_found_is_said_with_what_they_hold(found: PhasesResult) -> None:
    assert found.steps_found.by == "annotations of an engine"
    assert (found.steps_found.steps, found.steps_found.cut, found.steps_found.share) == (3, 0, 1.0)
    assert "3 steps found by annotations of an engine: 100" in found.steps_found.reason


def test_where_nothing_separates_steps_it_is_said(tmp_path: Path) -> None:
    events = [launch("cudaLaunchKernel", 0, 4, 1), kernel("k", 10, 5, 1)]
    found = analyze(chains_of(tmp_path / "t.json", events))
    assert (found.phases, found.steps_found.by, found.steps_found.reason) == ((), None, NOTHING)
    assert [block.text for block in found.blocks()] == [NOTHING]  # type: ignore[union-attr]


def test_without_device_work_nothing_is_said(tmp_path: Path) -> None:
    found = analyze(chains_of(tmp_path / "t.json", [annotation("step[DECODE bs=2]", 0, 100)]))
    assert (found.phases, found.steps_found.share) == ((), None)
    assert not list(found.blocks())


def test_a_repeating_sequence_is_not_called_steps(tmp_path: Path) -> None:
    events: list[Event] = []
    for i in range(40):
        events += [launch("cudaLaunchKernel", 10 * i, 3, i + 1), kernel(f"k{i % 10}", 10 * i + 5, 2, i + 1)]
    found = analyze(chains_of(tmp_path / "t.json", events))
    assert found.steps_found.reason.startswith("a sequence of 10 launches repeats 4 times")
    assert found.steps_found.reason.endswith("whether these are steps is not recorded")


@pytest.mark.parametrize("shown", ["first", "blocks"])
def test_a_table_says_the_verdict_of_each_phase_in_words(found: PhasesResult, shown: str) -> None:
    rows = found.first().shown(9) if shown == "first" else next(iter(found.blocks())).shown(9)
    assert [row[-1] for row in rows] == [phase.verdict for phase in found.phases]
    assert None not in [phase.verdict for phase in found.phases]


def test_a_users_table_says_how_their_engine_names_its_steps(tmp_path: Path) -> None:
    """`turn(ask)` and `turn(answer)`: to the known table these are annotations like others; a row of one's own names
    the phases, in the whole run and where one of them is asked for.
    """
    events = [*prefill(0, 1), *decode(300, 2), *decode(500, 4)]
    for event in events:
        event["name"] = {
            "step[DECODE bs=2]": "turn(answer) x2",
            "step[EXTEND bs=1 toks=107]": "turn(ask) x1",
        }.get(event["name"], event["name"])
    path, table = micro.write(tmp_path / "run.json", events), tmp_path / "mine.toml"
    table.write_text(
        "[[engine]]\nengine = 'ours'\nannotation = '^turn\\((?P<mode>\\w+)\\) x(?P<batch>\\d+)$'\n"
        "[modes]\nASK = 'prefill'\n"
    )
    plain, known = api.analyze(path), api.analyze(path, engines=table)
    assert "engine" not in plain["steps_found.by"]
    assert known["steps_found.by"] == "annotations of an engine"
    assert [(p["name"], p["calls"], p["batch_median"]) for p in known.contract["phases"]] == [
        ("answer", 2, 2), ("prefill", 1, 1),
    ]  # fmt: skip
    assert api.analyze(path, engines=table, phase="answer").contract["trace"]["events"] == len(events)
    with pytest.raises(TraceError, match="no phase is called 'answer'"):
        api.analyze(path, phase="answer")


def test_the_headline_and_findings_say_which_phase(tmp_path: Path) -> None:
    """Prefill keeps the device busy for 160 of its 180 µs; in two steps of decode it waits 90 of 200."""
    events = [*prefill(0, 1), *decode(300, 2), *decode(500, 4)]
    report = micro.report_of(tmp_path / "a.json", events)
    assert report.headline.reason.endswith(
        "; decode is overhead-bound (2 steps, 52.6% of their time); "
        "prefill is compute-bound (1 step, 47.4% of their time)"
    )
    (found,) = [f for f in report.findings if f.name == "overhead-bound"]
    assert found.title.endswith("of it in decode")
    alike = micro.report_of(tmp_path / "b.json", [*decode(300, 2), *decode(500, 4)])
    assert "decode is" not in alike.headline.reason
    assert not any("in decode" in f.title for f in alike.findings)
