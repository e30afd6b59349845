"""Words that the names of public frameworks are made of: what may stay in a shared trace.

A name is known where all of its words are: `sm90_xmma_gemm_bf16bf16_tilesize128x128x64_kernel`, `LlamaDecoderLayer`,
`decode_token`. Words come from the frameworks themselves (`words.txt.gz` says which, and how it was made); numbers,
sizes and formats of numbers are known by their form. Nothing here is taken from anybody's trace.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("words.txt.gz")

#: Words in a name: runs of small letters, of capitals, of a capital and small letters; in any script.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+")
#: What says a size, a type or a count, as a whole stretch between underscores.
_FORM = re.compile(
    r"\d{1,6}|\d{1,4}(?:x\d{1,4}){1,4}|v\d{1,2}|(?:sm|gfx|cc)\d{2,4}[a-z]?|[a-z]|(?:[st])?(?:bf16|tf32|f16|f32|f64|f8|s8|u8|s32|i8|"
    r"fp8|fp16|fp32|fp64|e4m3|e5m2|int\d{1,2}|uint\d{1,2}|bfloat16|float16|float32|float64|8|16|32|64)+|[tnc]{2,4}|\d{1,4}(?:ul|u|d|x|b)|"
    r"[a-z]\d|\d[a-z]|[a-z]{1,2}\d{4,6}|\d{3,4}[a-z]{2,8}|stage\d|(?:h|s|i|d|f)?(?:1688|884|16816|16832|8816)|kd|c10d?|x86|\d{1,2}bits?|[cf][a-z2-7]{50,54}",
)
#: Addresses of objects in Python's own texts.
_ADDRESS = re.compile(r"0x[0-9a-f]{1,16}")
#: Machines are called by such words and a number.
_MACHINES = "node|host|gpu|login|worker|server|machine|compute|dgx|nid|cn|hpc|cluster|rack|pod|vm|box|srv|ws|pc"
_MACHINE = re.compile(rf"(?i)(?:{_MACHINES})(?:[_-]?[a-z]{{0,2}}[_-]?)?\d{{1,6}}[a-z]?(?:[_-][a-z]?\d+)*")
#: Folders in which homes and data of a house lie: public words, but a path of them is nobody else's.
_PLACES = frozenset(
    [
        "home",
        "users",
        "user",
        "scratch",
        "data",
        "mnt",
        "hpc",
        "uni",
        "project",
        "projects",
        "lustre",
        "gpfs",
        "nfs",
        "work",
        "shared",
        "private",
    ]
)
#: Packages whose folders are public, whatever they are called.
PACKAGES = frozenset(
    "torch torchvision torchaudio torchtitan torchao functorch numpy scipy triton transformers diffusers accelerate peft"
    " deepspeed lightning xformers flash_attn vllm sglang timm sympy networkx asyncio concurrent multiprocessing".split()
)
_NUMBERED = re.compile(r"([A-Za-z]{3,})(\d{1,4}(?:x\d{1,4})*[a-z]?)")
_MANGLED = re.compile(r"[A-Z]?[a-z]{3,}|(?![EILJSTNKR]+(?![A-Z]))[A-Z]{6,}")


def machine(name: str) -> bool:
    """Whether an identifier is what machines are called: `node17`, `gpu01`, `dgx-a03`."""
    return len(name) > 3 and _MACHINE.fullmatch(name) is not None


@cache
def words() -> frozenset[str]:
    """All known words, in small letters."""
    lines = gzip.decompress(FILE.read_bytes()).decode().splitlines()
    return frozenset(lines[1:])


def parts(name: str) -> Iterator[str]:
    """The words of a name, in small letters."""
    return (part.lower() for part in _PART.findall(name))


@lru_cache(1 << 16)
def known(name: str) -> bool:
    """Whether all of an identifier (letters, digits, underscores) is public."""
    if name.startswith("_Z"):  # a name of C++ as the compiler writes it: lengths and codes between the words
        return name.isascii() and all(part.lower() in words() for part in _MANGLED.findall(name))
    return all(map(_known, name.split("_")))


def public(folder: str) -> bool:
    """Whether a folder is one of a public package, and not the place where somebody's files lie."""
    return folder.lower() not in _PLACES and all(map(known, folder.replace("-", "_").split(".")))


def _known(piece: str) -> bool:
    lower = piece.lower()
    if not piece or lower in words() or _FORM.fullmatch(lower) or _ADDRESS.fullmatch(piece):
        return True
    if machine(piece):
        return False
    if numbered := _NUMBERED.fullmatch(piece):
        return _known(numbered[1])
    if not piece.isascii() or piece[0].isdigit():
        return False
    # A digit parts words like a capital does, but only inside a name: `Conv2dBackward0`, `f16f16`, `_ZN2at6native4mul`.
    found = _PART.findall(piece)
    if not re.fullmatch(r"(?:\d{1,4}(?:x\d{1,4})*)?", "".join(_PART.sub("", piece).split())):
        return False
    long = [part.lower() for part in found if len(part) > 2]
    return bool(long) and len(long) >= len(found) - len(long) and all(part in words() for part in long)
