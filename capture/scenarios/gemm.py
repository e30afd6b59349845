"""The same product in four number formats: which units of the device work."""

import torch
from torch.profiler import record_function

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device, dtype_of


def build(values: Values) -> Work:
    """tf32 is float32 with the fast path allowed; the setting is put back afterwards."""
    device, size, name = default_device(), values["size"], values["dtype"]
    dtype = dtype_of("float32" if name == "tf32" else name)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    a, b = (torch.randn((size, size), device=device, dtype=dtype) for _ in range(2))

    def step(_: int) -> object:
        with torch.no_grad(), record_function("mm"):
            return torch.matmul(a, b)

    def close() -> None:
        torch.backends.cuda.matmul.allow_tf32 = before

    return Work(step, close)


def expect(values: Values) -> Expect:
    """float32 runs on the CUDA cores, all others on tensor cores."""
    cores = "CUDA cores" if values["dtype"] == "float32" else "tensor cores"
    # The fast formats finish about when the next product is launched.
    fast = values["dtype"] in ("float16", "tf32")
    return Expect(
        ("compute-bound", "mixed", "overhead-bound") if fast else ("compute-bound",),
        {"mm": 1},
        (f"one GEMM a step, on the {cores}",),
    )


SCENARIO = Scenario(
    name="gemm",
    about="a matrix product on CUDA cores (float32) or tensor cores (tf32, float16, float64)",
    build=build,
    small={"size": 64},
    expect=expect,
    options=(
        Option("size", 2048, "rows and columns of the square operands"),
        Option("dtype", "float32", "number format", ("float16", "tf32", "float32", "float64")),
    ),
    variants=tuple(
        Variant(f"mm_2048_{name}", f"a {name} GEMM", {"dtype": name})
        for name in ("float16", "tf32", "float32", "float64")
    ),
)
