"""What capture says, and the guard that keeps its own failures away from the program it records."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """One line on standard error: standard output belongs to the recorded program."""
    stream = sys.stderr
    if stream is None or stream.closed:
        return
    print(f"capture: {text}", file=stream, flush=True)


@contextmanager
def spare(what: str, on_failure: Callable[[str], None] = say) -> Iterator[None]:
    """Turn a failure of ours into a message, and go on with the program.

    Ctrl-C and `sys.exit` pass through: they are the program's business, not ours.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever the profiler throws, the program must go on
        on_failure(f"{what} failed: {type(error).__name__}: {error}. The program goes on without it.")
