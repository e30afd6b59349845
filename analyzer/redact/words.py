"""Words that the names of public frameworks are made of: what may stay in a shared trace.

A name is known where all of its words are: `sm90_xmma_gemm_bf16bf16_tilesize128x128x64_kernel`, `LlamaDecoderLayer`,
`decode_token`. Words come from the frameworks themselves (`words.txt.gz` says which, and how it was made); numbers,
sizes and formats of numbers are known by their form. Nothing here is taken from anybody's trace.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
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
#: Names that a library's generator makes of sizes and switches: Tensile's and hipBLASLt's, MIOpen's.
_GENERATED = re.compile(
    r"Cijk(?:_[A-Z][a-z]{3}){2}(?>_(?:\d?+(?:[A-Z]{1,8}+n?+\d*+(?:x\d++)*+){1,3}+|\d++|UserArgs|Bias)(?![^_]))*+"
    r"|igemm(?>_(?:[a-z]{2,4}+\d*+(?:x\d++)*+|\d++(?:x\d++)*+)(?![^_]))++"
)
#: Between identifiers of a mangled name: codes of types and operators, numbers of substitutions; never a word.
_LENGTH = re.compile(r"[1-9]\d{0,2}")
_CODE = re.compile(r"L[a-z]n?\d+E|DF\d+[b_x]|S[\dA-Z]*_|T\d*_|[A-Z]|[a-z]|_|0")
_LONGEST = 400
_MANGLED = re.compile(r"[A-Z]?[a-z]{3,}|(?![EILJSTNKR]+(?![A-Z]))[A-Z]{6,}")


def _wordlike(codes: str) -> bool:
    """Whether codes of types hold what may be a word without its length."""
    small = any(len(set(run)) > 3 for run in re.findall(r"[a-z]{4,}", codes))
    return small or any(set(run) & set("BCGHQUWYZ") for run in re.findall(r"[A-Z]{4,}", codes))


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
    return _GENERATED.fullmatch(name) is not None or all(map(_known, name.split("_")))


def mangled(name: str, replace: Callable[[str], str]) -> str | None:
    """A name of C++ as the compiler writes it (`_ZN2ck6kernelILi4EEEvv`) with other identifiers; None where it is none.

    replace  gives what stands for an identifier.
    """
    out, codes, at = ["_Z"], "", 2
    while at < len(name):
        digits = _LENGTH.match(name, at)
        if digits is None or int(digits[0]) > _LONGEST:
            code = _CODE.match(name, at)
            if code is None:
                return None
            codes += code[0] if len(code[0]) == 1 else " "
            out.append(code[0])
            at = code.end()
            continue
        codes += " "
        stop = digits.end() + int(digits[0])
        new = replace(name[digits.end() : stop])
        out.append(f"{len(new)}{new}")
        at = stop
    return None if _wordlike(codes) else "".join(out)


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
