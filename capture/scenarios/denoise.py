"""A served denoiser: images one after another, each of eight calls of one model; no step is marked."""

import time
from typing import Any

import torch

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device
from capture.scenarios.models import Block


def build(values: Values) -> Work:
    """Requests come with pauses between them. Captured at once, during the first recorded request, or never."""
    device = default_device()
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = torch.nn.Sequential(*(Block(values["width"], 8) for _ in range(values["layers"]))).to(device, dtype).eval()
    latent = torch.randn(1, values["tokens"], values["width"], device=device, dtype=dtype)
    state: dict[str, Any] = {}

    def capture_graph() -> None:
        graph: Any = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            state["out"] = model(latent)
        state["graph"] = graph

    with torch.no_grad():
        # Libraries make plans and workspaces in their first calls, which a capture does not allow.
        for _ in range(3):
            model(latent)
        graphs = values["graph"] if device.type == "cuda" else "never"
        if graphs == "before":
            capture_graph()

    def denoise() -> Any:
        if "graph" in state:
            state["graph"].replay()
            return state["out"]
        return model(latent)

    def step(number: int) -> object:
        with torch.no_grad():
            if graphs == "inside" and number == 1:
                capture_graph()
            for t in range(8):
                latent.sub_(denoise(), alpha=0.01 * (8 - t))
        image = latent.float().cpu()
        time.sleep(0.001)
        return image

    return Work(step)


def expect(values: Values) -> Expect:
    """Replays leave the device few gaps; launched one by one, the host sets the pace."""
    if values["graph"] == "never":
        return Expect(("overhead-bound", "mixed"), text=("eight calls of the outermost module an image",))
    return Expect(
        ("compute-bound", "overhead-bound", "pause-bound", "mixed"),
        text=("eight graph replays an image, each of the same kernels",),
    )


SCENARIO = Scenario(
    name="denoise",
    about="a served denoiser without marked steps: eager, replayed, or captured in the recording",
    build=build,
    small={"width": 64, "layers": 1, "tokens": 8},
    expect=expect,
    options=(
        Option("graph", "never", "when its CUDA graph is captured", ("never", "before", "inside")),
        Option("width", 512, "model width"),
        Option("layers", 6, "transformer layers"),
        Option("tokens", 256, "tokens of a latent"),
    ),
    variants=(
        Variant("denoise_eager", "images by calls of the outermost module", whole=True, active=6, stacks=True),
        Variant("denoise_replayed", "images by graph replays", {"graph": "before"}, whole=True, active=12),
        Variant("graph_capture", "a graph captured in the recording", {"graph": "inside"}, whole=True, active=6),
    ),
)
