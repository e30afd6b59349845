"""One small trace for each finding, with what it must say: figures are worked out beside the events.

Times in µs. The window of each trace starts at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.micro import (
    BUFFER,
    Event,
    annotation,
    call,
    frame,
    kernel,
    launch,
    memcpy,
    op,
    overhead,
    step,
)

POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
SGEMM = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4"
GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@dataclass(frozen=True)
class Case:
    """events of the trace; severity and up_to (µs, None: n/a) of the finding; says: parts of its text."""

    events: list[Event]
    severity: str
    up_to: float | None
    says: tuple[str, ...] = ()
    header: dict[str, Any] = field(default_factory=dict)


CASES: dict[str, Callable[[], Case]] = {}


def case(build: Callable[[], Case]) -> Callable[[], Case]:
    CASES[build.__name__.replace("_", "-")] = build
    return build


def dispatched(name: str, ts: float, dur: float, corr: int, at: float, work: Event) -> list[Event]:
    """An operator, its launch call of 4 µs at `ts + at`, and what that launched."""
    return [op(name, ts, dur), launch("cudaLaunchKernel", ts + at, 4, corr), work]


@case
def overhead_bound() -> Case:
    """Four operators of 100 µs, one after the other, each with a kernel of 1 µs: busy 4 of 400 µs."""
    events = []
    for i in range(4):
        events += dispatched("aten::add", 100 * i, 100, i + 1, 90, kernel(POINTWISE, 100 * i + 95, 1, i + 1))
    return Case(events, "error", 396, ("4 launches", "aten::add", "99%"))


@case
def recording_began_midflight() -> Case:
    """Launched at 10, and the device starts at 5000: until then it worked through what was not recorded."""
    events = dispatched("aten::mm", 0, 20, 1, 10, kernel(GEMM, 5000, 2000, 1))
    return Case(events, "note", None, ("4.99 ms of 7.00 ms", "earlier work"))


@case
def graph_capture() -> Case:
    """Between [12, 14] and [400, 410] three launches run nothing; instantiation to 500: 488 µs of the gap [10, 900]."""
    events = dispatched("aten::mm", 0, 8, 1, 2, kernel(GEMM, 8, 2, 1))
    events += [call("cudaStreamBeginCapture", 12, 2), call("cudaStreamEndCapture", 400, 10)]
    events += [call("cudaGraphInstantiate", 410, 90)]
    events += [launch("cudaLaunchKernel", 20 + 10 * i, 4, 50 + i) for i in range(3)]
    events += [call("cudaGraphLaunch", 890, 5, corr=2), kernel(GEMM, 900, 100, 2)]
    return Case(events, "note", 488, ("3 launches captured", "1 graph launch"))


@case
def blocking_sync() -> Case:
    """Twice: a kernel of 100 µs, a wait of 95 for it, then 50 µs of idle time until the next launch arrives.

    The wait is longer than the gap, so that the gap is what it cost: 2 × 50 µs.
    """
    events = []
    for i, t in enumerate((0, 160)):
        events += dispatched("aten::mm", t, 10, 10 + i, 2, kernel(GEMM, t + 6, 99, 10 + i))
        events += [op("aten::item", t + 10, 100), op("aten::_local_scalar_dense", t + 11, 98)]
        events += [call("cudaStreamSynchronize", t + 12, 95, corr=50 + i)]
        events += dispatched("aten::add", t + 110, 50, 20 + i, 40, kernel(POINTWISE, t + 155, 1, 20 + i))
    return Case(events, "error", 100, ("2 waits", "190 µs", "aten::item", ".item()"))


@case
def input_starvation() -> Case:
    """A gap from 105 to 905; the loader was open until 900: 795 µs. The deepest frame in a file is preprocess."""
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events = [
        *dispatched("aten::mm", 0, 10, 1, 2, kernel(GEMM, 6, 99, 1)),
        annotation(loader, 10, 890),
        frame("torch/utils/data/dataloader.py(703): __next__", 11, 888),
        frame("images.py(368): preprocess", 20, 870),
        frame("<built-in function zoom_shift>", 30, 850),
        *dispatched("aten::mm", 900, 10, 2, 1, kernel(GEMM, 905, 100, 2)),
    ]
    return Case(events, "error", 795, ("images.py(368): preprocess", loader, "num_workers", "preprocess()"))


@case
def cold_start() -> Case:
    """aten::mm takes 1,000 µs, then three times 10: of the first call 99% is first use.

    Idle in the first call: 0 to 994 before the launch returned, 996 to 1,000 after its kernel: 0.99 × 998 µs.
    """
    events = dispatched("aten::mm", 0, 1000, 1, 990, kernel(GEMM, 995, 1, 1))
    for i in range(3):
        events += dispatched("aten::mm", 1000 + 10 * i, 10, 2 + i, 3, kernel(GEMM, 1008 + 10 * i, 1, 2 + i))
    return Case(events, "error", 988.02, ("first aten::mm: 1.00 ms", "later ones median 10.0 µs"))


@case
def profiler_overhead() -> Case:
    """A gap from 9 to 395, of which the profiler handled buffers for 200 µs; the window is 400."""
    events = [
        *dispatched("aten::mm", 0, 10, 1, 3, kernel(GEMM, 8, 1, 1)),
        *dispatched("aten::mm", 10, 390, 2, 380, kernel(GEMM, 395, 1, 2)),
        overhead(BUFFER, 100, 200),
    ]
    return Case(events, "warning", 200, ("50%",))


@case
def compile_tax() -> Case:
    """Three calls: 10 µs of guards, a region of 80 with an operator of 30: tax 50 + 10 a call.

    The device waits throughout, but for the last call, where its wait ends with the launch: of the region 50, 50 and
    44 µs are exposed, of each lookup 10.
    """
    events = []
    for i in range(3):
        t = 100 * i
        events += [op("TorchDynamo Cache Lookup", t, 10), op("Torch-Compiled Region: 0/0", t + 10, 80)]
        events += dispatched("aten::mm", t + 40, 30, i + 1, 10, kernel(GEMM, t + 55, 1, i + 1))
    return Case(events, "error", 174, ("60.0 µs of host time a call", "guards"))


@case
def recompilation() -> Case:
    events = []
    for i, version in enumerate((0, 1, 4)):
        events += [
            op("TorchDynamo Cache Lookup", 100 * i, 5),
            op(f"Torch-Compiled Region: 2/{version}", 100 * i + 5, 50),
        ]
        events += dispatched("aten::mm", 100 * i + 20, 20, i + 1, 3, kernel(GEMM, 100 * i + 30, 60, i + 1))
    return Case(events, "warning", None, ("function 2: versions 0, 1, 4 in 3 calls", "mark_dynamic"))


@case
def graph_break() -> Case:
    events = [
        frame("model.py(12): torch_dynamo_resume_in_forward_at_12", 0, 50),
        *dispatched("aten::mm", 0, 10, 1, 3, kernel(GEMM, 8, 100, 1)),
    ]
    return Case(events, "note", None, ("forward, line 12", "fullgraph"))


@case
def hidden_copy() -> Case:
    """masked_fill > clone (50 µs on the device) and masked_fill_ (100 µs)."""
    events = [
        op("aten::masked_fill", 0, 30),
        op("aten::clone", 2, 10),
        op("aten::copy_", 3, 8),
        launch("cudaMemcpyAsync", 5, 2, 1),
        memcpy("DtoD (Device -> Device)", 10, 50, 1, size=1 << 20),
        op("aten::masked_fill_", 14, 14),
        launch("cudaLaunchKernel", 16, 2, 2),
        kernel(POINTWISE, 60, 100, 2),
    ]
    return Case(events, "warning", 50, ("aten::masked_fill copies its whole input", "masked_fill_()"))


@case
def addmm_bias_copy() -> Case:
    """The copy takes 20 µs; its launch call of 4 µs lies in the lead-in, so that the device waited for it too."""
    events = [
        op("aten::addmm", 0, 30),
        launch("cudaMemcpyAsync", 5, 4, 1),
        memcpy("DtoD (Device -> Device)", 10, 20, 1, size=4096),
        launch("cuLaunchKernelEx", 20, 4, 2),
        kernel(GEMM, 30, 100, 2),
    ]
    return Case(events, "warning", 24, ("1 of 1 addmm call", "copy 20.0 µs, product 100 µs"))


@case
def pageable_copy() -> Case:
    """The copy runs alone for 80 µs; the device is idle in its call for 10 µs before and 10 after."""
    events = [
        op("aten::copy_", 0, 120),
        launch("cudaMemcpyAsync", 10, 100, 1),
        memcpy("HtoD (Pageable -> Device)", 20, 80, 1, size=8000),
        *dispatched("aten::mm", 120, 10, 2, 1, kernel(GEMM, 125, 100, 2)),
    ]
    return Case(events, "error", 100, ("1 × Memcpy HtoD (Pageable -> Device)", "pin_memory"))


@case
def many_small_copies() -> Case:
    """Fifty copies of 1 µs with 49 gaps of 9 µs between them, and the first one's launch call of 4 µs."""
    events = []
    for i in range(50):
        copy = memcpy("DtoD (Device -> Device)", 10 * i + 8, 1, i + 1, size=1024)
        events += dispatched("aten::copy_", 10 * i, 10, i + 1, 3, copy)
    return Case(events, "error", 495, ("50 copies", "median 1.00 KiB"))


