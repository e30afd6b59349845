"""One GEMM over and over, while something else takes the device now and then."""

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device

_START_SECONDS = 60


def _other_process(size: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """(go, end) of a process that works in bursts of a few milliseconds on the same device."""
    child: Any = subprocess.Popen(
        [sys.executable, "-m", "capture.scenarios.burst", str(size), "0.05"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def end() -> None:
        child.stdin.close()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()

    # A child that hangs in its start-up must not hang us.
    timer = threading.Timer(_START_SECONDS, child.kill)
    timer.start()
    ready = child.stdout.readline().strip() == "ready"
    timer.cancel()
    if not ready:
        end()
        raise RuntimeError(f"the other process did not become ready within {_START_SECONDS} s")

    def go() -> None:
        child.stdin.write("go\n")
        child.stdin.flush()

    return go, end


def build(values: Values) -> Work:
    """The same product every step; nobody waits for it."""
    device, size = default_device(), values["size"]
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    source, every = values["source"], values["every"]
    if source == "process":
        go, end = _other_process(2 * size)

        def with_process(number: int) -> object:
            if number == 0:
                go()
            with torch.no_grad():
                return torch.matmul(a, b)

        return Work(with_process, end)

    cuda: Any = torch.cuda
    side = cuda.Stream() if source == "stream" and device.type == "cuda" else None
    big = torch.randn(2 * size, 2 * size, device=device, dtype=dtype) if side is not None else a
    main = cuda.current_stream() if side is not None else None

    def with_stream(number: int) -> object:
        with torch.no_grad():
            if side is not None and number % every == every - 1:
                # In step with the main stream: the burst falls where it was launched.
                side.wait_stream(main)
                with torch.cuda.stream(side):
                    torch.matmul(big, big)
            return torch.matmul(a, b)

    return Work(with_stream)


def expect(values: Values) -> Expect:
    """Lone kernels several times longer than all others of their kind."""
    says = {
        "process": "lone calls of 0.9 ms and more, in bursts: another process has the device",
        "stream": "calls that share the device with a large GEMM on another stream take much longer",
        "none": "all calls take the same time",
    }
    return Expect(("compute-bound",), text=(says[values["source"]],))


SCENARIO = Scenario(
    name="spikes",
    about="one GEMM over and over, disturbed by another process or stream",
    build=build,
    small={"size": 64},
    expect=expect,
    options=(
        Option("source", "process", "what disturbs it", ("process", "stream", "none")),
        Option("size", 4096, "rows and columns of the GEMM's operands"),
        Option("every", 60, "steps between bursts of the other stream"),
    ),
    variants=(
        Variant("spikes_other_stream", "spikes that a trace explains", {"source": "stream"}, active=240),
        Variant("spikes_none", "the same without disturbance: nothing to find", {"source": "none"}, active=240),
        Variant("spikes_other_process", "spikes that a trace cannot explain", active=1500, fresh=True),
    ),
)
