"""The one formatter of times, bytes, shares and long names. Text from a trace passes `clean` first."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from functools import lru_cache

NOT_AVAILABLE = "n/a"

_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_BYTE_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_TIME_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


def clean(text: str) -> str:
    """Text of a stranger, safe to show: control, bidirectional and invisible characters escaped."""
    return _CONTROL.sub(lambda m: m[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def path_text(path: str) -> str:
    """A file's name as text: it may be bytes that are none, and JSON holds nothing else."""
    return path.encode("utf-8", "backslashreplace").decode()


def shell_path(path: str) -> str:
    """A file's name as a word of a command to copy: safe to show, one word to a shell, and no option."""
    text = clean(path)
    return shlex.quote(f"./{text}" if text.startswith("-") and text != "-" else text)


def us(ns: float | None) -> float | None:
    """Nanoseconds as the JSON report has them: µs with three decimals. None stays None."""
    return None if ns is None else round(ns / 1000, 3)


def _three_digits(x: float) -> str:
    if abs(x) >= 99.95:
        return f"{x:,.0f}"
    return f"{x:.1f}" if abs(x) >= 9.995 else f"{x:.2f}"


def duration(ns: float | None) -> str:
    """Three significant digits and the unit that suits: 217 ns, 8.38 µs, 1.21 s.

    Of the figure as JSON has it: half a nanosecond of a median is shown alike from a trace and from a saved report.
    """
    if ns is None:
        return NOT_AVAILABLE
    ns = round(ns / 1000, 3) * 1000
    for size, unit in _TIME_UNITS:
        if abs(ns) >= size * 0.9995:
            return f"{_three_digits(ns / size)} {unit}"
    return f"{ns:.0f} ns"


def size(n: float | None) -> str:
    """Bytes, with binary prefixes."""
    if n is None:
        return NOT_AVAILABLE
    for unit_size, unit in _BYTE_UNITS:
        if abs(n) >= unit_size:
            return f"{_three_digits(n / unit_size)} {unit}"
    return f"{n:.0f} B"


def rate(bytes_per_second: float | None) -> str:
    """Decimal GB/s, as vendors state bandwidth."""
    return NOT_AVAILABLE if bytes_per_second is None else f"{_three_digits(bytes_per_second / 1e9)} GB/s"


def share(x: float | None) -> str:
    """A share of 0 to 1 in per cent. What is not nothing is not shown as 0%."""
    if x is None:
        return NOT_AVAILABLE
    if 0 < x < 0.0005:
        return "<0.1%"
    return f"{100 * x:.0f}%" if x >= 0.0995 and abs(x - round(x, 2)) < 5e-4 else f"{100 * x:.1f}%"


def ratio(x: float | None) -> str:
    return NOT_AVAILABLE if x is None else f"{_three_digits(x)}×"


def count(n: float | None) -> str:
    if n is None:
        return NOT_AVAILABLE
    return f"{n:,.0f}" if float(n).is_integer() else f"{n:,.1f}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """`1 launch`, `2 launches`: a count with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


_NAMESPACES = re.compile(r"(?:\b(?:at::native::|at::cuda::|at::|c10::|std::|cutlass::)|\(anonymous namespace\)::)+")
#: What compilers write around a lambda, and how long PyTorch's argument arrays are in words.
_NOISE = (
    (re.compile(r"\{lambda\([^(){}]*\)#\d+\}::operator\(\)\([^()]*\) const::"), ""),
    (re.compile(r"\([^(){}]*\)::\{lambda"), "::{lambda"),
    (re.compile(r"\barray<char\*, (\d+)ul>"), r"char*[\1]"),
    (re.compile(r"> (?=>)"), ">"),
)


def short_name(name: str, width: int) -> str:
    """A name in at most `width` characters, cut in the middle so that alike names stay apart.

    C++ kernel names lose their return type, namespaces and argument list first: what tells two
    instantiations apart stands at the front (the function) and at the back (the template arguments).
    """
    text = _plain(name)
    if len(text) <= width:
        return text
    text = _bare(text)
    if len(text) <= width:
        return text
    head = (width - 1) * 3 // 5
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Names that stand together, each in at most `width` characters: name -> text.

    Where two would look alike, what is cut out is another part: all but where they first differ.
    """
    texts = {name: short_name(name, width) for name in names}
    for _ in range(4):  # names that differ in several places need as many rounds
        alike: dict[str, list[str]] = {}
        for name, text in texts.items():
            alike.setdefault(text, []).append(name)
        groups = [group for group in alike.values() if len(group) > 1]
        for group in groups:
            whole = {name: _bare(_plain(name)) for name in group}
            if len(set(whole.values())) == 1:  # they differ in their arguments alone
                whole = {name: _plain(name) for name in group}
            same = _common(whole.values())
            texts |= {name: _window(text, same, width) for name, text in whole.items()}
        if not groups:
            break
    return texts


def _common(texts: Iterable[str]) -> int:
    """How many characters all texts begin with."""
    ordered = sorted(texts)
    first, last = ordered[0], ordered[-1]
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def _window(text: str, at: int, width: int) -> str:
    """A name cut so that the text from `at` on is seen, with its beginning before it where there is room."""
    head = min(width // 4, max(0, at - 1))
    room = width - head - (at > head)
    if at <= head:
        return text if len(text) <= width else text[: width - 1] + "…"
    tail = text[at:]
    return f"{text[:head]}…{tail if len(tail) <= room else tail[: room - 1] + '…'}"


@lru_cache(4096)
def demangle(name: str) -> str:
    """A name of C++ as its author wrote it, from the compiler's (`_Z..`); "" for any other, and one that was cut."""
    import pydemumble

    return str(pydemumble.demangle(name))


def _plain(name: str) -> str:
    """A name for a terminal; one of C++ as its author wrote it, where it is whole."""
    text = clean(name)
    return demangle(text) or text if text.startswith("_Z") else text


def _bare(text: str) -> str:
    """A C++ name without return type, namespaces, argument list and what lies around a lambda; others as they are."""
    if "::" in text or text.startswith("void "):
        text = _NAMESPACES.sub("", _drop_arguments(text.removeprefix("void ")))
        for noise, less in _NOISE:
            text = noise.sub(less, text)
    return text


def _drop_arguments(text: str) -> str:
    """`f<T>(int, U)` becomes `f<T>`: cut the last balanced parenthesis at the end."""
    if not text.endswith(")"):
        return text
    depth = 0
    for i in range(len(text) - 1, -1, -1):
        depth += (text[i] == ")") - (text[i] == "(")
        if depth == 0:
            return text[:i] or text
    return text
