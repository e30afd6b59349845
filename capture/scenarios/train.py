"""A training step of a small transformer: data, forward, backward, optimizer."""

from typing import Any

import torch
from torch.nn import functional
from torch.profiler import record_function

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device
from capture.scenarios.models import Lm


def build(values: Values) -> Work:
    """Mixed precision with AdamW; the loss is read in every step, as many programs do."""
    device, batch, tokens = default_device(), values["batch"], values["tokens"]
    model = Lm(values["layers"], values["width"], values["heads"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step(_: int) -> object:
        with record_function("dataloader"):
            ids = torch.randint(0, 32000, (batch, tokens)).to(device)
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(ids)
        loss: Any = functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), ids.view(-1))
        loss.backward()
        optimizer.step()
        return loss.item()

    return Work(step)


def expect(_: Values) -> Expect:
    """Small layers: the host is slower than the device."""
    return Expect(
        ("overhead-bound",),
        text=(
            "hundreds of small kernels; casts of weights and gradients in every step (autocast)",
            "two waits a step: a pageable copy of the batch, and the loss read back",
        ),
    )


SCENARIO = Scenario(
    name="train",
    about="a training step of a small transformer with AdamW and autocast",
    build=build,
    small={"layers": 1, "width": 64, "heads": 2, "batch": 2, "tokens": 16},
    expect=expect,
    options=(
        Option("layers", 6, "transformer layers"),
        Option("width", 512, "model width"),
        Option("heads", 8, "attention heads"),
        Option("batch", 8, "sequences"),
        Option("tokens", 256, "tokens in a sequence"),
    ),
    variants=(
        Variant("train_eager", "a whole training step, nothing but operators and device work"),
        Variant(
            "train_eager_full",
            "with shapes, stacks, modules and memory: CPU times are inflated",
            active=2,
            shapes=True,
            stacks=True,
            memory=True,
            modules=True,
        ),
    ),
)
