"""The scenarios: what every one must have, and some of them run for real on the CPU."""

import hashlib
import json

import pytest

torch = pytest.importorskip("torch", reason="recording needs torch")

from capture.scenarios import catalogue, manifest, overhead, suite  # noqa: E402
from capture.scenarios.__main__ import main  # noqa: E402
from capture.scenarios.base import Expect, Scenario, Variant, Work  # noqa: E402
from capture.scenarios.run import run  # noqa: E402

VERDICTS = {
    "overhead-bound", "pause-bound", "sync-bound", "input-bound", "copy-bound", "communication-bound",
    "compute-bound", "allocator-bound", "startup-bound", "cpu-only", "mixed",
}  # fmt: skip

ALL = [(s, v) for s in catalogue().values() for v in s.variants]


@pytest.mark.parametrize("scenario", catalogue().values(), ids=lambda s: s.name)
def test_every_scenario_says_what_it_is(scenario):
    assert scenario.about
    assert scenario.build.__doc__
    assert scenario.variants
    assert len({o.name for o in scenario.options}) == len(scenario.options)
    assert set(scenario.small) <= {o.name for o in scenario.options}


@pytest.mark.parametrize(("scenario", "variant"), ALL, ids=[v.file for _, v in ALL])
def test_every_recording_announces_what_to_expect(scenario, variant):
    expect = scenario.expect(scenario.values(variant.values))
    assert expect.verdict
    assert set(expect.verdict) <= VERDICTS
    assert expect.text
    assert all(count > 0 for count in expect.device_events.values())
    assert variant.why
    assert variant.active <= 20 or scenario.name in ("spikes", "attention")


def test_recordings_have_names_of_their_own():
    names = [v.file for _, v in ALL]
    assert len(set(names)) == len(names)


def test_the_systems_that_must_be_there_are():
    assert {
        "matmul-add", "attention", "mlp", "decode", "train", "resnet", "input-starved", "hidden-syncs", "spikes",
        "recompile", "streams", "ddp", "cpu-only", "allocator-thrash", "copies",
    } <= set(catalogue())  # fmt: skip


def test_options_are_checked():
    attention = catalogue()["attention"]
    with pytest.raises(ValueError, match="no option"):
        attention.values({"size": 1})
    with pytest.raises(ValueError, match="one of"):
        attention.values({"variant": "fast"})


def test_a_recording_on_the_cpu(tmp_path, load, steps_in, capsys):
    scenario = catalogue()["cpu-only"]
    (entry,) = run(scenario, scenario.variants[0], tmp_path)
    path = tmp_path / "cpu_only.json.gz"
    assert len(steps_in(path)) == 10
    assert load(path)["tracecli_capture"]["scenario"] == "cpu-only"
    assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert entry["measured"]["device_events"] == 0
    assert "expect  cpu-only" in capsys.readouterr().out
    rows = {r["key"]: r for r in json.loads((tmp_path / "cpu_only.oracle.json").read_text())["rows"]}
    assert rows["aten::mm"]["count"] == 10
    assert {"self_cpu_us", "cpu_us", "self_device_us", "device_us", "device_type", "is_user_annotation"} <= set(
        rows["aten::mm"]
    )
    assert "aten::mm" in (tmp_path / "cpu_only.txt").read_text()
    assert manifest.read(tmp_path)["fixtures"]["cpu_only"]["bytes"] == path.stat().st_size


SMALL = ["matmul_add_64_warm_eager", "attention_naive", "attention_sdpa_math", "decode_eager", "train_eager_full",
         "input_starved_w0", "hidden_syncs", "spikes_other_stream", "streams_overlap", "copies_many_small",
         "cold_process", "allocator_thrash", "three_threads"]  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_scenarios_run_small_on_the_cpu(tmp_path, load, name):
    scenario, variant = next((s, v) for s, v in suite.items(small=True) if v.file == name)
    (entry,) = run(scenario, variant, tmp_path)
    assert entry["measured"]["steps"] == (0 if variant.whole else variant.active)
    text = json.dumps(load(tmp_path / f"{name}.json.gz"))
    assert "site-packages" not in text
    assert str(tmp_path) not in text


def test_one_that_fails_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    def broken(_values):
        raise RuntimeError("no such kernel")

    bad = Scenario("bad", "fails", broken, lambda _: Expect(("mixed",), text=("x",)), (Variant("bad", "x"),), gpus=0)
    good = Scenario(
        "good", "works", lambda _: Work(lambda _: None), lambda _: Expect(("cpu-only",), text=("x",)),
        (Variant("good", "x", wait=1, warmup=1, active=1),), gpus=0,
    )  # fmt: skip
    monkeypatch.setattr(suite, "items", lambda small=False: [(bad, bad.variants[0]), (good, good.variants[0])])
    status = tmp_path / "status"
    assert suite.work_through(tmp_path, ["bad", "good"], status) == 0
    states = [json.loads(line) for line in status.read_text().splitlines()]
    assert [(s["file"], s["state"]) for s in states] == [
        ("bad", "started"), ("bad", "failed"), ("good", "started"), ("good", "done"),
    ]  # fmt: skip
    assert "no such kernel" in states[1]["reason"]
    assert list(manifest.read(tmp_path)["fixtures"]) == ["good"]


def test_the_command_records_what_it_is_asked_for(tmp_path, load):
    arguments = ["matmul-add", "--size", "16", "--dtype", "float32", "--wait", "2", "--warmup", "1", "--active", "2"]
    assert main([*arguments, "-o", str(tmp_path)]) == 0
    trace = load(tmp_path / "matmul_add_size-16_dtype-float32.json.gz")
    assert trace["tracecli_capture"]["flags"]["size"] == 16
    assert sum(e["name"] == "aten::mm" for e in trace["traceEvents"]) == 2


def test_several_in_processes_of_their_own(tmp_path):
    assert main(["cpu-only", "-o", str(tmp_path), "--small"]) == 0
    assert list(manifest.read(tmp_path)["fixtures"]) == ["cpu_only"]


def test_the_command_lists_and_refuses(tmp_path, capsys):
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in catalogue())
    for wrong in ([], ["nonsense"], ["attention", "--variant", "nonsense"]):
        with pytest.raises(SystemExit) as ended:
            main([*wrong, "-o", str(tmp_path)])
        assert ended.value.code == 2


def test_the_cost_of_the_hooks_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(overhead, "_SECONDS_A_BLOCK", 0.02)
    scenario = catalogue()["decode"]
    result = overhead.compare(scenario, {"layers": 1, "width": 32, "heads": 2}, tmp_path, 2)
    assert result["plain_us"] > 0
    assert result["hooked_us"] > 0
    # All blocks with hooks, less the first call of each, which only shows the module.
    assert result["steps_seen"] == 2 * (3 + result["steps_a_block"]) - 2
    assert not list(tmp_path.glob("*.json*"))
