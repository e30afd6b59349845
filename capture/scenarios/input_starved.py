"""A data loader that is slower than the training step it feeds."""

import time
from typing import Any

import torch
from torch.utils import data

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device

Dataset: Any = data.Dataset


class SlowImages(Dataset):  # type: ignore[misc]
    """Images that take `delay` milliseconds each to decode."""

    def __init__(self, delay: float) -> None:
        self.delay = delay

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.delay / 1000)
        return torch.randn(3, 64, 64), index % 10


def build(values: Values) -> Work:
    """A small convolutional network, trained from the loader in this process unless there are workers."""
    device = default_device()
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader: Any = data.DataLoader(
        SlowImages(values["delay"]),
        batch_size=values["batch"],
        num_workers=values["workers"],
        # A forked worker of a process that uses CUDA is asking for trouble.
        multiprocessing_context="spawn" if values["workers"] else None,
    )
    batches = iter(loader)

    def step(_: int) -> object:
        images, labels = next(batches)
        optimizer.zero_grad()
        loss: Any = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        return optimizer.step()

    return Work(step)


def expect(_: Values) -> Expect:
    """The device waits for the loader nearly all the time."""
    return Expect(
        ("input-bound",),
        text=("busy a few percent; all long gaps fall into enumerate(DataLoader)... of the main thread",),
    )


SCENARIO = Scenario(
    name="input-starved",
    about="training fed by a slow data loader in the main process",
    build=build,
    small={"batch": 4},
    expect=expect,
    options=(
        Option("workers", 0, "loader processes"),
        Option("batch", 16, "images in a batch"),
        Option("delay", 1.2, "milliseconds to decode an image"),
    ),
    variants=(Variant("input_starved_w0", "the input pipeline is the bottleneck", active=4),),
)
