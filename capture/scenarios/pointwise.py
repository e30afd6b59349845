"""A chain of pointwise operators: six kernels, or one."""

from typing import Any

import torch

from capture.scenarios.base import (
    COMPILE_MODES,
    Expect,
    Option,
    Scenario,
    Values,
    Variant,
    Work,
    compiled,
    default_device,
)


def build(values: Values) -> Work:
    """Each operator reads and writes all of the memory."""
    x = torch.randn(1 << values["log2"], device=default_device())

    def plain(y: Any) -> Any:
        return torch.tanh(torch.relu(torch.sin(y) * 2 + 1) - 0.5)

    function = compiled(plain, values["compile"])

    def step(_: int) -> object:
        with torch.no_grad():
            return function(x)

    return Work(step)


def expect(values: Values) -> Expect:
    """Memory is the limit, so fusion is everything."""
    text = "six kernels that each read and write 64 MB"
    if values["compile"] != "none":
        # Fused, the kernel is about as short as the host takes to launch it.
        return Expect(("compute-bound", "mixed", "overhead-bound"), text=("one fused Triton kernel",))
    return Expect(("compute-bound",), text=(text,))


SCENARIO = Scenario(
    name="pointwise",
    about="a chain of six pointwise operators, eager or compiled",
    build=build,
    small={"log2": 12},
    expect=expect,
    options=(
        Option("log2", 24, "two to the power of this many elements"),
        Option("compile", "none", "torch.compile mode", COMPILE_MODES),
    ),
    variants=(
        Variant("pointwise_chain_eager", "memory-bound, unfused", active=5),
        Variant("pointwise_chain_compiled", "memory-bound, fused", {"compile": "default"}, active=5),
    ),
)
