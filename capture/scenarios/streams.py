"""Copies on one stream, computation on another: overlap."""

from typing import Any

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """Products on one side stream, a copy from pinned memory and a kernel on another; nothing waits."""
    device, size = default_device(), values["size"]
    gpu = device.type == "cuda"
    dtype = torch.bfloat16 if gpu else torch.float32
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    host = torch.randn(values["megabytes"] << 18, pin_memory=gpu)
    target = torch.empty_like(host, device=device)
    if not gpu:

        def on_cpu(_: int) -> object:
            target.copy_(host)
            return torch.sin(torch.matmul(a, b))

        return Work(on_cpu)
    cuda: Any = torch.cuda
    compute, copies = cuda.Stream(), cuda.Stream()
    torch.cuda.synchronize()

    def step(_: int) -> object:
        with torch.no_grad():
            with torch.cuda.stream(compute):
                for _ in range(4):
                    torch.matmul(a, b)
            with torch.cuda.stream(copies):
                target.copy_(host, non_blocking=True)
                return torch.sin(target)

    return Work(step)


def expect(_: Values) -> Expect:
    """The copy takes longer than all the products."""
    return Expect(
        ("copy-bound",),
        text=("two streams at once: GEMMs under a long copy from pinned memory; the copies are the longer",),
    )


SCENARIO = Scenario(
    name="streams",
    about="computation and copies on two streams at the same time",
    build=build,
    small={"size": 64, "megabytes": 1},
    expect=expect,
    options=(
        Option("size", 4096, "rows and columns of the GEMMs' operands"),
        Option("megabytes", 256, "size of the copy"),
    ),
    variants=(Variant("streams_overlap", "overlapping streams", active=6),),
)
