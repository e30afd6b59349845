"""Attention, written out and fused: the same result for very different work."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.profiler import record_function

from capture.scenarios.base import (
    DTYPES,
    Expect,
    Option,
    Scenario,
    Values,
    Variant,
    Work,
    compiled,
    default_device,
    dtype_of,
)

_BACKENDS = {
    "math": "MATH",
    "efficient": "EFFICIENT_ATTENTION",
    "flash": "FLASH_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
}
VARIANTS = ("naive", "inplace", "math", "efficient", "flash", "cudnn", "flex", "auto")


def _written_out(mask: Any, scale: float, *, in_place: bool) -> Callable[[Any, Any, Any], Any]:
    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = torch.matmul(q, k.transpose(-2, -1)) * scale
        if in_place:
            scores.masked_fill_(mask, float("-inf"))
        else:
            scores = scores.masked_fill(mask, float("-inf"))
        return torch.matmul(torch.softmax(scores, dim=-1), v)

    return attend


def _fused(variant: str) -> Callable[[Any, Any, Any], Any]:
    def attend(q: Any, k: Any, v: Any) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    if variant == "auto":
        return attend
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = getattr(SDPBackend, _BACKENDS[variant])

    def attend_with(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(backend):
            return attend(q, k, v)

    return attend_with


def _flex(sequence: int, device: Any) -> Callable[[Any, Any, Any], Any]:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def causal(_batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return query >= key

    mask = create_block_mask(causal, None, None, sequence, sequence, device=str(device))
    function = compiled(flex_attention, "default")

    def attend(q: Any, k: Any, v: Any) -> Any:
        return function(q, k, v, block_mask=mask)

    return attend


def build(values: Values) -> Work:
    """Causal self-attention without gradients."""
    device, dtype = default_device(), dtype_of(values["dtype"])
    shape = (values["batch"], values["heads"], values["sequence"], values["head_dim"])
    q, k, v = (torch.randn(shape, device=device, dtype=dtype) for _ in range(3))
    variant, sequence = values["variant"], values["sequence"]
    attend: Callable[[Any, Any, Any], Any]
    if variant in ("naive", "inplace"):
        mask = torch.ones(sequence, sequence, device=device, dtype=torch.bool).triu(1)
        attend = _written_out(mask, 1 / math.sqrt(values["head_dim"]), in_place=variant == "inplace")
    elif variant == "flex":
        attend = _flex(sequence, device)
    else:
        attend = _fused(variant)

    def step(_: int) -> object:
        with torch.no_grad(), record_function("attn_fwd"):
            return attend(q, k, v)

    return Work(step)


_EVENTS = {"naive": 8, "inplace": 7, "math": 20, "efficient": 1, "flash": 1, "cudnn": 2, "flex": 1}
_SAYS = {
    "naive": "five kernels, a hidden copy device to device (masked_fill clones its input), two memsets",
    "inplace": "five kernels, no copy, two memsets",
    "math": "the written-out fallback: twenty kernels, float32 GEMMs, a mask rebuilt in each call",
    "efficient": "one kernel of the memory-efficient backend",
    "flash": "one kernel of the flash backend",
    "cudnn": "one kernel and one memset, launched by cuLaunchKernelEx",
    "flex": "one Triton kernel in a compiled region",
    "auto": "the backend that torch chooses for this type and shape",
}


def expect(values: Values) -> Expect:
    """The announced counts hold for the default shape in bfloat16."""
    events = _EVENTS.get(values["variant"], 0) if values["dtype"] == "bfloat16" else 0
    # A single fused kernel of a few hundred microseconds still outlasts its dispatch.
    return Expect(("compute-bound",), {"attn_fwd": events} if events else {}, (_SAYS[values["variant"]],))


SCENARIO = Scenario(
    name="attention",
    about="causal attention: written out, or one of the fused backends",
    build=build,
    small={"batch": 1, "heads": 2, "sequence": 128},
    expect=expect,
    options=(
        Option("variant", "naive", "how it is computed", VARIANTS),
        Option("batch", 8, "sequences"),
        Option("heads", 16, "attention heads"),
        Option("sequence", 2048, "tokens in a sequence"),
        Option("head_dim", 64, "elements of a head"),
        Option("dtype", "bfloat16", "element type", DTYPES),
    ),
    variants=(
        *(
            Variant(
                f"attention_{name}" if name in ("naive", "inplace") else f"attention_sdpa_{name}",
                _SAYS[name],
                {"variant": name},
            )
            for name in ("naive", "inplace", "math", "efficient", "flash", "cudnn")
        ),
        Variant(
            "attention_naive_unsynced",
            "device work of earlier steps at the start: launches not recorded",
            {"variant": "naive"},
            wait=2,
            warmup=1,
            sync=False,
        ),
        Variant(
            "attention_sdpa_flash_50",
            "many calls of one kernel, for spread and spikes",
            {"variant": "flash"},
            active=50,
        ),
        Variant(
            "sdpa_auto_fp64_math",
            "a type that no fused backend takes: torch falls back to math",
            {"variant": "auto", "dtype": "float64", "batch": 1, "sequence": 1024},
        ),
        Variant("attention_flex", "flex_attention, compiled", {"variant": "flex"}),
    ),
)
