"""Programs that profile themselves: torch allows one profiler at a time, and the program's has precedence.

Our own profiler being on would make the program's fail to start, and change what it does. So calls that
start one pass through here while a recording is under way: ours then stops first and keeps what it has.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.autograd.profiler

_NAMES = ("_prepare_profiler", "_enable_profiler", "_disable_profiler")


class Neighbour:
    """Watches for profilers that are not ours. `give_way` is called before one of them starts."""

    def __init__(self, give_way: Callable[[], None]) -> None:
        self._give_way = give_way
        self._ours = 0
        self._originals: dict[str, Callable[..., Any]] = {}
        self._patched: dict[str, Callable[..., Any]] = {}
        self.busy = False

    def watch(self) -> None:
        """Begin. What is not there in this torch is not watched."""
        module: Any = torch.autograd.profiler
        if torch._C._autograd._profiler_enabled():
            self.busy = True
        for name in _NAMES:
            original = getattr(module, name, None)
            if original is not None:
                self._originals[name] = original
                self._patched[name] = self._wrap(original, starts=name != "_disable_profiler")
                setattr(module, name, self._patched[name])

    def unwatch(self) -> None:
        """End. Leaves alone what somebody else has replaced since."""
        module: Any = torch.autograd.profiler
        for name, original in self._originals.items():
            if getattr(module, name, None) is self._patched[name]:
                setattr(module, name, original)
        self._originals, self._patched = {}, {}

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Calls made inside are our own profiler's."""
        self._ours += 1
        try:
            yield
        finally:
            self._ours -= 1

    def _wrap(self, original: Callable[..., Any], *, starts: bool) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if self._ours:
                return original(*args, **kwargs)
            if starts:
                self._give_way()
                self.busy = True
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                self.busy = False

        return wrapped
