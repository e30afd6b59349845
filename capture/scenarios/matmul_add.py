"""A matrix product and an addition: two kernels, and all the ways to wait for them."""

import torch
from torch.profiler import record_function

from capture.scenarios.base import (
    COMPILE_MODES,
    DTYPES,
    Expect,
    Option,
    Scenario,
    Values,
    Variant,
    Work,
    compiled,
    default_device,
    dtype_of,
)


def build(values: Values) -> Work:
    """Operands once, then one product and one addition a step."""
    device, dtype, size = default_device(), dtype_of(values["dtype"]), values["size"]
    shape = (values["batched"], size, size) if values["batched"] else (size, size)
    a, b, c = (torch.randn(shape, device=device, dtype=dtype) for _ in range(3))

    def plain(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return torch.add(torch.matmul(x, y), z)

    function = compiled(plain, values["compile"])

    def step(_: int) -> object:
        with torch.no_grad(), record_function("matmul_add"):
            return function(a, b, c)

    return Work(step)


def expect(values: Values) -> Expect:
    """Small products are over before the next is launched; large ones keep the device busy."""
    large = values["size"] >= 2048
    if values["cold"]:
        return Expect(
            ("startup-bound", "overhead-bound"),
            text=(
                "the first call takes a hundred milliseconds and more: modules and kernels are loaded, the",
                "library asks for occupancies, the profiler takes its first buffer; later calls are normal",
            ),
        )
    if values["compile"] == "none":
        events = 3 if large and values["dtype"] == "bfloat16" and not values["batched"] else 2
    elif values["compile"] == "default":
        events = 3 if large else 2
    else:
        events = 0
    return Expect(
        # Few calls, after an idle device: the host's head start weighs as much as the product.
        ("compute-bound", "mixed", "overhead-bound") if large else ("overhead-bound",),
        {"matmul_add": events} if events and not values["batched"] else {},
        (
            "compiled: one aten::addmm, its output seeded by a Memcpy DtoD; more CPU time than eager",
            "if the product is small",
        )
        if values["compile"] != "none"
        else ("a GEMM, an addition; a large GEMM is led by a memset of four bytes",),
    )


SCENARIO = Scenario(
    name="matmul-add",
    about="matrix product and addition, small or large, eager or compiled, warm or cold",
    build=build,
    small={"size": 64},
    expect=expect,
    options=(
        Option("size", 4096, "rows and columns of the square operands"),
        Option("dtype", "bfloat16", "element type", DTYPES),
        Option("compile", "none", "torch.compile mode", COMPILE_MODES),
        Option("batched", 0, "how many products at once (0: plain matrices)"),
        Option("cold", False, "record the very first calls of a fresh process"),
    ),
    variants=(
        Variant("matmul_add_64_warm_eager", "two tiny kernels: dispatch holds the device back", {"size": 64}),
        Variant("matmul_add_64_warm_eager_20", "the same over twenty steps", {"size": 64}, active=20),
        Variant("matmul_add_4096_warm_eager", "the device is the bottleneck", {"size": 4096}),
        Variant("matmul_add_4096_warm_eager_20", "the same over twenty steps", {"size": 4096}, active=20),
        Variant("matmul_add_64_batched_8", "one batched product", {"size": 64, "batched": 8}),
        Variant(
            "cold_process",
            "what the first call of a process costs",
            {"size": 64, "cold": True},
            whole=True,
            fresh=True,
        ),
        Variant(
            "matmul_add_64_warm_default",
            "compiled: fewer kernels, more CPU time",
            {"size": 64, "compile": "default"},
        ),
        Variant(
            "matmul_add_64_warm_default_20",
            "the same over twenty steps",
            {"size": 64, "compile": "default"},
            active=20,
        ),
        Variant(
            "matmul_add_4096_warm_default_20",
            "compiled, and the device is the bottleneck",
            {"size": 4096, "compile": "default"},
            active=20,
        ),
        Variant(
            "matmul_add_64_warm_reduce-overhead",
            "compiled into a CUDA graph, inputs copied into it",
            {"size": 64, "compile": "reduce-overhead"},
        ),
        Variant(
            "matmul_add_4096_warm_reduce-overhead_20",
            "replayed, and the device sets the pace: the profiled order of the two compiled runs misleads",
            {"size": 4096, "compile": "reduce-overhead"},
            active=20,
        ),
        Variant(
            "matmul_add_4096_warm_max-autotune-no-cudagraphs_20",
            "the other of the two",
            {"size": 4096, "compile": "max-autotune-no-cudagraphs"},
            active=20,
        ),
    ),
)
