"""Steps and their kinds, by every rule that finds them; and where there are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.index.build import Chains
from analyzer.index.phases import How, Phases, phases
from tests import micro
from tests.micro import Event, annotation, call, chains_of, frame, kernel, launch, memcpy, step

PREFILL = [f"attention_prefill_{i}" for i in range(10)]
DECODE = [f"attention_decode_{i}" for i in range(10)]


class Script:
    """A host that launches one thing after the other: 5 µs each, each kernel as soon as it can."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now, self.corr, self.free = 0.0, 0, 0.0

    def run(self, kernels: list[str], *, took: float = 2.0, grid: int | None = None, tid: int = micro.MAIN) -> None:
        for name in kernels:
            self.corr += 1
            begin = max(self.now + 4, self.free)
            self.free = begin + took
            shape = None if grid is None else [grid, 1, 1]
            self.events += [
                launch("cudaLaunchKernel", self.now, 3, self.corr, tid=tid),
                kernel(name, begin, took, self.corr, grid=shape),
            ]
            self.now += 5

    def read(self) -> None:
        """A copy to the host and the wait for it."""
        self.corr += 1
        begin = max(self.now + 4, self.free)
        self.free = begin + 1
        self.events += [
            call("cudaMemcpyAsync", self.now, 3, corr=self.corr),
            memcpy("DtoH (Device -> Pinned)", begin, 1, self.corr),
            call("cudaStreamSynchronize", self.now + 3, self.free - self.now - 2),
        ]
        self.now = self.free + 5

    def named(self, name: str, kernels: list[str], **how: float) -> None:
        begin = self.now
        self.run(kernels, **how)  # type: ignore[arg-type]
        self.events.append(annotation(name, begin, self.now - begin))
        self.now += 1

    def framed(self, name: str, kernels: list[str]) -> None:
        begin = self.now
        self.run(kernels)
        self.events.append(frame(name, begin, self.now - begin))
        self.now += 1


def of(path: Path, script: Script) -> Phases:
    return phases(chains_of(path / "t.json", script.events))


def counted(found: Phases) -> dict[str, int]:
    return {name: int((found.phase == i).sum()) for i, name in enumerate(found.names)}


def test_an_engines_annotations_are_steps_and_name_the_phase(tmp_path: Path) -> None:
    script = Script()
    script.named("execute_context_8(8192)_generation_0(0)", PREFILL)
    for batch in (8, 8, 7):
        script.named(f"execute_context_0(0)_generation_{batch}({batch})", DECODE)
    found = of(tmp_path, script)
    assert found.found is not None
    assert found.found.how is How.ENGINE
    assert counted(found) == {"decode": 3, "prefill": 1}
    assert found.batch.tolist() == [8, 8, 8, 7]
    assert found.tokens.tolist() == [8192, 8, 8, 7]


def test_one_annotation_of_an_engine_is_a_step(tmp_path: Path) -> None:
    script = Script()
    script.named("step[DECODE bs=32]", DECODE[:2])
    assert counted(of(tmp_path, script)) == {"decode": 1}


def test_two_profiler_steps_are_steps(tmp_path: Path) -> None:
    script = Script()
    for number in range(2):
        script.named(f"ProfilerStep#{number}", DECODE)
    found = of(tmp_path, script)
    assert found.found is not None
    assert found.found.how is How.PROFILER
    assert counted(found) == {"step": 2}


def test_one_profiler_step_is_none(tmp_path: Path) -> None:
    script = Script()
    script.named("ProfilerStep#1", DECODE)
    assert of(tmp_path, script).found is None


def test_an_optimizers_step_tells_update_from_accumulate(tmp_path: Path) -> None:
    script = Script()
    for number in range(8):
        begin = script.now
        script.run(DECODE)
        if number % 4 == 3:
            script.named("Optimizer.step#AdamW.step", ["adam"])
        script.events.append(step(number, begin, script.now - begin))
        script.now += 1
    assert counted(of(tmp_path, script)) == {"step, accumulate": 6, "step, update": 2}


