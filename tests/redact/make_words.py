"""Makes `analyzer/redact/words.txt.gz`: the words that names of public frameworks are made of.

    python -m tests.redact.make_words PYTHON        # an interpreter with the packages below; needs no GPU
    python -m tests.redact.make_words --add SOURCE..    # more: wheels, and git directories of public repositories

Names only: operators (from the dispatcher), files, modules, classes and functions of the packages (parsed,
never imported, torch apart), identifiers of torch's headers, and the kernels, operators and calls in the
fixtures, which were recorded from these packages; and the words of `capture`, which stamps what it records. Split into words; digits are not kept. `SUPPLEMENT` holds
what no package gave: words in the names of files of public repositories (vLLM, SGLang, CUTLASS, NCCL).
"""

from __future__ import annotations

import ast
import builtins
import gzip
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from analyzer.redact.words import FILE, parts

PACKAGES = ("torch", "torchvision", "triton", "transformers", "diffusers", "accelerate", "peft", "timm", "lightning",
            "functorch", "torchgen", "sympy", "networkx")  # fmt: skip
STANDARD = (
    "asyncio",
    "concurrent",
    "multiprocessing",
    "importlib",
    "collections",
    "logging",
    "json",
    "unittest",
    "ctypes",
)
FIXTURES = Path(__file__).parents[2] / "fixtures"
CAPTURE = Path(__file__).parents[2] / "capture"
#: Categories in which our recordings hold names of frameworks, and none of ours.
RECORDED = ("kernel", "cpu_op", "cuda_runtime", "cuda_driver", "gpu_memcpy", "gpu_memset", "overhead")
SUPPLEMENT = """
genexpr listcomp dictcomp setcomp pybind abi gxx libstdcpp cxx dynamo timed codegen nvtx fx autotune torchinductor python ring tree nvls simple cga knob bprop fort aten
aiter amx ampere attn awq bailing bitsandbytes blackwell blockwise broadcast causal cdna chunked cijk cub cublas cublaslt
cudagraph cudnn cupti cutedsl cutlass deepep deepgemm deepseek dgrad dijk dispatcher dotprod dsv dual eagle ecopy executor
fmha flashattn flashinfer flashmla fprop fused gdn gemma gemv gfx gluon gptq gqa grouped hgemm hip hipblas hipblaslt hmma
hopper igemm im2col indexer jet kernel1 kimi kv kvcache lamport lightning logits mamba marlin maxwell medusa megatron mfma
mha miopen mla moe mqa mscclpp mtp multimem nccl ncclx ngram nhwc nchw nvfp nvjet nvshmem octave onednn paged pascal persistent
pipelined preprocess prefill qkv qwen radix ragged rccl rdna rmsnorm rocblas rocm rope router rotary roctracer sampler scheduler
scudnn sdpa sgemm sglang silu simt sliding sm softmax sparse spec speculative splitk splitkreduce splitq srt stages streamk swiglu
swizzle tensile tensorop tilesize tma topk trtllm turing turboquant varlen verify vllm volta warpgroupsize warpsize warpspecialized
wgmma wgrad winograd wmma worker xdl xformers xmma zebra
"""
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w{2,}")


#: Names that C++, CUDA and HIP define.
_DEFINED = re.compile(
    rb"\b(?:struct|class|enum(?:\s+class)?|namespace|concept|using)\s+([A-Za-z_]\w{2,})"
    rb"|__global__[^;{}()]*?(?:\([^()]*\)\s*)*?\b([A-Za-z_]\w{2,})\s*\("
)


def add(sources: Iterable[str]) -> None:
    """Words of more sources, to those that are there."""
    head, *lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()
    words, beside = {*lines, *SUPPLEMENT.split()}, head.partition("; beside ")[2]
    told = [beside] if beside else []
    for source in sources:
        path = Path(source)
        if path.suffix == ".whl":
            names, version = _wheel(path), "-".join(path.name.split("-")[:2])
        else:
            names, version = _git(path)
        seen: Counter[str] = Counter()
        for name in {*names}:
            seen.update({*parts(name)})
        words |= {word for word, times in seen.items() if times >= 2 and 2 < len(word) <= 24}
        told.append(version)
    made = re.sub(r"; \d+ words.*", "", head)
    _write(f"{made}; {len(words)} words; beside {', '.join(told)}", words)


