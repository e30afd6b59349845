"""The launching thread, held up by another thread that wants the interpreter."""

import threading

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """Small launches; beside them threads that compute in pure Python and never let go for long."""
    device = default_device()
    a = torch.randn(128, 128, device=device)
    ended = threading.Event()

    def spin() -> None:
        total = 0
        while not ended.is_set():
            for n in range(10_000):
                total += n * n

    threads = [threading.Thread(target=spin, daemon=True) for _ in range(values["threads"])]
    for thread in threads:
        thread.start()

    def step(_: int) -> object:
        with torch.no_grad():
            x = a
            for _ in range(60):
                x = torch.relu(x @ a)
                # A program looks at its queues, locks and clocks between its operators: there it can be held up.
                threading.Event().wait(0)
        return x

    def close() -> None:
        ended.set()
        for thread in threads:
            thread.join()

    return Work(step, close)


def expect(values: Values) -> Expect:
    """Waits of the interpreter's switch interval, 5 ms, wherever the thread let go."""
    if not values["threads"]:
        return Expect(("overhead-bound",), text=("launch after launch, no pause",))
    return Expect(
        ("overhead-bound", "pause-bound", "mixed"),
        text=("pauses of about 5 ms at ever other places: the interpreter's switch interval",),
    )


SCENARIO = Scenario(
    name="interference",
    about="launches held up by a thread that wants the interpreter",
    build=build,
    expect=expect,
    options=(Option("threads", 1, "threads that compute in pure Python"),),
    variants=(
        Variant("interference_gil", "another thread holds the interpreter", stacks=True),
        Variant("interference_none", "the same without it: nobody interferes", {"threads": 0}, stacks=True),
    ),
)
