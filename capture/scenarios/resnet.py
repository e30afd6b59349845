"""Inference with a residual network: convolutions by cuDNN."""

import torch
from torch.profiler import record_function

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device
from capture.scenarios.models import resnet


def build(values: Values) -> Work:
    """float32, as the model comes."""
    device = default_device()
    model = resnet().to(device).eval()
    images = torch.randn(values["batch"], 3, values["pixels"], values["pixels"], device=device)

    def step(_: int) -> object:
        with torch.no_grad(), record_function("resnet_fwd"):
            return model(images)

    return Work(step)


def expect(_: Values) -> Expect:
    """53 convolutions, most between changes of memory layout."""
    return Expect(
        ("overhead-bound",),
        text=("53 convolutions; kernels that only change the memory layout, NCHW to NHWC and back",),
    )


SCENARIO = Scenario(
    name="resnet",
    about="inference with a ResNet-50 in float32",
    build=build,
    small={"batch": 1, "pixels": 64},
    expect=expect,
    options=(Option("batch", 8, "images"), Option("pixels", 224, "height and width of an image")),
    variants=(Variant("resnet50_infer_fp32", "convolutions, cuDNN plans, layout changes"),),
)
