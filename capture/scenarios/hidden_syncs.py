"""Three ways to wait for the device without writing so."""

import torch

from capture.scenarios.base import Expect, Scenario, Values, Variant, Work, default_device


def build(_: Values) -> Work:
    """Each step waits three times: for a size, for a truth value, for a copy from pageable memory."""
    device = default_device()
    layer = torch.nn.Linear(1024, 1024).to(device)
    x = torch.randn(256, 1024, device=device)

    def step(_: int) -> object:
        with torch.no_grad():
            y = layer(x)
            found = torch.nonzero(y > 0)
            if (y.sum() > 0) and found.shape[0] > 1 << 40:
                raise AssertionError("more elements than there are")
            return torch.tensor([1.0, 2.0, 3.0], device=device)

    return Work(step)


def expect(_: Values) -> Expect:
    """None of the three says synchronize."""
    return Expect(
        ("sync-bound", "overhead-bound"),
        text=(
            "three blocking waits a step: nonzero, the bool() of a tensor, and",
            "torch.tensor(..., device), which copies from pageable memory",
        ),
    )


SCENARIO = Scenario(
    name="hidden-syncs",
    about="nonzero, bool(tensor) and torch.tensor(..., device) each wait for the device",
    build=build,
    expect=expect,
    variants=(Variant("hidden_syncs", "waits that the source does not show", active=10),),
)
