"""Batches copied from ordinary, pinned, or chopped-up host memory."""

import torch
from torch.profiler import record_function

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """A copy to the device, and a little work on it."""
    device, kind = default_device(), values["kind"]
    gpu = device.type == "cuda"
    host = torch.randn(values["megabytes"] << 18, pin_memory=gpu and kind == "pinned")
    pieces = host[: 64 * 1024].chunk(64) if kind == "small" else (host,)

    def step(_: int) -> object:
        with torch.no_grad(), record_function("copy_batch"):
            moved = [piece.to(device, non_blocking=kind == "pinned") for piece in pieces]
            return torch.cat(moved).mul_(2.0) if kind == "small" else moved[0].mul_(2.0)

    return Work(step)


def expect(values: Values) -> Expect:
    """Pageable memory blocks the host; small copies cost more than they carry."""
    kind = values["kind"]
    if kind == "small":
        return Expect(
            ("sync-bound", "overhead-bound", "copy-bound"),
            {"copy_batch": 66},
            ("64 copies of 4 KB a step, each waited for",),
        )
    waits = "the host waits for each copy from pageable memory"
    text = waits if kind == "pageable" else "copies run on their own"
    return Expect(("copy-bound",), {"copy_batch": 2}, (text,))


SCENARIO = Scenario(
    name="copies",
    about="copies from pageable or pinned memory, large or many and small",
    build=build,
    small={"megabytes": 1},
    expect=expect,
    options=(
        Option("kind", "pageable", "kind of copy", ("pageable", "pinned", "small")),
        Option("megabytes", 64, "size of the batch"),
    ),
    variants=(
        Variant("copies_pageable", "pageable copies", active=4),
        Variant("copies_pinned", "the same from pinned memory", {"kind": "pinned"}, active=4),
        Variant("copies_many_small", "many small copies", {"kind": "small"}, active=3),
    ),
)
