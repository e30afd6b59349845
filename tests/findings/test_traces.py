"""What fires on each shared trace, recorded or public, and so what must not: the sets are exact.

Errors and warnings come first, then after a bar the notes. The reason beside each says why an expert would agree.
"""

from __future__ import annotations

import pytest

from analyzer import pipeline
from analyzer.sources.kineto.read import read
from tests.findings.expected import all_of

OURS = {
    # Hand-written attention: the scores cross memory for scale, mask and softmax. Only masked_fill clones its input.
    "attention_naive": "unfused-attention hidden-copy | recording-began-midflight",
    "attention_naive_100": "unfused-attention hidden-copy",
    "attention_inplace": "unfused-attention | recording-began-midflight",
    "attention_inplace_100": "unfused-attention",
    # bf16 inputs cast up, products on CUDA cores, a mask a call, a softmax that guards itself.
    "attention_sdpa_math": "sdpa-math-backend fp32-gemm-on-cuda-cores safe-softmax "
    "| causal-mask-rebuilt recording-began-midflight",
    "attention_sdpa_math_100": "sdpa-math-backend fp32-gemm-on-cuda-cores safe-softmax | causal-mask-rebuilt",
    # fp64 products run on tensor cores: math, but nothing on CUDA cores.
    "sdpa_auto_fp64_math": "sdpa-math-backend safe-softmax | causal-mask-rebuilt occupancy-not-measured",
    # Fused attention is never called slow: its low or unmeasured occupancy is a note, and so is its share.
    "attention_sdpa_cudnn": "| dominant-kernel occupancy-not-measured",
    "attention_sdpa_cudnn_100": "| dominant-kernel occupancy-not-measured",
    "attention_sdpa_efficient": "| dominant-kernel low-occupancy-by-design",
    "attention_sdpa_efficient_100": "| dominant-kernel low-occupancy-by-design",
    "attention_sdpa_flash": "| dominant-kernel low-occupancy-by-design",
    "attention_sdpa_flash_100": "| dominant-kernel low-occupancy-by-design",
    # 147 ms of loading, library start-up and queries in the first product; no steady state to judge beside it.
    "cold_process": "cold-start",
    "cpu_only": "",
    # Rank 0 waits in its collectives for rank 1, whose host is too slow: two sides of one coin.
    "ddp2/rank-0": "exposed-communication straggler-rank",
    "ddp2/rank-1": "overhead-bound host-pause | many-small-copies",
    # 149 launches a token; cuDNN's dispatch takes 64 µs for kernels of 5. Compiled without graphs it stays so.
    "decode_eager": "overhead-bound cudnn-plan-cost | blocking-sync",
    "decode_compile_default": "overhead-bound compile-tax | blocking-sync",
    # The graph removes the launches: what is left of the host is one .item() a token.
    "decode_cudagraph": "blocking-sync | occupancy-not-measured",
    # Three waits a step; the pageable constant is one of them.
    "hidden_syncs": "overhead-bound blocking-sync | pageable-copy",
    "input_starved_w0": "input-starvation | blocking-sync",
    "many_small_ops": "overhead-bound tiny-kernels",
    # One large product a step: the device is busy, the tax of torch.compile is hidden, the bias copy is not.
    "matmul_add_4096_cold_eager": "| dominant-kernel occupancy-not-measured",
    "matmul_add_4096_warm_eager": "| dominant-kernel occupancy-not-measured",
    "matmul_add_4096_warm_eager_20": "profiler-overhead | cold-start dominant-kernel occupancy-not-measured",
    "matmul_add_4096_warm_default": "overhead-bound addmm-bias-copy | "
    "compile-tax dominant-kernel occupancy-not-measured",
    "matmul_add_4096_warm_default_20": "addmm-bias-copy profiler-overhead | cold-start compile-tax dominant-kernel "
    "occupancy-not-measured",
    # The same for tiny products: the tax is what the device waits for. In a run of 20 calls the profiler's first
    # buffer takes most of the window, and what surrounds it is told as the profiler's start, not the run's.
    "matmul_add_64_cold_eager": "overhead-bound cold-start",
    "matmul_add_64_warm_eager": "overhead-bound",
    "matmul_add_64_warm_eager_20": "overhead-bound profiler-overhead",
    "matmul_add_64_warm_default": "overhead-bound compile-tax addmm-bias-copy",
    "matmul_add_64_warm_default_20": "overhead-bound compile-tax profiler-overhead | addmm-bias-copy cold-start",
    "matmul_add_64_warm_reduce-overhead": "overhead-bound compile-tax",
    "mlp_eager": "| dominant-kernel occupancy-not-measured",
    "mlp_default": "| compile-tax dominant-kernel occupancy-not-measured",
    # One product a step: launches bound the fast ones, and only fp32 runs on CUDA cores.
    "mm_2048_float16": "overhead-bound",
    "mm_2048_tf32": "overhead-bound",
    "mm_2048_float32": "fp32-gemm-on-cuda-cores",
    "mm_2048_float64": "| dominant-kernel occupancy-not-measured",
    # Eager: five passes over memory. Fused: one, and then the launch path is what is left.
    "pointwise_chain_eager": "dominant-kernel",
    "pointwise_chain_compiled": "overhead-bound compile-tax",
    # Eleven guard lookups, and no compiled region: Dynamo gave up.
    "recompile_storm": "overhead-bound recompilation",
    "resnet50_infer_fp32": "overhead-bound cudnn-plan-cost",
    # Another process: 17 spikes in five bursts; and one stretch of lower clocks. One finding each.
    "spikes_other_process": "kernel-spike kernel-spike | dominant-kernel occupancy-not-measured",
    # Six copies of 256 MiB beside 5 ms of products: the link is the limit.
    "streams_overlap": "exposed-copy | occupancy-not-measured",
    "three_threads": "fp32-gemm-on-cuda-cores",
    # Dispatch first, then the loader, which is an annotation of the user's.
    "train_eager": "overhead-bound input-starvation | blocking-sync",
    "train_eager_full": "overhead-bound input-starvation | blocking-sync profiler-overhead",
}