@case
def tiny_kernels() -> Case:
    """A hundred kernels of 1 µs with 9 µs of idle time between them."""
    events = []
    for i in range(100):
        events += dispatched("aten::add", 10 * i, 10, i + 1, 3, kernel(POINTWISE, 10 * i + 8, 1, i + 1))
    return Case(events, "warning", 891, ("100 of 100 launches", "100 aten::add"))


@case
def allocator_churn() -> Case:
    """Four rounds, each with 30 µs of cudaFree and 50 of cudaMalloc while the device is idle."""
    events = []
    for i in range(4):
        t = 200 * i
        events += [op("aten::empty", t, 100), call("cudaFree", t + 10, 30), call("cudaMalloc", t + 40, 50)]
        events += dispatched("aten::add", t + 100, 10, i + 1, 3, kernel(POINTWISE, t + 108, 80, i + 1))
    return Case(events, "error", 320, ("4 allocating calls", "4 freeing calls", "8 in aten::empty"))


def attention(operators: list[tuple[str, str, float]], start: int = 1, device: float = 50) -> list[Event]:
    """Operators of 10 µs one after the other from 2 on, each with one kernel (name, µs), back to back on the device."""
    events = []
    for i, (operator, name, dur) in enumerate(operators):
        events += dispatched(operator, 2 + 10 * i, 10, start + i, 2, kernel(name, device, dur, start + i))
        device += dur
    return events


