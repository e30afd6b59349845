"""What a kernel's name says: its kind, and of matrix products the number format and tensor cores.

A table of patterns, first match wins, applied once to each distinct name. Library kernels encode
their tile, precision and architecture in their names; PyTorch's own carry the functor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analyzer.chains.vocabulary import COMMUNICATION_KERNEL

KINDS: tuple[tuple[str, str], ...] = (
    ("communication", COMMUNICATION_KERNEL),
    ("attention", r"(?i)fmha|flash_(?:fwd|bwd|attn)|flash::|flashattn|sdpa|(?:^|[^a-z])attn_(?:fwd|bwd)|mha_|kernel_mha|"
                  r"(?:paged|unified|flex|ragged)_attention|dot_do_o|convert_dq"),
    ("embedding", r"(?i)embedding|index(?:_|Select|Func|ing_)|gather|scatter|grad_weight|krn_partial"),
    ("normalisation", r"(?i)(?:layer|batch|group|rms|instance)_?norm|bn_(?:fw|bw)|GammaBeta|RowwiseMoments"),
    ("softmax", r"(?i)softmax"),
    ("optimizer", r"(?i)multi_tensor_apply|fused_?(?:adam|sgd|adagrad)|lamb_stage|foreach_"),
    ("convolution", r"(?i)implicit_convolve|implicitgemmconv|conv(?:olve|olution|_?[123]d)|fprop|dgrad|wgrad|winograd|"
                    r"nchwToNhwc|nhwcToNchw|im2col|igemm_(?:fwd|bwd)|scudnn|cudnn_\w*gemm|miopen"),
    ("gemm", r"(?i)(?<!fb)gemm|nvjet|^Cijk_|splitKreduce|gemv|xmma|(?:^|_)b?mm(?:_|$)|dot_kernel|matmul|tensorop"),
    ("sort and scan", r"(?i)sort|scan|topk|cumsum|cub::|nonzero|unique|bitonic"),
    ("random", r"(?i)distribution_|philox|dropout|curand"),
    ("copy", r"(?i)^Memcpy|copy_kernel|CatArray|direct_copy|transpose|copyBuffer|permute_kernel"),
    ("memset", r"(?i)^Memset|fillBuffer|FillFunctor"),
    ("reduction", r"(?i)reduce_kernel|reduce_|reduction|triton_(?:red|per)|norm_?(?:two|cleanup)"),
    ("elementwise", r"(?i)elementwise|triton_poi|pointwise"),
    ("triton", r"(?i)^triton_"),
)  # fmt: skip
_KINDS = tuple((kind, re.compile(pattern)) for kind, pattern in KINDS)

#: Number format by spelling in GEMM names. Order matters: tf32 names also hold "f32".
_PRECISIONS: tuple[tuple[str, str], ...] = (
    (r"tf32|s1688gemm|_s16816gemm_|sm\d+_xmma_gemm_f32f32_tf32|nvjet_\w*_s(?:s|t)", "tf32"),
    (r"bf16|bfloat|BBS_BH|_BBS_|nvjet_(?:sm\d+_)?t[^_]*st|_b16", "bf16"),
    (r"e4m3|e5m2|fp8|qqt|float8", "fp8"),
    (r"f16|fp16|hgemm|h16816|h884|h1688|half|HHS|nvjet_(?:sm\d+_)?h", "fp16"),
    (r"f64|dgemm|d884|double|nvjet_(?:sm\d+_)?d|_DB_", "fp64"),
    (r"s8|i8|imma|int8", "int8"),
    (r"f32|sgemm|ffma|float|_SB_", "fp32"),
)
_PRECISION = tuple((re.compile(pattern), name) for pattern, name in _PRECISIONS)
_TENSOR = re.compile(
    r"(?i)tensorop|nvjet|wgmma|hmma|imma|16816|1688|884|tf32|warpgroupsize|xmma_gemm_(?:bf16|f16|e4m3)|_MI\d+x\d+|gmma"
)
_CUDA_CORES = re.compile(r"(?i)sgemm|ffma|simt|gemv|dgemm_(?:\d+x)|gemmSN|gemmk1|hgemm_\d")
_TILE = re.compile(r"(?<![\d])(\d{2,3}x\d{2,3})(?:x(\d{1,3}))?|MT(\d+x\d+x\d+)")


@dataclass(frozen=True, slots=True)
class Decoded:
    """kind as in KINDS, else "other". The rest only for matrix products, None where unsaid."""

    kind: str
    precision: str | None = None
    tile: str | None = None
    tensor_cores: bool | None = None


def decode(name: str) -> Decoded:
    """Read one kernel's name."""
    kind = next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")
    if kind not in ("gemm", "convolution", "attention"):
        return Decoded(kind)
    precision = next((p for pattern, p in _PRECISION if pattern.search(name)), None)
    cores = True if _TENSOR.search(name) else False if _CUDA_CORES.search(name) else None
    tile = _TILE.search(name)
    return Decoded(kind, precision, next((g for g in tile.groups() if g), None) if tile else None, cores)