def test_a_step_without_work_is_in_no_phase(tmp_path: Path) -> None:
    script = Script()
    script.named("ProfilerStep#1", DECODE)
    script.named("ProfilerStep#2", DECODE)
    script.named("ProfilerStep#3", [])
    script.now += 10
    assert counted(of(tmp_path, script)) == {"step": 2}


def test_model_calls_within_few_profiler_steps_are_the_steps(tmp_path: Path) -> None:
    script = Script()
    for number in range(2):
        begin = script.now
        for _ in range(4):
            script.framed("nn.Module: Llama_0", DECODE * 4)
        script.events.append(step(number, begin, script.now - begin))
        script.now += 1
    found = of(tmp_path, script)
    assert found.found is not None
    assert found.found.how is How.MODULES
    assert counted(found) == {"Llama": 8}


def test_annotations_that_recur_are_steps_and_one_around_them_is_opened(tmp_path: Path) -> None:
    script = Script()
    for number in range(4):
        script.named(f"request {number}", DECODE)
    script.events.append(annotation("serve", 0, script.now))
    found = of(tmp_path, script)
    assert found.found is not None
    assert found.found.how is How.ANNOTATIONS
    assert counted(found) == {"request #": 4}


def test_annotations_of_libraries_are_no_steps(tmp_path: Path) -> None:
    script = Script()
    for _ in range(4):
        script.named("nccl:all_reduce", DECODE[:1])
    assert of(tmp_path, script).found is None


def test_annotations_of_other_work_stay_apart(tmp_path: Path) -> None:
    script = Script()
    for name, grid in (("linear_m1", 8), ("linear_m4096", 2048)):
        for _ in range(3):
            script.named(name, ["gemm"], grid=grid)
    assert counted(of(tmp_path, script)) == {"linear_m1": 3, "linear_m4096": 3}


def test_calls_of_the_outermost_module_are_steps_of_two_kinds(tmp_path: Path) -> None:
    script = Script()
    for _ in range(2):
        script.framed("nn.Module: Llama_0", PREFILL)
        for _ in range(5):
            script.framed("nn.Module: Llama_0", DECODE)
    found = of(tmp_path, script)
    assert found.found is not None
    assert found.found.how is How.MODULES
    assert counted(found) == {"Llama, kind 1": 10, "Llama, kind 2": 2}


def test_what_recurs_inside_one_module_is_layers(tmp_path: Path) -> None:
    script = Script()
    for number in range(8):
        script.framed(f"nn.Module: Layer_{number}", DECODE)
        script.read()
    script.events.append(frame("nn.Module: Llama_0", 0, script.now))
    assert of(tmp_path, script).found is None


def test_parts_of_an_iteration_are_one_step(tmp_path: Path) -> None:
    script = Script()
    for _ in range(5):
        script.framed("nn.Module: Net_0", DECODE)
        script.framed("train.py(9): backward", DECODE[:8])
        script.framed("torch/optim/adam.py(3): step", PREFILL[:2])
    script.events.append(frame("train.py(1): loop", 0, script.now))
    found = of(tmp_path, script)
    assert found.found is not None
    assert (found.found.how, found.count) == (How.FRAMES, 5)
    assert np.bincount(found.slot).tolist() == [20] * 5


def test_an_engines_frame_is_a_step(tmp_path: Path) -> None:
    script = Script()
    for kernels in (PREFILL, DECODE, DECODE, DECODE):
        script.framed("vllm/v1/worker/gpu_model_runner.py(3380): execute_model", kernels)
    found = of(tmp_path, script)
    assert found.found is not None
    assert found.found.how is How.ENGINE_FRAMES
    assert sorted(counted(found).values()) == [1, 3]


def test_a_frame_names_the_steps_inside_it(tmp_path: Path) -> None:
    script = Script()
    begin = script.now
    script.framed("nn.Module: Llama_0", PREFILL)
    script.events.append(frame("transformers/generation/utils.py(3775): _prefill", begin, script.now - begin))
    for _ in range(5):
        script.framed("nn.Module: Llama_0", DECODE)
    assert counted(of(tmp_path, script)) == {"Llama": 5, "prefill": 1}