PUBLIC = {
    # 16 launches, one of which took 6.6 ms: overhead, but the advice is to record again.
    "hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto": "cold-start overhead-bound",
    # The host recorded nothing for 93% of the time: nothing is known, and nothing is said.
    "hta/critical_path/cuda_event_sync_multi_stream/event_sync_trace": "host-pause",
    # 41 s, most of it the start of CUDA and cuDNN. Allocations lie in first calls: no churn.
    "hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace": "cold-start",
    "hta/cupti_profiler/benchmark_result_924719_1679055439_trace": "",  # no device records at all
    "hta/rank_non_gpu/rank_non_gpu": "",
    "hta/mtia_inference_trace/mtia_inference_rank_0": "| dominant-kernel recording-began-midflight",
    # DDP on a host that is too slow; buckets and buffers are copied one tensor at a time.
    "hta/nccl_parser_config/nccl_data": "overhead-bound host-pause many-small-copies exposed-communication",
    # Recommendation models: all-to-all without compute beside it; inputs copied into CUDA graphs.
    "hta/negative_queue_length_values_check/rank0": "exposed-communication | "
    "compile-tax occupancy-not-measured recording-began-midflight",
    "hta/trace_diff/control/control": "exposed-communication | stream-contention",
    # A V100 computes fp32 without AMP; short kernels wait behind long ones of the embeddings' stream.
    "hta/trace_diff/test/test": "no-tensor-cores compile-tax exposed-communication stream-contention "
    "| blocking-sync compile-tax",
    "hta/trace_filter/sampled_rank-0": "exposed-communication host-pause",
    "hta/trace_filter/sampled_rank-1": "exposed-communication host-pause",
    "hta/trace_file_list/inference_rank_1": "cold-start",
    "hta/triton_example/triton_example": "host-pause",  # one kernel in 13 s of compiling that left no record
    # A serving engine in eager mode, recorded with stacks.
    "tracelens/b200/eager_trace": "overhead-bound | host-pause profiler-overhead",
    # Single forward passes at small batch, recorded with stacks.
    "tracelens/h100/Falconsai_nsfw_image_detection__1016002": "overhead-bound | profiler-overhead",
    "tracelens/mi300/Falconsai_nsfw_image_detection__1016002": "overhead-bound | profiler-overhead",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001": "overhead-bound | profiler-overhead",
    # RMSNorm, rotary embedding and SiLU in eager kernels, keys and values made contiguous.
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005": "hidden-copy dominant-kernel "
    "| occupancy-not-measured recording-began-midflight",
    # Preprocessing in the launching process, half of the time; then attention written out by hand.
    "tracelens/h100/google_owlv2-large-patch14-ensemble__1016001": "input-starvation unfused-attention | blocking-sync "
    "pageable-copy profiler-overhead",
    # A replayed graph that began 463 ms after its launch: nobody knows why, and no dispatch is blamed.
    "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode": "| recording-began-midflight",
    # One replayed graph, the device busy throughout: nothing to say.
    "tracelens/inference/vllm_decode_full/graph_execution": "| recording-began-midflight",
    # Gradients' all-reduce takes two thirds of the time, and nothing overlaps it.
    "tracelens/mi300/resnet_act_checkpoint": "exposed-communication | layout-conversions many-small-copies "
    "recording-began-midflight",
}

#: What a reader is told to do first, by words of the first finding's title, evidence and advice.
FIRST = {
    "public/tracelens/h100/google_owlv2-large-patch14-ensemble__1016001": (
        "input-starvation", "image_processing_owlv2.py(368): preprocess", "Move preprocess() out",
    ),
    "public/tracelens/mi300/resnet_act_checkpoint": ("exposed-communication", "Compare the ranks first", "DDP"),
}  # fmt: skip


@pytest.fixture(scope="session")
def judged(shared):
    """Findings of a trace, read and analysed once."""
    seen = {}

    def findings(name):
        if name not in seen:
            path = shared / "traces" / f"{name}.json.gz"
            if not path.exists():
                pytest.skip(f"no trace {name} beside the checkout")
            seen[name] = pipeline.run(read(str(path), jobs=1)).findings
        return seen[name]

    return findings


TRACES = {f"recorded/{name}": names for name, names in OURS.items()} | {
    f"public/{name}": names for name, names in PUBLIC.items()
}


@pytest.mark.parametrize(("trace", "expected"), TRACES.items(), ids=list(TRACES))
def test_what_fires_on_a_trace_is_what_an_expert_would_sign(judged, trace, expected):
    found = judged(trace)
    grave, _, notes = expected.partition("|")
    assert sorted(f.name for f in found if f.severity.value != "note") == sorted(grave.split())
    assert sorted(f.name for f in found if f.severity.value == "note") == sorted(notes.split())


@pytest.mark.parametrize(("trace", "said"), FIRST.items(), ids=list(FIRST))
def test_the_first_advice_is_the_one_an_expert_would_give_first(judged, trace, said):
    first = judged(trace)[0]
    name, *words = said
    assert first.name == name
    assert [word for word in words if word not in all_of(first)] == []


def test_nothing_ever_claims_more_than_the_window(judged):
    for trace in TRACES:
        for found in judged(trace):
            assert found.share is None or 0 <= found.share <= 1, (trace, found)
