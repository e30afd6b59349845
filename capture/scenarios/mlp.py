"""A gated feed-forward block: three GEMMs and two pointwise kernels, which a compiler makes one."""

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
from capture.scenarios.models import Mlp


def build(values: Values) -> Work:
    """One forward pass a step."""
    device, dtype = default_device(), dtype_of(values["dtype"])
    model = Mlp(values["width"], values["hidden"]).to(device, dtype).eval()
    x = torch.randn(values["tokens"], values["width"], device=device, dtype=dtype)
    function = compiled(model, values["compile"])

    def step(_: int) -> object:
        with torch.no_grad(), record_function("mlp_fwd"):
            return function(x)

    return Work(step)


def expect(values: Values) -> Expect:
    """Compiled, the two pointwise kernels are one."""
    events = {"none": 7, "default": 6}.get(values["compile"], 0)
    text = "three GEMMs, two pointwise kernels, two memsets of four bytes"
    if values["compile"] != "none":
        text = "three GEMMs, one fused Triton kernel"
    return Expect(("compute-bound",), {"mlp_fwd": events} if events else {}, (text,))


SCENARIO = Scenario(
    name="mlp",
    about="a SwiGLU block, eager or compiled",
    build=build,
    small={"tokens": 32, "width": 64, "hidden": 128},
    expect=expect,
    options=(
        Option("tokens", 2048, "rows of the input"),
        Option("width", 2048, "columns of the input"),
        Option("hidden", 8192, "columns inside"),
        Option("dtype", "bfloat16", "element type", DTYPES),
        Option("compile", "none", "torch.compile mode", COMPILE_MODES),
    ),
    variants=(
        Variant("mlp_eager", "five kernels a step"),
        Variant("mlp_default", "compiled: pointwise kernels fused", {"compile": "default"}),
        Variant("mlp_reduce-overhead", "compiled into a CUDA graph", {"compile": "reduce-overhead"}),
    ),
)