MATH = [("aten::bmm", SGEMM, 20), ("aten::add_", POINTWISE, 30), ("aten::_softmax", "softmax_warp_forward", 30),
        ("aten::bmm", SGEMM, 20)]  # fmt: skip


@case
def sdpa_math_backend() -> Case:
    """100 µs on the device, 40 of them the two products."""
    events = [op("aten::scaled_dot_product_attention", 0, 45), op("aten::_scaled_dot_product_attention_math", 1, 44)]
    events += attention(MATH)
    return Case(
        events, "error", 60, ("1 call", "100 µs on the device each, 4 kernels", "bmm 40%", "fp32", "sdpa_kernel")
    )


@case
def unfused_attention() -> Case:
    """Product, scale, softmax, product: 100 µs, 40 of them the products."""
    names = [("aten::matmul", 20), ("aten::mul", 30), ("aten::softmax", 30), ("aten::matmul", 20)]
    inner = ["aten::bmm", "aten::mul", "aten::_softmax", "aten::bmm"]
    events, device = [annotation("attn", 0, 60)], 50.0
    for i, ((outer, dur), operator) in enumerate(zip(names, inner, strict=True)):
        name = GEMM if operator == "aten::bmm" else POINTWISE
        events += [op(outer, 2 + 10 * i, 10)]
        events += dispatched(operator, 3 + 10 * i, 8, i + 1, 2, kernel(name, device, dur, i + 1))
        device += dur
    return Case(events, "error", 60, ("1 call in attn", "scaled_dot_product_attention"))


@case
def fp32_gemm_on_cuda_cores() -> Case:
    """80 µs at a rate that tensor cores exceed eightfold: up to 70."""
    events = dispatched("aten::mm", 0, 10, 1, 2, kernel("ampere_sgemm_128x64_nn", 10, 80, 1))
    return Case(events, "warning", 70, ("ampere_sgemm_128x64_nn", "set_float32_matmul_precision"))


