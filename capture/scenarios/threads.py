"""Kernels launched by threads that the profiler does not see."""

import threading
from typing import Any

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """Each step starts threads and waits for them; operators are recorded on the main thread only."""
    device = default_device()
    a = torch.randn(512, 512, device=device)

    def work(layer: Any) -> None:
        with torch.no_grad():
            for _ in range(10):
                layer(a)

    layers = [torch.nn.Linear(512, 512).to(device) for _ in range(values["threads"])]

    def step(_: int) -> object:
        threads = [threading.Thread(target=work, args=(layer,)) for layer in layers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return None

    return Work(step)


def expect(_: Values) -> Expect:
    """Launches without operators around them."""
    return Expect(
        ("compute-bound", "overhead-bound", "mixed"),  # as many threads as the interpreter lets run
        text=("kernels and launches on several threads without operators: only the main thread's are seen",),
    )


SCENARIO = Scenario(
    name="threads",
    about="kernels launched from several threads",
    build=build,
    expect=expect,
    options=(Option("threads", 3, "threads that launch"),),
    variants=(Variant("three_threads", "launches without operators", active=5),),
)
