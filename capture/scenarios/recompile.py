"""Compiled code that is compiled again: new shapes in every step."""

from typing import Any

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, compiled, default_device


def build(values: Values) -> Work:
    """Every step has a new length; with dynamic shapes off, each is compiled anew, until torch gives up."""
    device = default_device()
    if values["kind"] == "graph-break":
        return _graph_break(values, device)
    torch.compiler.reset()

    def plain(x: Any) -> Any:
        return (torch.sin(x) + torch.cos(x)).sum()

    function = torch.compile(plain, dynamic=False)

    def step(number: int) -> object:
        with torch.no_grad():
            return function(torch.randn(32768 + 2048 * number, device=device))

    return Work(step)


def _graph_break(_: Values, device: Any) -> Work:
    x = torch.randn(1 << 20, device=device)

    def plain(y: Any) -> Any:
        z = torch.sin(y) * 2
        # Reading a value on the host ends one graph and begins another.
        if z.sum().item() > 1e30:
            z = z + 1
        return torch.cos(z) + y

    function = compiled(plain, "default")

    def step(_: int) -> object:
        with torch.no_grad():
            return function(x)

    return Work(step)


def expect(values: Values) -> Expect:
    """Compilation, or its traces, in every step."""
    if values["kind"] == "graph-break":
        return Expect(
            ("overhead-bound", "sync-bound"),
            text=("two compiled regions a step, and a wait for the value between them",),
        )
    if values["kind"] == "storm":
        return Expect(
            ("overhead-bound",),
            text=("torch has given up compiling: a cache lookup a step, then plain operators",),
        )
    return Expect(("startup-bound",), text=("every recorded step is compiled anew; the device is idle",))


SCENARIO = Scenario(
    name="recompile",
    about="torch.compile with ever new shapes, given up, or with a graph break",
    build=build,
    expect=expect,
    options=(
        Option(
            "kind",
            "each",
            "each step compiled, given up (storm), or a graph break",
            ("each", "storm", "graph-break"),
        ),
    ),
    variants=(
        Variant("graph_break", "a graph break, and a sync that causes it", {"kind": "graph-break"}),
        Variant("recompile_each", "steps that compile", {"kind": "each"}, wait=2, warmup=1, active=3),
        Variant("recompile_storm", "past torch's limit of recompilations", {"kind": "storm"}, active=10),
    ),
)
