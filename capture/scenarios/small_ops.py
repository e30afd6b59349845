"""Hundreds of operators on a handful of numbers."""

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """Two operators in a loop, in place."""
    x = torch.ones(4096, device=default_device())

    def step(_: int) -> object:
        with torch.no_grad():
            for _ in range(values["pairs"]):
                x.mul_(1.0001).add_(0.1)
        return None

    return Work(step)


def expect(_: Values) -> Expect:
    """A kernel of one microsecond takes several to launch."""
    return Expect(("overhead-bound",), text=("kernels of under a microsecond: launching takes far longer",))


SCENARIO = Scenario(
    name="small-ops",
    about="hundreds of one-microsecond kernels",
    build=build,
    small={"pairs": 20},
    expect=expect,
    options=(Option("pairs", 200, "pairs of operators in a step"),),
    variants=(Variant("many_small_ops", "tiny kernels"),),
)
