"""Device memory given back and asked for again in every step."""

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """`empty_cache` in the loop, as in programs that once ran out of memory."""
    device = default_device()
    elements = values["megabytes"] << 18

    def step(_: int) -> object:
        with torch.no_grad():
            parts = [torch.ones(elements, device=device) for _ in range(4)]
            total = parts[0] + parts[1] + parts[2] + parts[3]
            del parts, total
        if device.type == "cuda":
            torch.cuda.empty_cache()
        return None

    return Work(step)


def expect(_: Values) -> Expect:
    """The allocator, not the device, takes the time."""
    return Expect(
        ("overhead-bound", "mixed"),
        text=("cudaMalloc and cudaFree in every step; most of the idle time is the allocator's",),
    )


SCENARIO = Scenario(
    name="allocator-thrash",
    about="empty_cache() in the loop: cudaMalloc and cudaFree in every step",
    build=build,
    small={"megabytes": 1},
    expect=expect,
    options=(Option("megabytes", 256, "size of each of four tensors"),),
    variants=(Variant("allocator_thrash", "the caching allocator defeated", active=4),),
)
