"""One token of a small language model: a hundred tiny kernels, eager, compiled, or as one CUDA graph."""

from typing import Any

import torch
from torch.profiler import record_function

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, compiled, default_device
from capture.scenarios.models import Lm


def _graph(function: Any, ids: Any) -> Any:
    """A callable that replays `function(ids)` from a graph."""
    cuda: Any = torch.cuda
    side = cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        # Libraries make plans and workspaces in their first calls, which a capture does not allow.
        for _ in range(3):
            function(ids)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = function(ids)

    def replay(_: Any) -> Any:
        graph.replay()
        return out

    return replay


def build(values: Values) -> Work:
    """Greedy choice of the next token, which the host waits for."""
    device = default_device()
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = Lm(values["layers"], values["width"], values["heads"]).to(device, dtype).eval()
    ids = torch.randint(0, 32000, (1, values["tokens"]), device=device)

    def plain(tokens: Any) -> Any:
        return model(tokens)[:, -1].argmax(-1)

    run: Any = plain
    with torch.no_grad():
        if values["mode"] == "compiled":
            network = compiled(model, "default")
            run = lambda tokens: network(tokens)[:, -1].argmax(-1)  # noqa: E731
        elif values["mode"] == "graph" and device.type == "cuda":
            run = _graph(plain, ids)

    def step(_: int) -> object:
        with torch.no_grad(), record_function("decode_token"):
            return run(ids).item()

    return Work(step)


def expect(values: Values) -> Expect:
    """The same device work whether launched one by one or as a graph."""
    if values["mode"] == "graph":
        return Expect(
            ("compute-bound", "mixed"),
            {"decode_token": 149},
            ("one cudaGraphLaunch for all of it; what idle time is left is mostly inside the graph",),
        )
    if values["mode"] == "compiled":
        return Expect(("overhead-bound",), text=("fewer kernels; guards and generated code before them",))
    return Expect(
        ("overhead-bound",),
        {"decode_token": 149},
        ("148 tiny kernels and memsets, launched one by one, and a copy to the host; busy under a tenth",),
    )


SCENARIO = Scenario(
    name="decode",
    about="one token of a small language model: eager, compiled, or a CUDA graph",
    build=build,
    small={"layers": 2, "width": 64, "heads": 2},
    expect=expect,
    options=(
        Option("mode", "eager", "how it is launched", ("eager", "compiled", "graph")),
        Option("layers", 12, "transformer layers"),
        Option("width", 1024, "model width"),
        Option("heads", 16, "attention heads"),
        Option("tokens", 16, "tokens of context"),
    ),
    variants=(
        Variant("decode_eager", "overhead-bound inference", active=5),
        Variant("decode_cudagraph", "the same as one graph launch", {"mode": "graph"}, active=10),
        Variant("decode_compile_default", "the same, compiled", {"mode": "compiled"}, active=5),
    ),
)
