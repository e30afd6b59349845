"""Progress on standard error, for a person who watches, after a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any


class Progress:
    """Gives a callable of (bytes read, bytes to read or None); None where nobody watches."""

    DELAY = 1.0

    def __enter__(self) -> Callable[[int, int | None], None] | None:
        self._bar: Any = None
        if sys.stderr is None or not sys.stderr.isatty():
            return None
        self._begun = time.monotonic()
        return self._update

    def _update(self, done: int, total: int | None) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < self.DELAY:
                return
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task("reading", total=total)
        self._bar.update(self._task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
