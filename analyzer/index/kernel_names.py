"""What a kernel's name says: its kind, and of matrix products the number format, tile and tensor cores.

A table of patterns, first match wins, applied once to each distinct name. Library kernels encode
their tile, precision and architecture in their names; PyTorch's own carry the functor; Inductor's Triton
kernels list what was fused, behind a prefix: `poi` point-wise, `red` and `per` reductions, `tem` a template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

#: What a demangled or plain name may begin with before the function's own: return type, namespaces.
_LEAD = r"^(?:void |__global__ )?(?:\(anonymous namespace\)::)?"

KINDS: tuple[tuple[str, str], ...] = (
    ("attention", r"^triton_tem_\w*(?:attention|sdpa)"),
    ("convolution", r"^triton_tem_\w*conv"),
    ("gemm", r"^triton_tem_"),
    ("elementwise", r"^triton_poi_"),
    ("normalisation", r"^triton_(?:red|per)_\w*norm"),
    ("softmax", r"^triton_(?:red|per)_\w*softmax"),
    ("reduction", r"^triton_(?:red|per)_"),
    # NCCL, RCCL, MSCCL, oneCCL, HCCL; then libraries by namespace; then all-reduces of serving engines; torch's
    # symmetric memory; Transformer Engine's user buffers.
    ("communication", _LEAD + r"(?:nccl|rccl|msccl|hccl|oneccl)(?:pp)?(?:[A-Z_:]|Dev|Kernel)|^(?:SendRecv|AllReduce|AllGather|ReduceScatter|AllToAll|Broadcast)(?:Kernel|_)"),
    ("communication", _LEAD + r"(?:deep_ep|mori|nvshmem\w*|nvshmemi\w*|rocshmem\w*|ccl|oneccl|mscclpp|quickreduce)::|" + _LEAD + r"(?:nvshmem|rocshmem)\w*|" + _LEAD + r"Ep(?:Dispatch|Combine)\w*"),
    ("communication", _LEAD + r"(?:(?:\w+|\(anonymous namespace\))::)*(?:cross_device_reduce|(?:one|two)_?shot_?all_?reduce|multimem_(?:all|one|two|reduce)|all_?reduce|allreduce|all_?gather|reduce_?scatter|all_?to_?all|moe_?alltoall|moe_?comm|userbuffers_)\w*"),
    ("communication", r"(?i)^(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all_?v?|broadcast|send_?recv|send|recv)$"),
    ("communication", r"^_?(?:\w+_)?(?:all_reduce|allreduce|all_gather|allgather|reduce_scatter|all_to_all|alltoall)(?:_\w+)?_kernel\w*$|^kuserbuffers_|^multimem_"),
    ("attention", r"(?i)fmha|flash_(?:fwd|bwd|attn)|flash::|flashattn|sdpa|(?:^|[^a-z])attn_(?:fwd|bwd)|mha_|kernel_mha|"
                  r"(?:paged|unified|flex|ragged)_attention|dot_do_o|convert_dq"),
    ("elementwise", r"(?i)rotary|rope_|SubTensorOp|triu_tril|act_and_mul|silu_and_mul"),
    ("layout", r"(?i)nchwToNhwc|nhwcToNchw|^batched_transpose|^transpose_[NC]"),
    ("embedding", r"(?i)embedding|index(?:_|Select|Func|ing_)|gather|scatter|grad_weight|krn_partial"),
    ("normalisation", r"(?i)(?:layer|batch|group|rms|instance)_?norm|bn_(?:fw|bw)|GammaBeta|RowwiseMoments"),
    ("softmax", r"(?i)softmax"),
    ("copy", r"(?i)multi_tensor_apply\w*<.*Copy"),
    ("optimizer", r"(?i)multi_tensor_apply|fused_?(?:adam|sgd|adagrad)|lamb_stage|foreach_"),
    ("pooling", r"(?i)max_?pool|avg_?pool|average_pool"),
    ("reduction", r"(?i)ReduceSplitK|reduce_wgrad"),
    ("convolution", r"(?i)implicit_convolve|implicitgemmconv|conv(?:olve|olution|_?[123]d|_fwd|_bwd)|fprop|dgrad|wgrad|winograd|"
                    r"im2col|igemm_(?:fwd|bwd|wrw)|scudnn|cudnn_\w*gemm|miopen|bwd_weight|fft2d_[rc]2"),
    ("gemm", r"(?i)(?<!fb)gemm|nvjet|^Cijk_|splitKreduce|gemv|xmma|(?:^|_)b?mm(?:_|$)|dot_kernel|matmul|tensorop|reduce_1Block"),
    ("sort and scan", r"(?i)sort|scan|topk|cumsum|cub::|nonzero|unique|bitonic"),
    ("random", r"(?i)distribution_|philox|dropout|curand"),
    ("copy", r"(?i)^Memcpy|copy_kernel|CatArray|direct_copy|transpose|copyBuffer|permute_kernel"),
    ("memset", r"(?i)^Memset|fillBuffer|FillFunctor"),
    ("reduction", r"(?i)reduce_kernel|reduce_|reduction|norm_?(?:two|cleanup)"),
    ("elementwise", r"(?i)elementwise|pointwise"),
    ("triton", r"(?i)^triton_"),
)  # fmt: skip
_KINDS = tuple((kind, re.compile(pattern)) for kind, pattern in KINDS)

#: nvjet_<arch>_<types>_<tile>...: one letter each for the inputs, the sum and the output.
_NVJET = re.compile(r"nvjet_(?:sm\d+_)?([a-z])([a-z])([a-z])_(\d+x\d+)")
_NVJET_INPUT = {"t": "bf16", "h": "fp16", "s": "tf32", "d": "fp64", "q": "fp8", "o": "fp8", "i": "int8"}
#: Cijk_<layout>_<types>: letters of Tensile and hipBLASLt; the first names the inputs.
_TENSILE = re.compile(r"^Cijk_[A-Za-z]+_[A-Za-z]+_(?:Cijk_Dijk_)?(BBS|B_BS|BSS|HHS|HSS|HB|SB|DB|ZB|CB|I8|F8|B8)")
_TENSILE_INPUT = {"BBS": "bf16", "B_BS": "bf16", "BSS": "bf16", "HHS": "fp16", "HSS": "fp16", "HB": "fp16", "SB": "fp32",
                  "DB": "fp64", "ZB": "complex128", "CB": "complex64", "I8": "int8", "F8": "fp8", "B8": "fp8"}  # fmt: skip

#: Number format by spelling. Order matters: a name may give inputs, sum and output, narrow ones first.
_PRECISIONS: tuple[tuple[str, str], ...] = (
    (r"^bmm_\w*E2m1|nvfp4|mxf4", "fp4"),
    (r"(?i)e4m3|e5m2|fp8(?!KVCache)|float8|f8f6", "fp8"),
    (r"(?i)int8|imma|_s8_|i8816|s8s8", "int8"),
    (r"(?i)gcgemm|cgemm|_c64", "complex64"),
    (r"(?i)bf16|bfloat|BBS_BH", "bf16"),
    (r"tf32|TF32|s1688(?:gemm|fprop|dgrad|wgrad)_?(?!.*_f16)", "tf32"),
    (r"(?i)(?<![bt])f16|fp16|hgemm|h16816|h884|h1688|half|hfma", "fp16"),
    (r"(?i)f64|dgemm|d884|double", "fp64"),
    (r"(?i)(?<![bt])f32|sgemm|scudnn|ffma|float(?!\d)", "fp32"),
)  # fmt: skip
_PRECISION = tuple((re.compile(pattern), name) for pattern, name in _PRECISIONS)
#: cuDNN's generated attention says f16 for either 16-bit format.
_EITHER = re.compile(r"cudnn_generated_\w*_f16_")
_TENSOR = re.compile(
    r"(?i)tensorop|tensor\d+x\d+x\d+|nvjet|wgmma|hmma|imma|16816|161616|1688|884|tf32|warpgroupsize|"
    r"_MI\d+x\d+|gmma|mfma|gtcx|xdl|sm100|tcgen|flash|fmha|mem_?eff"
)
_CUDA_CORES = re.compile(
    r"(?i)sgemm|ffma|simt|scudnn|gemv|dgemm_(?:\d+x)|gemmSN|gemmk1|hgemm_\d|dot_kernel|reduce_1Block"
)
_TILE = re.compile(
    r"MT(\d+x\d+x\d+)|tilesize(\d+x\d+x\d+)|_t(\d+x\d+x\d+)u|_bt(\d+x\d+x\d+)|(?<!\d)(\d{2,3}x\d{1,3})(?!\d)"
)
#: Built for an architecture whose tensor cores take fp32 as TF32.
_AMPERE = re.compile(r"(?i)ampere|hopper|blackwell|sm_?(?:[89]|1\d)\d(?!\d)|cutlass_80|nvjet")
#: Products with a vector are bound by memory: tensor cores would not speed them up.
_VECTOR = re.compile(r"(?i)gemv|dot_kernel|reduce|gemmk1|gemmSN")
#: A kernel that stores a narrower format than it loads, and one that casts: the format is what it stores.
_STORES = re.compile(r"(bfloat16|float16|half|float8_\w+?)_copy_kernel")
_CASTS = ("direct_copy_kernel_cuda", "LoadWithCast")
_LAMBDA = re.compile(r"\{lambda\((float|double|c10::BFloat16|c10::Half)\)#1\}")
_FORMATS = {
    "float": "fp32", "double": "fp64", "c10::BFloat16": "bf16", "c10::Half": "fp16",
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Decoded:
    """kind as in KINDS, else "other". stores: the format that a converting kernel stores, None: it converts nothing.

    The rest only for matrix products, None where unsaid:
    precision  of the inputs. tile: what one block computes. tensor_cores: matrix units of any vendor.
    vector     whether it is a product with a vector. ampere: built for Ampere or later.
    """

    kind: str
    precision: str | None = None
    tile: str | None = None
    tensor_cores: bool | None = None
    vector: bool = False
    ampere: bool = False
    stores: str | None = None


@lru_cache(1 << 14)
def decode(name: str) -> Decoded:
    """Read one kernel's name."""
    kind = next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")
    if kind not in ("gemm", "convolution", "attention"):
        return Decoded(kind, stores=_stores(name))
    return Decoded(
        kind,
        _precision(name),
        _tile(name),
        _tensor_cores(name),
        vector=_VECTOR.search(name) is not None,
        ampere=_AMPERE.search(name) is not None,
    )


def _stores(name: str) -> str | None:
    if found := _STORES.search(name):
        return _FORMATS.get(found[1])
    if all(part in name for part in _CASTS) and (found := _LAMBDA.search(name)):
        return _FORMATS[found[1]]
    return None


def _precision(name: str) -> str | None:
    if nvjet := _NVJET.search(name):
        return _NVJET_INPUT.get(nvjet[1])
    if tensile := _TENSILE.search(name):
        return _TENSILE_INPUT[tensile[1]]
    # A mangled name spells types in single letters, which also stand for much else.
    if _EITHER.search(name) or name.startswith("_Z"):
        return None
    return next((p for pattern, p in _PRECISION if pattern.search(name)), None)


def _tile(name: str) -> str | None:
    if nvjet := _NVJET.search(name):
        return nvjet[4]
    tile = _TILE.search(name)
    return next((g for g in tile.groups() if g), None) if tile else None


def _tensor_cores(name: str) -> bool | None:
    # A product in fp32 on CUDA cores may be built by a library that is named after tensor operations.
    if _CUDA_CORES.search(name) and not re.search(r"(?i)tensorop|tf32|_MI\d", name):
        return False
    return True if _TENSOR.search(name) else None
