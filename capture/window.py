"""A window of time instead of steps: begin and end a recording on the main thread, from a clock.

The profiler sees the operators of the thread that started it, so the clock cannot start it from a thread of
its own; and a signal would disturb programs that wait in system calls. The interpreter itself offers to call
something on the main thread between two instructions.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

_PENDING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

# The interpreter keeps a bare pointer until it calls: these must stay alive for as long as the process.
_kept: list[Any] = []


def call_on_main_thread(action: Callable[[], None]) -> bool:
    """Ask for `action` to be called on the main thread soon. False if the interpreter's queue is full.

    `action` must not raise. While the main thread is inside one long native call, it waits.
    """

    def run(_: int | None) -> int:
        action()
        return 0

    pointer = _PENDING(run)
    _kept.append(pointer)
    add: Any = ctypes.pythonapi.Py_AddPendingCall
    return bool(add(pointer, None) == 0)


class Window:
    """Calls `begin` after `after` seconds, and `end` another `length` seconds later, on the main thread."""

    def __init__(self, after: float, length: float, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._after, self._length = after, length
        self._begin, self._end = begin, end
        self._stopped = threading.Event()
        self._begun = threading.Event()

    def start(self) -> None:
        """Start the clock."""
        threading.Thread(target=self._run, name="capture-window", daemon=True).start()

    def stop(self) -> None:
        """Call nothing any more. On the main thread."""
        self._stopped.set()
        self._begun.set()

    def _run(self) -> None:
        if self._stopped.wait(self._after) or not self._ask(self._on_begin):
            return
        # The length counts from when the profiler really started.
        self._begun.wait()
        if not self._stopped.wait(self._length):
            self._ask(self._on_end)

    def _ask(self, action: Callable[[], None]) -> bool:
        while not call_on_main_thread(action):
            if self._stopped.wait(0.01):
                return False
        return True

    def _on_begin(self) -> None:
        if not self._stopped.is_set():
            self._begin()
        self._begun.set()

    def _on_end(self) -> None:
        if not self._stopped.is_set():
            self._end()