def test_reads_separate_what_nothing_names(tmp_path: Path) -> None:
    script = Script()
    for _ in range(3):
        script.run(PREFILL)
        script.read()
        for _ in range(4):
            script.run(DECODE)
            script.read()
    found = of(tmp_path, script)
    assert found.found is not None
    assert found.found.how is How.READS
    assert counted(found) == {"iteration, kind 1": 12, "iteration, kind 2": 3}


def test_a_sequence_that_repeats_exactly(tmp_path: Path) -> None:
    script = Script()
    script.run(DECODE * 5)
    found = of(tmp_path, script)
    assert found.found is not None
    assert (found.found.how, found.count) == (How.PERIOD, 5)


@pytest.mark.parametrize("kernels", [["k"] * 64, [f"k{i}" for i in range(64)], ["a", "b", "c"] * 20])
def test_one_kernel_over_and_over_and_one_shot_scripts_have_no_steps(tmp_path: Path, kernels: list[str]) -> None:
    script = Script()
    script.run(kernels)
    assert of(tmp_path, script).found is None


def test_a_trace_without_device_work_has_no_phases(tmp_path: Path) -> None:
    events = [step(i, 10 * i, 9) for i in range(4)]
    assert phases(chains_of(tmp_path / "t.json", events)).found is None


def test_the_wall_of_a_step_waits_for_the_device(tmp_path: Path) -> None:
    """The host runs ahead: 50 µs of launches a step, 100 µs of device work."""
    script = Script()
    for number in range(3):
        script.named(f"ProfilerStep#{number}", DECODE, took=10.0)
    found = of(tmp_path, script)
    assert (found.end - found.begin).tolist() == [104_000, 100_000, 100_000]


def test_durations_never_tell_kinds(tmp_path: Path) -> None:
    script = Script()
    for number in range(6):
        script.named(f"ProfilerStep#{number}", DECODE, took=100.0 if number == 3 else 2.0)
    assert counted(of(tmp_path, script)) == {"step": 6}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.lists(st.booleans(), min_size=6, max_size=30).filter(lambda o: 3 <= sum(o) <= len(o) - 3))
def test_two_kinds_spliced_in_any_order_are_found_again(tmp_path: Path, order: list[bool]) -> None:
    script = Script()
    for prefill in order:
        script.run(PREFILL if prefill else DECODE)
        script.read()
    found = of(tmp_path, script)
    assert found.found is not None
    if found.found.how is How.READS:  # else the order itself repeats exactly, and the repeats are what is seen
        kinds = (
            {found.phase[i] for i in range(found.count) if order[i]},
            {found.phase[i] for i in range(found.count) if not order[i]},
        )
        assert found.count == len(order)
        assert len(kinds[0]) == len(kinds[1]) == 1
        assert kinds[0] != kinds[1]


def test_folding_follows_the_work(tmp_path: Path) -> None:
    script = Script()
    for batch in (8, 7, 6):
        script.named(f"execute_context_0(0)_generation_{batch}({batch})", DECODE)
    for name, grid in (("linear_m1", 8), ("linear_m4096", 2048)):
        script.named(name, ["gemm"], grid=grid)
    chains: Chains = chains_of(tmp_path / "t.json", script.events)
    folded = set(chains.places.folded.to_list())
    assert "execute_context_#(#)_generation_#(#)" in folded
    assert {"linear_m1", "linear_m4096"} <= folded


def test_names_of_unlike_times_stay_apart(tmp_path: Path) -> None:
    script = Script()
    script.named("linear_m1", ["gemm"], took=2.0)
    script.named("linear_m4096", ["gemm"], took=200.0)
    chains = chains_of(tmp_path / "t.json", script.events)
    assert {"linear_m1", "linear_m4096"} <= set(chains.places.folded.to_list())
