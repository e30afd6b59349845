"""Launches behind work that lasts: with room in the queue, and without."""

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """One large product after another, with small additions between them that the host launches far ahead."""
    device, size = default_device(), values["size"]
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    out, small = torch.empty_like(a), torch.zeros(8, device=device)

    def step(_: int) -> object:
        with torch.no_grad():
            for _ in range(values["rounds"]):
                torch.mm(a, a, out=out)
                for _ in range(values["launches"]):
                    small.add_(1.0)
        return small

    return Work(step)


def expect(values: Values) -> Expect:
    """The device never waits; where the queue is full, its launches wait for it."""
    full = values["launches"] * values["rounds"] > 1200
    return Expect(
        ("compute-bound",),
        text=(
            "a full queue: launches of milliseconds wait for the device, and are no cost of launching"
            if full
            else "a queue with room: launches of microseconds",
        ),
    )


SCENARIO = Scenario(
    name="queue",
    about="small launches behind large products: a queue that is full, or has room",
    build=build,
    small={"size": 64, "launches": 4},
    expect=expect,
    options=(
        Option("size", 8192, "rows and columns of the products"),
        Option("rounds", 6, "products a step"),
        Option("launches", 250, "small launches behind each product"),
    ),
    variants=(
        Variant("queue_full", "launches that wait for a full queue", active=2),
        Variant("queue_room", "the same with a sixth of the launches", {"launches": 40}, active=2),
    ),
)
