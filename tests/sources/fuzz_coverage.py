"""The same promises as `tests.sources.fuzz`, with inputs led by coverage: for as long as one likes.

    pip install atheris
    python -m tests.sources.fuzz_coverage -max_total_time=3600 [CORPUS]

Arguments are libFuzzer's. What fails is written as a crash file and repeated by naming that file.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["analyzer.sources"]):
    from tests.sources.fuzz import Case, check, originals


def one(data: bytes) -> None:
    """Hold the reader to its promises on any bytes; raises AssertionError."""
    check(Case(data, 0, 0, b""), random.Random(len(data)))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tracecli-corpus-") as folder:
        for number, text in enumerate(originals()):
            (Path(folder) / f"{number}.json").write_bytes(text)
        atheris.Setup([*sys.argv, folder], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
