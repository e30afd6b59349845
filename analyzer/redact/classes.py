"""What the analyzer reads from a name: a name that is replaced must still say it.

A class is a tuple of readings; two names with the same one are counted and judged alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from analyzer.index import engines, pauses
from analyzer.index.attention_backends import BACKENDS
from analyzer.index.kernel_names import Decoded, decode
from analyzer.index.kinds import COLLECTIVE, INDUCTOR
from analyzer.index.steps.kinds import UPDATE
from analyzer.index.steps.marks import NO_STEP
from analyzer.index.vocabulary import (
    BACKWARD_FRAME,
    CALLS,
    ENGINE,
    FRAMES,
    ROLES,
    SYNCHRONOUS_COPY,
    classify,
    matches,
)
from analyzer.redact.words import parts

if TYPE_CHECKING:
    import polars as pl

Class = tuple[Any, ...]

_BACKENDS = tuple((pattern, i + 1) for i, (pattern, _) in enumerate(BACKENDS))
#: Rules of which the first that matches counts, and patterns, by what a name is of.
_RULES = {
    "call": (CALLS,),
    "op": (ROLES, _BACKENDS),
    "annotation": (ROLES, _BACKENDS),
    "frame": (FRAMES, ROLES),
}
_PATTERNS = {
    "call": (SYNCHRONOUS_COPY,),
    "op": (COLLECTIVE, UPDATE, ENGINE),
    "annotation": (NO_STEP, UPDATE, pauses.CADENCE),
    "frame": (pauses.CADENCE, BACKWARD_FRAME),
}


def class_of(what: str, name: str) -> Class:
    """what: what the name is of, as in `names.WORDS`."""
    if what == "kernel":
        found = decode(name)
        return (found.kind, found, bool(matches(_series(name), INDUCTOR)[0]))
    names = _series(name)
    rules = (int(classify(names, some)[0]) for some in _RULES.get(what, (ROLES,)))
    patterns = (bool(matches(names, pattern)[0]) for pattern in _PATTERNS.get(what, ()))
    return (*rules, *patterns, *engine(what, name))


def engine(what: str, name: str) -> Class:
    """What the table of engines says of a name; () where it does not know it."""
    if what not in ("annotation", "frame"):
        return ()
    said = engines.known().said(_series(name), what).row(0)
    return said if said[0] is not None else ()


@cache
def engine_words() -> frozenset[str]:
    """Words in the names that engines give their steps, in small letters."""
    return frozenset(part for row in engines.known().rows for part in parts(row.example or ""))


def likeness(one: Class, other: Class) -> int:
    """In how many readings two classes agree."""
    return sum(a == b for a, b in zip(one, other, strict=False))


#: Words that carry a class, for names that lose it: tried in turn.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "kernel": (
        "all_reduce", "flash_attn_fwd", "rotary", "batched_transpose", "embedding", "layer_norm", "softmax",
        "multi_tensor_apply", "max_pool", "conv_fwd", "gemm", "sort", "philox", "copy_kernel", "fillBuffer", "reduce",
        "elementwise", "gemm_f16", "gemm_bf16", "gemm_fp32", "sgemm", "gemm_fp8", "gemm_tensorop", "gemm_f16_tensorop",
        "gemm_bf16_tensorop", "gemm_tf32_tensorop", "flash_attn_fwd_bf16", "flash_attn_fwd_f16", "mha_attn_fwd", "gemv",
        "bfloat16_copy_kernel", "half_copy_kernel",
    ),
    "call": ("cudaStreamSynchronize", "cudaMallocAsync", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync"),
}  # fmt: skip
_ROLE_WORDS = ("dataloader", "all_reduce", "CompiledFxGraph", "inductor_compile", "Torch-Compiled Region: ")


def candidates(what: str, wanted: Class, new: str, word: Callable[[], str]) -> Iterator[str]:
    """Names that may be of a class, the plain ones first. new: the name without it; word: gives a stable one."""
    for carrier in _carriers(what, wanted):
        yield from (f"{carrier}_{new}", f"{carrier} {new}", f"{new} {carrier}", f"{carrier}_{word()}")


def _carriers(what: str, wanted: Class) -> Iterator[str]:
    plain = (*_WORDS.get(what, _ROLE_WORDS), "")
    found = wanted[1] if what == "kernel" else None
    if not isinstance(found, Decoded):
        yield from plain
        return
    # A word of another kind may pass in a name that says its own, and would mislead whoever reads it.
    plain = tuple(one for one in plain if not one or decode(one).kind in (found.kind, "other"))
    yield from plain
    if found.kind in ("gemm", "convolution", "attention"):
        tile = "" if found.tile is None else f"_MT{found.tile}" if found.tile.count("x") == 2 else f"_{found.tile}"
        for one in plain:
            for precision in ("", "_f16", "_bf16", "_tf32", "_f32", "_f64", "_fp8", "_int8", "_nvfp4", "_c64"):
                for cores in ("", "_tensorop", "_simt"):
                    for built in ("", "_sm80"):
                        yield f"{one}{precision}{cores}{built}{tile}"


def _series(name: str) -> pl.Series:
    import polars as pl

    return pl.Series([name], dtype=pl.String)