@case
def causal_mask_rebuilt() -> Case:
    """Two calls of the math backend, each building its mask in 2 + 3 µs, of about 300."""
    mask = [("aten::ones", POINTWISE, 2), ("aten::tril", "triu_tril_kernel", 3), *MATH]
    events = []
    for i in range(2):
        one = [op("aten::_scaled_dot_product_attention_math", 1, 64), *attention(mask, 1 + 10 * i, 70)]
        events += [{**e, "ts": e["ts"] + 180 * i} for e in one]
    return Case(events, "note", 10, ("built 2 times", "median 5.00 µs", "median 30.0 µs"))


@case
def safe_softmax() -> Case:
    """The softmax takes 60 µs, its guard 10 + 20."""
    events = [op("aten::_safe_softmax", 1, 40)]
    events += attention([("aten::softmax", "softmax_warp_forward", 60), ("aten::isneginf", POINTWISE, 10),
                         ("aten::where", POINTWISE, 20)])  # fmt: skip
    return Case(events, "warning", 30, ("guard 30.0 µs", "60.0 µs"))


#: 255 registers × 32 lanes round up to 8,192 a warp: 8 of 64 warps, 12.5%. Shared memory allows 4 blocks of 4 warps.
SHAPE = {"block": [128, 1, 1], "grid": [64, 1, 1], "registers": 255, "shared": 49152}


@case
def low_occupancy_by_design() -> Case:
    flash = kernel(
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64> >", 10, 80, 1, occupancy=13, **SHAPE
    )
    return Case(dispatched("aten::mm", 0, 10, 1, 2, flash), "note", None, ("12.5%, limited by registers",))


@case
def occupancy_not_measured() -> Case:
    cudnn = kernel("cudnn_generated_fort_native_sdpa_sm90_flash_fprop", 10, 80, 1, occupancy=0, **SHAPE)
    return Case(dispatched("aten::mm", 0, 10, 1, 2, cudnn), "note", None, ("theoretical 12.5%", "low by design"))


@case
def cudnn_plan_cost() -> Case:
    """Five calls of 80 µs where an operator takes 10; the device waits for 78 of each: 70 are the plan's."""
    events = []
    for i in range(5):
        t = 100 * i
        sdpa = kernel("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64", t + 75, 1, 30 + i)
        events += dispatched("aten::_cudnn_attention_forward", t, 80, 30 + i, 70, sdpa)
        for j in (0, 1):
            corr = 10 + 2 * i + j
            events += dispatched(
                "aten::add", t + 80 + 10 * j, 10, 50 + corr, 3, kernel(POINTWISE, t + 88 + 10 * j, 1, 50 + corr)
            )
    return Case(events, "warning", 350, ("5 calls, own CPU median 80.0 µs", "median of 10.0 µs", "knobs chosen: 7"))


@case
def dominant_kernel() -> Case:
    events = [
        *dispatched("aten::_softmax", 0, 10, 1, 2, kernel("cunn_SoftMaxForward<8>", 10, 80, 1)),
        *dispatched("aten::mm", 10, 10, 2, 2, kernel(GEMM, 90, 20, 2)),
    ]
    return Case(events, "warning", None, ("80%", "cunn_SoftMaxForward", "softmax"))


@case
def kernel_spike() -> Case:
    """Twenty calls of 10 µs and one of 510."""
    events, device = [], 100.0
    for i in range(21):
        dur = 510 if i == 7 else 10
        events += dispatched("aten::mm", 4 * i, 4, i + 1, 0, kernel(GEMM, device, dur, i + 1))
        device += dur
    return Case(events, "warning", 500, ("1 lone call", "usually 10.0 µs", "not visible in a trace"))


@case
def exposed_communication() -> Case:
    """A collective from 40 to 140, compute until 60: exposed for 80 µs."""
    events = [
        *dispatched("aten::mm", 0, 5, 1, 0, kernel(GEMM, 5, 55, 1)),
        *dispatched("c10d::allreduce_", 5, 5, 2, 0, kernel(ALLREDUCE, 40, 100, 2, stream=20)),
    ]
    return Case(events, "error", 80, ("80.0 µs of 100 µs", "Compare the ranks"))


@case
def straggler_rank() -> Case:
    """The collective of a step takes 10, 50 and 50 µs: 80 more than three times its fastest run."""
    events = []
    for i, dur in enumerate((10, 50, 50)):
        t = 100 * i
        events += [
            step(i, t, 100),
            *dispatched("c10d::allreduce_", t, 5, i + 1, 0, kernel(ALLREDUCE, t + 5, dur, i + 1)),
        ]
    return Case(events, "warning", 80, ("waited 80.0 µs", "fastest 10.0 µs", "collective 1 of each step"))


