"""Two ranks that train together, one of them late on purpose. Started by torchrun."""

import os
import time
from typing import Any

import torch
from torch import distributed
from torch.nn import functional

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work
from capture.scenarios.models import Lm


def build(values: Values) -> Work:
    """DistributedDataParallel over NCCL, or over Gloo without GPUs. Raises RuntimeError outside torchrun."""
    if "RANK" not in os.environ:
        raise RuntimeError(
            "options need torchrun: torchrun --standalone --nproc-per-node 2 -m capture.scenarios ddp ..."
        )
    gpu = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device: Any = torch.device("cuda", local) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if gpu else "gloo")
    late = distributed.get_rank() == values["late_rank"]
    width, batch, tokens = values["width"], values["batch"], values["tokens"]
    model = torch.nn.parallel.DistributedDataParallel(
        Lm(values["layers"], width, values["heads"]).to(device), device_ids=[local] if gpu else None
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.randint(0, 32000, (batch, tokens), device=device)

    def step(_: int) -> object:
        if late:
            time.sleep(values["late"] / 1000)
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(ids)
        loss: Any = functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), ids.view(-1))
        loss.backward()
        return optimizer.step()

    return Work(step, distributed.destroy_process_group)


def expect(values: Values) -> Expect:
    """The punctual rank waits inside the collective."""
    return Expect(
        ("communication-bound", "pause-bound", "overhead-bound", "mixed"),
        text=(
            f"rank {values['late_rank']} starts each step {values['late']} ms late;",
            "the other rank waits for it in its first all-reduce",
        ),
    )


SCENARIO = Scenario(
    name="ddp",
    about="two ranks, one late on purpose (start with torchrun)",
    build=build,
    small={"layers": 1, "width": 64, "heads": 2, "batch": 2, "tokens": 16},
    expect=expect,
    gpus=2,
    options=(
        Option("layers", 4, "transformer layers"),
        Option("width", 768, "model width"),
        Option("heads", 12, "attention heads"),
        Option("batch", 8, "sequences a rank"),
        Option("tokens", 512, "tokens in a sequence"),
        Option("late", 20.0, "milliseconds by which the late rank is late"),
        Option("late_rank", 1, "which rank is late"),
    ),
    variants=(Variant("ddp2", "two ranks, a straggler, collectives", shapes=True),),
)
