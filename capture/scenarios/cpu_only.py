"""No device at all."""

import torch

from capture.scenarios.base import Expect, Scenario, Values, Variant, Work


def build(_: Values) -> Work:
    """A product, an activation and a sum, on the CPU even where there is a GPU."""

    def step(_: int) -> object:
        with torch.no_grad():
            return torch.relu(torch.randn(256, 256) @ torch.randn(256, 256)).sum()

    return Work(step)


def expect(_: Values) -> Expect:
    """Nothing to say of a device."""
    return Expect(("cpu-only",), text=("operators on the CPU; no device work, no launches",))


SCENARIO = Scenario(
    name="cpu-only",
    about="work on the CPU alone",
    build=build,
    expect=expect,
    gpus=0,
    variants=(Variant("cpu_only", "a trace without a device", active=10),),
)
