"""The causes of idle time, held against a slow plain reading of the formula (`oracle`)."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.index.activity import Cause
from analyzer.index.build import build
from analyzer.sources.kineto.read import read
from tests.index.oracle import Oracle, load
from tests.micro import (
    BUFFER,
    LOADING,
    QUEUE_FULL,
    annotation,
    call,
    frame,
    kernel,
    memcpy,
    op,
    overhead,
    write,
)


def by_device(chains):
    gaps = chains.idle.gaps.with_row_index("gap").select(pl.col("gap").cast(pl.Int64), "device")
    pieces = chains.idle.gap_pieces.join(gaps, on="gap").group_by("device", "cause").agg(pl.col("ns").sum())
    out = {device: {} for device in chains.device.frame["device"].unique().sort().to_list()}
    for device, cause, ns in pieces.iter_rows():
        out[device][Cause(cause).key] = ns
    return out


def assert_equal(got, want):
    """To the nanosecond, but for first use: of each stretch its share is rounded, and stretches may be joined."""
    split = ("first_use", "dispatch", "compiled_overhead", "python")
    for device in {*got, *want}:
        mine, theirs = got.get(device, {}), want.get(device, {})
        assert sum(mine.values()) == sum(theirs.values())
        for cause in {*mine, *theirs}:
            slack = 2000 if cause in split and "first_use" in theirs else 0
            assert abs(mine.get(cause, 0) - theirs.get(cause, 0)) <= slack, (device, cause, mine, theirs)


def idle_by_device(chains):
    gaps = (
        chains.idle.gaps.with_columns(idle=pl.col("end") - pl.col("start")).group_by("device").agg(pl.col("idle").sum())
    )
    return dict(gaps.iter_rows())


# -- random traces -----------------------------------------------------------------------------------------

START, LENGTH = st.integers(0, 800), st.sampled_from([0, 1, 3, 8, 20, 60, 150, 400])
TID = st.sampled_from([1, 1, 1, 2])
OPERATORS = ("aten::mm", "aten::mm", "aten::add", "Torch-Compiled Region: 0/0", "nccl:all_reduce", "gloo:all_reduce",
             "autograd::engine::evaluate_function: MmBackward0", "autograd::engine::evaluate_function: MulBackward0",
             "compile_fx (dynamo_timed)", "TorchDynamo Cache Lookup", "## Call CompiledFxGraph x ##")  # fmt: skip
ANNOTATIONS = ("forward", "ProfilerStep#1", "load_batch", "Torch-Compiled Region: 1/0")
CALLS = ("cudaStreamSynchronize", "cudaMalloc", "cuLibraryLoadData", "cudaLaunchKernel", "cudaGraphLaunch",
         "cudaFuncGetAttributes", "cudaStreamIsCapturing", "cudaStreamBeginCapture", "cudaStreamEndCapture",
         "cudaGraphInstantiate")  # fmt: skip
FRAMES = ("model.py(3): forward", "<built-in f>", "<built-in method run_backward of X>",
          "/x/torch/_dynamo/eval_frame.py(1): _fn", "/x/torch/utils/data/dataloader.py(1): __next__",
          "/x/torch/_inductor/compile_fx.py(1): compile_fx")  # fmt: skip


@st.composite
def event(draw, names, make):
    return make(draw(st.sampled_from(names)), draw(START), draw(LENGTH), tid=draw(TID))


LONELY_CALLS = st.builds(
    lambda name, ts, dur, tid: call(name, ts, dur, tid=tid, corr=ts + 5000 if "aunch" in name else 0),
    st.sampled_from(CALLS), START, LENGTH, TID,
)  # fmt: skip


@st.composite
def launched(draw, number):
    """A launch call with what it put on a device, mostly after it, now and then before."""
    ts, dur = draw(START), draw(st.sampled_from([2, 5, 30]))
    name = draw(
        st.sampled_from(["cudaLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemcpy"])
    )
    start = max(0, ts + draw(st.sampled_from([-3, 4, 6, 40, 200])))
    device = draw(st.sampled_from([0, 0, 0, 1]))
    stream = draw(st.sampled_from([7, 7, 8]))
    events = [call(name, ts, dur, corr=number, tid=draw(TID))]
    if "Memcpy" in name:
        kind = draw(st.sampled_from(["HtoD (Pageable -> Device)", "HtoD (Pinned -> Device)"]))
        return [*events, memcpy(kind, start, draw(LENGTH), number, stream=stream, device=device)]
    for _ in range(draw(st.integers(1, 3)) if name == "cudaGraphLaunch" else 1):
        length = draw(st.sampled_from([1, 5, 20, 60]))
        events.append(kernel("k", start, length, number, stream=stream, device=device))
        start += length + draw(st.integers(0, 12))
    return events


@st.composite
def traces(draw):
    events = [op("start", 0, 1)]
    for number in range(1, draw(st.integers(2, 6))):
        events += draw(launched(number))
    events += draw(st.lists(st.builds(lambda ts, d: kernel("unlinked", ts, d, 999), START, LENGTH), max_size=1))
    events += draw(st.lists(event(OPERATORS, op), max_size=6))
    events += draw(st.lists(event(ANNOTATIONS, annotation), max_size=3))
    events += draw(st.lists(LONELY_CALLS, max_size=3))
    events += draw(st.lists(event(FRAMES, frame), max_size=3))
    events += draw(
        st.lists(st.builds(overhead, st.sampled_from([BUFFER, LOADING, QUEUE_FULL]), START, LENGTH), max_size=2)
    )
    return events


@settings(max_examples=200)
@given(traces())
def test_the_causes_of_random_traces_are_the_oracles(tmp_path_factory, events):
    path = write(tmp_path_factory.getbasetemp() / "random.json", events)
    chains = build(read(path, jobs=1))
    assert_equal(by_device(chains), Oracle(load(path)).causes())
    assert {d: sum(c.values()) for d, c in by_device(chains).items() if c} == idle_by_device(chains)


# -- recorded traces ---------------------------------------------------------------------------------------

RECORDED = (
    "attention_inplace", "attention_sdpa_math", "cold_process", "cpu_only", "hidden_syncs", "matmul_add_64_cold_eager",
    "matmul_add_64_warm_default_20", "matmul_add_64_warm_reduce-overhead", "mlp_default", "pointwise_chain_eager",
    "recompile_storm", "streams_overlap", "three_threads",
)  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_the_causes_of_recorded_traces_are_the_oracles(shared, name):
    path = shared / "traces" / "recorded" / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("this trace is not beside the checkout")
    chains = build(read(path, jobs=1))
    assert_equal(by_device(chains), Oracle(load(path)).causes())
