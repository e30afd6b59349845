"""A served language model: requests of one prefill and some decodes, no step marked."""

import importlib
from typing import Any

import torch
from torch.profiler import record_function

from capture.scenarios.base import Expect, Option, Scenario, Values, Variant, Work, default_device


def build(values: Values) -> Work:
    """`generate` of transformers with a static cache and a small Llama of random weights.

    Raises ImportError where transformers is not there.
    """
    hf: Any = importlib.import_module("transformers")

    device = default_device()
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    config: Any = hf.LlamaConfig(
        vocab_size=8000,
        hidden_size=values["width"],
        intermediate_size=2 * values["width"],
        num_hidden_layers=values["layers"],
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=4096,
    )
    model: Any = hf.LlamaForCausalLM(config).to(device, dtype).eval()
    ids = torch.randint(0, 8000, (values["batch"], values["prompt"]), device=device)

    def generate() -> Any:
        return model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=values["tokens"],
            min_new_tokens=values["tokens"],
            do_sample=False,
            cache_implementation="static",
            disable_compile=True,
            pad_token_id=0,
        )

    def step(_: int) -> object:
        with torch.no_grad():
            if not values["named"]:
                return generate()
            with record_function("generate"):
                return generate()

    with torch.no_grad():
        generate()
    return Work(step)


def expect(values: Values) -> Expect:
    """Two phases: a prefill that the device sets the pace of, and decodes that the host does."""
    return Expect(
        ("overhead-bound", "mixed"),
        text=(f"two phases: one prefill a request, then {values['tokens'] - 1} decodes",),
    )


SCENARIO = Scenario(
    name="generate",
    about="requests to a small Llama of transformers: prefill and decodes, no step marked",
    build=build,
    small={"width": 64, "layers": 1, "prompt": 8, "tokens": 3, "batch": 1},
    expect=expect,
    options=(
        Option("width", 512, "model width"),
        Option("layers", 4, "transformer layers"),
        Option("batch", 8, "sequences of a request"),
        Option("prompt", 2048, "tokens of a prompt"),
        Option("tokens", 8, "tokens to generate"),
        Option("named", False, "an annotation around each request"),
    ),
    variants=(
        Variant("generate_stacks", "phases by calls of the outermost module", whole=True, active=3, stacks=True),
        Variant("generate_bare", "phases by kernels alone", whole=True, active=3),
    ),
)
