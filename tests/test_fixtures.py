"""Every recorded fixture through every part: verdicts as announced, figures as torch itself has them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from analyzer.compare.report import compare
from analyzer.events.schema import Cat
from analyzer.index.build import build
from analyzer.info import describe
from analyzer.render import Options, render
from tests.recorded import FIXTURES, MANIFEST, NAMES
from tests.recorded import report_of as report
from tests.recorded import trace_of as trace


def contract(name: str) -> Any:
    return report(name).contract


def test_the_manifest_and_the_folder_agree() -> None:
    recorded = {path.name for path in FIXTURES.glob("*.json.gz")}
    assert recorded == {entry["file"] for entry in MANIFEST.values()}
    assert sum(path.stat().st_size for path in FIXTURES.iterdir()) < 6_000_000


@pytest.mark.parametrize("name", NAMES)
def test_verdict_and_counts_are_those_that_the_scenario_announced(name: str) -> None:
    expected = MANIFEST[name]["expected"]
    assert contract(name)["verdict"]["bound"] in expected["verdict"]
    annotations = {a["name"]: a for a in contract(name)["annotations"]}
    for annotation, events in expected["device_events"].items():
        assert annotations[annotation]["device_events_median"] == events


@pytest.mark.parametrize("name", NAMES)
def test_the_recording_was_read_whole(name: str) -> None:
    measured = MANIFEST[name]["measured"]
    assert contract(name)["trace"]["events"] == measured["events"]
    assert len(contract(name)["steps"]) == measured["steps"]
    links = contract(name)["links"]
    assert links["linked"] == measured["linked"]
    assert links["linked"] + links["unlinked"] == measured["device_events"]
    assert contract(name)["trace"]["damaged_events"] == 0
    assert not contract(name)["trace"]["truncated"]


@pytest.mark.parametrize("name", NAMES)
def test_causes_add_up_to_idle_on_every_device(name: str) -> None:
    for device in contract(name)["devices"]:
        causes = [g["total_us"] for g in contract(name)["gaps"]["by_cause"] if g["device"] == device["device"]]
        assert sum(causes) == pytest.approx(device["idle_us"], abs=1e-6)
        assert device["busy_us"] + device["idle_us"] == pytest.approx(device["span_us"], abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_operators_are_as_torch_has_them(name: str) -> None:
    """Calls, self and inclusive host time, self and inclusive device time, against `key_averages()`.

    Where the profiler's own work or a module's loading falls into an operator torch takes it out and the
    trace holds it: there the figures may differ by that much. An operator that contains itself torch counts
    in another way.
    """
    operators = {o["name"]: o for o in contract(name)["operators"]}
    rows = json.loads((FIXTURES / MANIFEST[name]["oracle"]).read_text())["rows"]
    recursive = recursive_names(name)
    overhead = trace(name).host.filter(pl.col("cat") == int(Cat.OVERHEAD))["dur"].sum() / 1000
    for row in (r for r in rows if r["key"].startswith("aten::")):
        operator = operators[row["key"]]
        slack = 0.5 + 1e-3 * row["cpu_us"] + overhead
        assert operator["self_cpu_us"] == pytest.approx(row["self_cpu_us"], abs=slack), row["key"]
        assert operator["self_device_us"] == pytest.approx(row["self_device_us"], abs=0.5), row["key"]
        if row["key"] in recursive:
            continue
        assert operator["calls"] == row["count"], row["key"]
        assert operator["cpu_us"] == pytest.approx(row["cpu_us"], abs=slack), row["key"]
        if overhead == 0:
            assert operator["device_us"] == pytest.approx(row["device_us"], abs=0.5), row["key"]
        else:  # torch hands an operator's kernels to the profiler's event inside it, and counts them again
            assert operator["self_device_us"] - 0.5 <= operator["device_us"] <= row["device_us"] + 0.5, row["key"]


def recursive_names(name: str) -> set[str]:
    """Names of events that lie inside one of their own name."""
    host = build(trace(name)).host
    inner = ~host.outermost(host.name >= 0, host.name)
    return set(trace(name).names.gather(host.frame["name"].filter(inner)).to_list())


@pytest.mark.parametrize("name", NAMES)
def test_every_renderer_shows_it(name: str) -> None:
    full = report(name)
    for width in (60, 110):
        text = render(full, "terminal", Options(width=width, only=("all",))).decode()
        assert full.headline.bound.upper() in text
        assert "Traceback" not in text
    assert render(full, "markdown", Options()).startswith(b"# tracecli")
    assert json.loads(render(full, "json", Options())) == json.loads(json.dumps(full.contract))


@pytest.mark.parametrize("name", NAMES)
def test_info_and_a_comparison_with_itself(name: str) -> None:
    assert describe(trace(name)).contract["info"]["events"] == MANIFEST[name]["measured"]["events"]
    same = compare([report(name).results] * 2, ["a", "b"]).contract
    assert same["best"] is None
    difference = same["differences"][0]
    assert {row["status"] for row in (*difference["operators"], *difference["kernels"])} <= {"alike"}
    assert difference["findings_came"] == difference["findings_went"] == []


def figures(name: str, annotation: str) -> Any:
    return next(a for a in contract(name)["annotations"] if a["name"] == annotation)


def test_a_hidden_copy_and_how_it_goes_away() -> None:
    naive, inplace = figures("attention_naive", "attn_fwd"), figures("attention_inplace", "attn_fwd")
    assert (naive["kernels_median"] + naive["copies_median"], naive["copies_median"], naive["memsets_median"]) == (
        6,
        1,
        2,
    )
    assert (inplace["kernels_median"], inplace["copies_median"], inplace["memsets_median"]) == (5, 0, 2)


@pytest.mark.parametrize(
    ("name", "backend", "kernels", "memsets"),
    [
        ("attention_sdpa_math", "math", 20, 0),
        ("attention_sdpa_efficient", "efficient", 1, 0),
        ("attention_sdpa_flash", "flash", 1, 0),
        ("attention_sdpa_cudnn", "cudnn", 1, 1),
    ],
)
def test_attention_backends(name: str, backend: str, kernels: int, memsets: int) -> None:
    assert [a["backend"] for a in contract(name)["attention"]] == [backend]
    a = figures(name, "attn_fwd")
    assert (a["kernels_median"], a["memsets_median"]) == (kernels, memsets)


def test_cudnn_attention_is_launched_by_the_extended_driver_call() -> None:
    chains = [c for c in contract("attention_sdpa_cudnn")["chains"] if "cudnn" in c["device_work"]]
    assert [c["launch"] for c in chains] == ["cuLaunchKernelEx"]


def test_a_compiled_addition_seeds_the_product_with_a_copy() -> None:
    chains = [c for c in contract("matmul_add_64_warm_default")["chains"] if c["path"][-1] == "aten::addmm"]
    assert sorted(c["launch"] for c in chains) == ["cuLaunchKernelEx", "cudaMemcpyAsync"]
    assert any(c["device_work"].startswith("Memcpy DtoD") for c in chains)


def test_a_graph_replays_all_its_work_from_one_launch() -> None:
    decode = figures("decode_cudagraph", "decode_token")
    assert decode["device_events_median"] == 149
    assert contract("decode_cudagraph")["launches"]["graph_launches"] == 10
    causes = contract("decode_cudagraph")["gaps"]["by_cause"]
    assert max(causes, key=lambda c: c["total_us"])["cause"] == "graph_internal"


def test_hidden_waits_are_three_a_step_and_named() -> None:
    waits = contract("hidden_syncs")["waits"]
    assert waits["per_step"] == 3
    assert {w["operator"] for w in waits["by_operator"]} == {
        "aten::nonzero",
        "aten::_local_scalar_dense",
        "aten::copy_",
    }


def test_the_loader_is_named_where_input_starves_the_device() -> None:
    worst = contract("input_starved_w0")["gaps"]["by_cause"][0]
    assert worst["cause"] == "input_pipeline"
    assert worst["owners"][0]["name"].startswith("enumerate(DataLoader)")


def test_a_cold_process_is_explained() -> None:
    """Module loading, occupancy queries, the profiler's first buffer: each is there with its time."""
    calls = {c["name"] for c in contract("cold_process")["host_calls"]}
    assert any(name.startswith("cudaOccupancy") for name in calls)
    assert contract("cold_process")["trust"]["profiler_us"] > 0


def test_another_process_shows_as_lone_spikes() -> None:
    spikes = contract("spikes_other_process")["spikes"]
    assert len(spikes) > 5
    assert all(s["duration_us"] > 3 * s["median_us"] and "another process" in s["reason"] for s in spikes)
    assert contract("spikes_none")["spikes"] == []


def test_a_run_without_a_device_divides_by_nothing() -> None:
    cpu = contract("cpu_only")
    assert (cpu["verdict"]["bound"], cpu["devices"], cpu["gaps"]["by_cause"]) == ("cpu-only", [], [])
    assert cpu["operators"]