def _wheel(path: Path) -> set[str]:
    found: set[str] = set()
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if name.endswith(".py") and "test" not in name:
                found.update(Path(name).with_suffix("").parts, _defined(wheel.read(name)))
    return found


def _git(folder: Path) -> tuple[set[str], str]:
    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True).stdout

    found: set[str] = set()
    for line in git("ls-tree", "-r", "HEAD").decode().splitlines():
        about, _, name = line.partition("\t")
        if "test" in name.lower() or not re.search(r"\.(?:py|h|hpp|cuh|cu|inc)$", name):
            continue
        text = git("cat-file", "blob", about.split()[2])
        found.update(Path(name).with_suffix("").parts)
        if name.endswith(".py"):
            found.update(_defined(text))
        else:
            found.update((a or b).decode() for a, b in _DEFINED.findall(text))
    return found, f"{folder.parent.name.replace('+', '/')} {git('rev-parse', '--short', 'HEAD').decode().strip()}"


def _write(head: str, words: set[str]) -> None:
    FILE.write_bytes(gzip.compress((head + "\n" + "\n".join(sorted(words)) + "\n").encode(), 9, mtime=0))
    sys.stdout.write(f"{FILE}: {len(words)} words, {FILE.stat().st_size} bytes\n")


def main(python: str) -> None:
    script = "import torch, sysconfig, json; print(json.dumps([torch.__version__, sysconfig.get_path('purelib'), "
    script += "torch._C._dispatch_get_all_op_names()]))"
    said = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout
    version, folder, operators = json.loads(said)
    seen: Counter[str] = Counter()
    for names in (operators, _python(Path(folder)), _standard(), _headers(Path(folder)), _fixtures()):
        for name in {*names}:
            seen.update({*parts(name)})
    words = {word for word, times in seen.items() if times >= (2 if len(word) > 2 else 40) and 2 <= len(word) <= 24}
    words |= {part for path in CAPTURE.rglob("*.py") for part in parts(path.read_text("utf-8")) if 2 < len(part) <= 24}
    words |= (
        {*SUPPLEMENT.split()}
        | {part for name in _standard() for part in parts(name) if 1 < len(part) <= 24}
        | {part for name in _fixtures() for part in parts(name) if len(part) > 1}
    )
    versions = ", ".join(p.name.removesuffix(".dist-info") for p in sorted(Path(folder).glob("*.dist-info")))
    head = f"# made by tests/redact/make_words.py from torch {version} and {versions}; {len(words)} words"
    _write(head, words)


def _python(folder: Path) -> Iterator[str]:
    for package in PACKAGES:
        for path in (folder / package).rglob("*.py"):
            place = path.relative_to(folder)
            if not {"test", "tests", "testing"} & {*place.parts} and "_test" not in path.name:
                yield from place.with_suffix("").parts
                yield from _defined(path.read_bytes())


def _standard() -> Iterator[str]:
    yield from sys.stdlib_module_names
    library = Path(ast.__file__).parent
    for name in STANDARD:
        for path in (library / name).rglob("*.py"):
            yield from _defined(path.read_bytes())
    for of in (str, bytes, int, float, list, dict, set, tuple, object, type, os, time, sys, builtins, BaseException):
        yield from dir(of)
    for path in library.glob("*.py"):
        yield from _defined(path.read_bytes())


def _defined(code: bytes) -> Iterable[str]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return []
    return [node.name for node in ast.walk(tree) if isinstance(node, _NAMED)]


def _headers(folder: Path) -> Iterator[str]:
    for where in ("ATen", "c10", "torch/csrc/distributed", "torch/csrc/autograd"):
        for path in (folder / "torch" / "include" / where).rglob("*.*"):
            code = re.sub(rb"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", b" ", path.read_bytes(), flags=re.DOTALL)
            yield from (found.decode() for found in _IDENTIFIER.findall(code))


def _fixtures() -> Iterator[str]:
    for path in FIXTURES.glob("*.json.gz"):
        for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
            if event.get("cat") in RECORDED:
                yield event["name"]


if __name__ == "__main__":
    if sys.argv[1] == "--add":
        add(sys.argv[2:])
    else:
        main(sys.argv[1])
