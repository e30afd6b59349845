"""A step that stops the host: garbage collected, a log written, asleep, or not at all."""

import gc
import json
import time
from typing import Any

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device
from capture.scenarios.models import Mlp

KINDS = ("none", "collect", "log", "sleep")


def build(values: Values) -> Work:
    """A small training step, then what stops the host."""
    device, width = default_device(), values["width"]
    model = torch.nn.Sequential(*(Mlp(width, 2 * width) for _ in range(4))).to(device)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(256, width, device=device)
    # What a long-lived program holds, and a collection looks through.
    held = [{"id": n, "tags": [str(n)]} for n in range(values["objects"])]

    def pause_of(number: int) -> None:
        kind = values["kind"]
        if kind == "collect":
            gc.collect()
        elif kind == "log":
            json.dumps({"step": number, "rows": held[: len(held) // 4]})
        elif kind == "sleep":
            time.sleep(0.004)

    def step(number: int) -> object:
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        pause_of(number)
        return loss

    return Work(step)


def expect(values: Values) -> Expect:
    """Half of a step and more is a pause in which nothing is launched."""
    if values["kind"] == "none":
        return Expect(("overhead-bound", "compute-bound", "mixed"), text=("no pause: launch after launch",))
    return Expect(
        ("pause-bound", "mixed"),
        text=(f"one pause a step ({values['kind']}), named by its line of Python, at the same place in each",),
    )


SCENARIO = Scenario(
    name="pauses",
    about="a training step that stops the host once: collector, log, sleep",
    build=build,
    small={"width": 32, "objects": 2000},
    expect=expect,
    options=(
        Option("kind", "collect", "what stops the host", KINDS),
        Option("width", 1024, "model width"),
        Option("objects", 60_000, "Python objects that the program holds"),
    ),
    variants=tuple(
        Variant(f"pause_{kind}", why, {"kind": kind}, stacks=True)
        for kind, why in (
            ("none", "the same step without a pause: no finding of pauses"),
            ("collect", "a garbage collection each step"),
            ("log", "a log serialized each step"),
            ("sleep", "a host asleep each step"),
        )
    ),
)