@case
def exposed_copy() -> Case:
    """100 µs of copying alone beside 50 of compute: overlap hides no more than the compute."""
    events = [
        *dispatched("aten::copy_", 0, 5, 1, 0, memcpy("HtoD (Pinned -> Device)", 5, 100, 1, size=5 << 20)),
        *dispatched("aten::mm", 5, 5, 2, 0, kernel(GEMM, 105, 50, 2)),
    ]
    return Case(events, "error", 50, ("Memcpy HtoD (Pinned -> Device)", "64.5%", "fewer bytes"))


@case
def host_pause() -> Case:
    """Three collections of 5,010 µs, each between ten launches at a cadence of 20 µs: 15,030 µs of nothing to do."""
    events = [frame("train.py(9): loop", 0, 15_800)]
    for group in range(4):
        t = 5200 * group
        for i in range(10):
            at = t + 20 * i
            events += dispatched(
                "aten::add", at, 10, 10 * group + i + 1, 2, kernel(POINTWISE, at + 8, 2, 10 * group + i + 1)
            )
        if group < 3:
            events.append(frame("<built-in function collect>", t + 190, 5010))
    says = ("<built-in function collect> holds the launching thread 3 times, 15.0 ms in all",
            "3 pauses, median 5.01 ms, max 5.01 ms; in train.py(9): loop", "gc.freeze()")  # fmt: skip
    return Case(events, "error", 15_030, says)


@case
def host_interference() -> Case:
    """Sixteen times between two launches the thread does not run for 5, 10, 5, 15 ms less the 10 µs of an operator."""
    events = []
    t = 0
    for i in range(17):
        events += dispatched("aten::add", t, 10, i + 1, 2, kernel(POINTWISE, t + 8, 2, i + 1))
        t += 5000 * (1, 2, 1, 3)[i % 4]
    return Case(events, "error", 139_840, ("kept from running 16 times, 140 ms in all", "multiples of the 5 ms"))


@case
def optimizer_loop() -> Case:
    """Forty updates of 10 µs each with a kernel of 1 µs: 39 gaps of 9 µs end with one of them."""
    events = [annotation("Optimizer.step#SGD.step", 0, 400)]
    for i in range(40):
        events += dispatched("aten::add_", 10 * i, 10, i + 1, 3, kernel(POINTWISE, 10 * i + 8, 1, i + 1))
    return Case(
        events, "error", 351, ("SGD.step updates one parameter at a time: 40 launches", "40 add_", "fused=True")
    )


def heads(count: int, *, name: str = "Head_0", around: str = "Net_0", device: float = 1) -> list[Event]:
    """A module called `count` times in one call of another: 40 µs each, two launches, kernels of `device` µs."""
    events = [frame(f"nn.Module: {around}", 0, 40 * count)]
    for i in range(count):
        at = 40 * i
        events += [frame(f"nn.Module: {name}", at, 40)]
        events += dispatched("aten::addmm", at, 20, 2 * i + 1, 2, kernel(GEMM, at + 8, device, 2 * i + 1))
        events += dispatched("aten::relu", at + 20, 20, 2 * i + 2, 2, kernel(POINTWISE, at + 28, device, 2 * i + 2))
    return events


@case
def repeated_small_calls() -> Case:
    """Ten calls of 40 µs, 34 each before a launch returned, 11 less in the last: 329 waited, nine tenths spare."""
    says = ("Head is called 10 times in a row", "10 calls in one call of Net", "launches 2", "call the module once")
    return Case(heads(10), "error", 296.1, says)


@case
def stream_contention() -> Case:
    """Seven products of 100 µs, all queued by 40; the sixth starts 300 µs late, behind a copy of another stream."""
    events = []
    for i in range(7):
        at = 10 + 100 * i + (300 if i >= 5 else 0)
        events += dispatched("aten::mm", 5 * i, 5, i + 1, 0, kernel(GEMM, at, 100, i + 1))
    copy = memcpy("DtoD (Device -> Device)", 500, 310, 50, stream=20, size=1 << 30)
    events += dispatched("aten::copy_", 40, 5, 50, 0, copy)
    says = ("1 queued launch starts late", "behind Memcpy DtoD (Device -> Device)", "300 µs late")
    return Case(events, "warning", 300, says)


