"""An optimizer that steps parameter by parameter, and one that steps all at once."""

from typing import Any

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """Many small parameters: the step of the optimizer is most of the launches."""
    device, width = default_device(), values["width"]
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(values["layers"]))).to(device)
    how: dict[str, Any] = {"fused": True} if values["kind"] == "fused" else {"foreach": values["kind"] == "foreach"}
    if device.type == "cpu":
        how = {"foreach": values["kind"] != "loop"}
    optimizer: Any = torch.optim.AdamW(model.parameters(), lr=1e-4, **how)
    x = torch.randn(512, width, device=device)

    def step(_: int) -> object:
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return Work(step)


def expect(values: Values) -> Expect:
    """A dozen launches for each parameter, or a few for all."""
    if values["kind"] == "loop":
        return Expect(("overhead-bound",), text=("most launches are the optimizer's, parameter by parameter",))
    return Expect(("overhead-bound", "mixed", "compute-bound"), text=("a few launches for all parameters",))


SCENARIO = Scenario(
    name="optimizer",
    about="an optimizer's step: parameter by parameter, all at once, or fused",
    build=build,
    small={"width": 16, "layers": 3},
    expect=expect,
    options=(
        Option("kind", "loop", "how it steps", ("loop", "foreach", "fused")),
        Option("width", 512, "model width"),
        Option("layers", 16, "layers, of two parameters each"),
    ),
    variants=(
        Variant("optimizer_loop", "parameter by parameter", active=3),
        Variant("optimizer_fused", "all at once: no finding of the optimizer", {"kind": "fused"}, active=3),
    ),
)
