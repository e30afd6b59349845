"""A recording that begins while the device still works on what was launched before."""

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """Products of which one lot is launched far ahead, just before the profiler records."""
    device, size = default_device(), values["size"]
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    out = torch.empty_like(a)

    def step(number: int) -> object:
        ahead = values["ahead"] if number == values["before"] else 1
        for _ in range(ahead):
            torch.mm(a, a, out=out)
        return out

    return Work(step)


def expect(_: Values) -> Expect:
    """The device is busy from the first moment; its launches are not in the recording."""
    return Expect(
        ("compute-bound",),
        text=("work without a launch at the beginning: it was launched before the recording began",),
    )


SCENARIO = Scenario(
    name="midflight",
    about="recording begins while earlier work still runs",
    build=build,
    small={"size": 64, "ahead": 3},
    expect=expect,
    options=(
        Option("size", 8192, "rows and columns of the products"),
        Option("ahead", 40, "products launched just before the recording"),
        Option("before", 14, "the step that launches them: the last before the recorded ones"),
    ),
    variants=(Variant("midflight", "work launched before the recording began", active=4, sync=False),),
)
