"""Take host names, user names and the folders of a machine out of a trace, and nothing else.

Works on the text of the JSON strings, so that no number is read and written again: every figure keeps its
digits, and there are as many events as before.
"""

import gzip
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

# A JSON string with a slash or an escaped backslash in it: nothing else can hold a path.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

# An absolute path: at a place where no name is going on, one folder at least, up to what ends a path.
_UNIX = re.compile(r"(?<![\w.:/)\]>-])/(?:[^/\s\"'<>|:;,()\[\]{}]+/)+[^/\s\"'<>|:;,()\[\]{}]*")
_WINDOWS = re.compile(
    r"(?<!\w)[A-Za-z]:(?:\\\\|/)(?:[^\\/\"'<>|:;,()\[\]{}\n]+(?:\\\\|/))+"
    r"[^\\/\s\"'<>|:;,()\[\]{}]*"
)

# What follows one of these is the same on every machine.
_LIBRARY = re.compile(r"^.*?(?:/(?:site|dist)-packages/|/lib(?:64)?/python\d+(?:\.\d+)?/)")


def shorten(path: str) -> str:
    """The part of an absolute path that says which file it is: from the library on, or the last name."""
    path = path.replace("\\\\", "/").replace("\\", "/")
    tail = path
    while (cut := _LIBRARY.match(tail)) is not None:
        tail = "/" + tail[cut.end() :]
    if tail != path:
        return tail.lstrip("/")
    return path.rstrip("/").rpartition("/")[2]


def scrub_text(text: str, secrets: Iterable[str] = ()) -> str:
    """JSON text with absolute paths shortened inside its strings, and every one of `secrets` replaced there.

    Secrets of fewer than four characters are left: they would be found in the middle of kernel names.
    """
    names = sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True)
    secret = re.compile("|".join(map(re.escape, names))) if names else None

    def clean(match: re.Match[str]) -> str:
        string = match.group()
        if "/" in string or "\\\\" in string:
            string = _UNIX.sub(lambda m: shorten(m.group()), string)
            string = _WINDOWS.sub(lambda m: shorten(m.group()), string)
        if secret is not None:
            string = secret.sub("host", string)
        return string

    return _STRING.sub(clean, text)


def secrets_of_this_machine() -> list[str]:
    """The names by which this machine gives itself away."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    # A machine called localhost gives nothing away, and the word may be meant.
    return [n for n in (name, name.partition(".")[0]) if n and n != "localhost"]


def scrub_file(source: Path, target: Path | None = None, secrets: Iterable[str] = ()) -> None:
    """Scrub a `.json` or `.json.gz` file, in place or into `target`. Raises OSError or EOFError."""
    target = target or source
    packed = source.name.endswith(".gz")
    raw = gzip.decompress(source.read_bytes()) if packed else source.read_bytes()
    # Names with bytes that are no text pass through as they are.
    clean = scrub_text(raw.decode("utf-8", "surrogateescape"), secrets).encode("utf-8", "surrogateescape")
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.name.endswith(".gz"):
            with open(beside, "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as file:
                file.write(clean)
        else:
            beside.write_bytes(clean)
        if source.exists() and target == source:
            shutil.copymode(source, beside)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