CAST = (
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::"
    "{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4, "
    "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >"
)
NARROW = (
    "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)"
    "::{lambda(float)#1}, std::array<char*, 2ul> >"
)


def converted(ts: float, corr: int, work: Event) -> list[Event]:
    """`.to(...)`: 10 µs of host time."""
    return [
        op("aten::to", ts, 10),
        op("aten::_to_copy", ts + 1, 8),
        *dispatched("aten::copy_", ts + 2, 6, corr, 1, work),
    ]


@case
def dtype_round_trip() -> Case:
    """A product of 60 µs, 20 to fp32, 10 of relu, 10 back to bf16: 30 µs of conversions."""
    events = dispatched("aten::mm", 0, 10, 1, 2, kernel(GEMM, 10, 60, 1))
    events += converted(10, 2, kernel(CAST, 70, 20, 2))
    events += dispatched("aten::relu", 20, 10, 3, 2, kernel(POINTWISE, 90, 10, 3))
    events += converted(30, 4, kernel(NARROW, 100, 10, 4))
    return Case(events, "warning", 30, ("1 tensor", "bf16 > fp32 > bf16", "Leave the tensors in bf16"))


@case
def layout_conversions() -> Case:
    """Of a convolution's 100 µs on the device, 10 convert its input and 10 its output."""
    events = [op("aten::conv2d", 0, 40), op("aten::cudnn_convolution", 1, 38)]
    for i, (name, at, dur) in enumerate(
        (("nchwToNhwcKernel<__half>", 10, 10), ("sm80_xmma_fprop_implicit_gemm", 20, 80), ("nhwcToNchwKernel", 100, 10))
    ):
        events += [launch("cudaLaunchKernel", 2 + 2 * i, 2, i + 1), kernel(name, at, dur, i + 1)]
    return Case(events, "warning", 20, ("1 convolution", "2 times", "channels_last"))


def attended(types: list[str], dims: list[Any], backend: str, name: str) -> list[Event]:
    """One call of scaled_dot_product_attention with recorded inputs, 100 µs on the device."""
    call_ = op("aten::scaled_dot_product_attention", 0, 20)
    call_["args"] = {"Input type": types, "Input Dims": dims, "Concrete Inputs": ["", "", "", "", "0.", "False"]}
    return [call_, *dispatched(backend, 1, 18, 1, 2, kernel(name, 10, 100, 1))]


@case
def sdpa_fast_backend_excluded() -> Case:
    """fp32 inputs: the efficient kernel takes 100 of 110 µs."""
    types, dims = ["float", "float", "float", "", "Scalar", "Scalar"], [[4, 16, 2048, 64]] * 3 + [[], [], []]
    efficient = "aten::_scaled_dot_product_efficient_attention"
    events = attended(types, dims, efficient, "fmha_cutlassF_f32_aligned_64x64_rf_sm80(Kernel<float>)")
    return Case(events, "warning", None, ("1 call ran efficient", "inputs are fp32", "bf16 or fp16"))


@case
def no_tensor_cores() -> Case:
    """80 µs of fp32 on a Volta: its tensor cores take fp16, eight times as fast."""
    events = dispatched("aten::mm", 0, 10, 1, 2, kernel("volta_sgemm_128x64_nn", 10, 80, 1))
    volta = {"deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7, "computeMinor": 0}]}
    return Case(events, "warning", 70, ("volta_sgemm_128x64_nn", "GradScaler"), volta)


def reduced(ts: float, dur: float, corr: int, elements: int) -> Event:
    """The kernel of an all-reduce of fp32 numbers, as NCCL's is recorded."""
    event = kernel(ALLREDUCE, ts, dur, corr)
    event["args"] |= {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": elements}
    return event


@case
def unbucketed_collectives() -> Case:
    """Fifty all-reduces of 4 KiB: 10 µs each with nothing beside it, and 49 gaps of 10 µs that end with one."""
    events = []
    for i in range(50):
        events += dispatched("c10d::allreduce_", 20 * i, 10, i + 1, 3, reduced(20 * i + 10, 10, i + 1, 1024))
    return Case(events, "warning", 990, ("50 collectives", "allreduce", "4.00 KiB"))
