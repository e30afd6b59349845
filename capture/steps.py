"""Seeing the steps of a program that does not say where they are, through torch's own hooks.

A step is an optimizer step, or without one a call of the outermost module. Hooks on every module would
cost an inference step a few percent, so the one on all modules lives only until the outermost module is
known: it takes itself away before that module's forward runs, and the module alone is hooked from then on.
That also keeps the hooks out of what torch.compile sees.
"""

import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

# Forward calls with gradients on belong to training, where the optimizer makes the step; after so many of
# them without an optimizer step it is taken for inference by somebody who left gradients on.
FORWARDS_WITHOUT_OPTIMIZER = 25

# Programs that call ever new modules have no outermost one; stop looking after so many.
_CANDIDATES = 16

_COMPILE_WARNING = r"Using `torch\.compile\(module\)` when there are global hooks"


class StepSink(Protocol):
    """Who is told of steps."""

    def step(self) -> None:
        """One step ended."""

    def restart(self) -> None:
        """The steps reported so far were none."""


class OptimizerSteps:
    """Steps of the first optimizer that makes one; a second optimizer in the program makes no steps."""

    def __init__(self, on_step: Callable[[], None]) -> None:
        self._on_step = on_step
        self._first: weakref.ref[Any] | None = None
        self._handle: Any = None
        self._dead = False

    def install(self) -> None:
        """Begin to see steps."""
        self._handle = optimizers.register_optimizer_step_post_hook(self._after)

    def remove(self) -> None:
        """See no more steps. May be called from within the hook."""
        self._dead = True
        self._detach(during_hook=True)

    def _after(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if self._dead:
            self._detach(during_hook=True)
            return
        if self._first is None:
            self._first = weakref.ref(optimizer)
        first = self._first()
        if first is optimizer:
            self._on_step()
        elif first is None:
            self._first = weakref.ref(optimizer)
            self._on_step()

    def _detach(self, *, during_hook: bool) -> None:
        if self._handle is None:
            return
        # torch walks the table of hooks itself, not a copy of it: taking out any but the last one while it
        # does would be an error in the program. A hook that must stay costs one call that returns at once.
        table = getattr(optimizers, "_global_optimizer_post_hooks", {})
        if not during_hook or not table or next(reversed(table)) == self._handle.id:
            self._handle.remove()
            self._handle = None


class ForwardSteps:
    """Calls of the outermost module. `wanted` says whether a call of it is a step."""

    def __init__(self, on_step: Callable[[], None], wanted: Callable[[Any], bool]) -> None:
        self._on_step = on_step
        self._wanted = wanted
        self._thread = threading.get_ident()
        self._search: Any = None
        self._filter: Any = None
        self._hooks: dict[int, Any] = {}
        self._calls: dict[int, int] = {}
        self._root: int | None = None
        self._dead = False

    def install(self) -> None:
        """Begin to look for the outermost module."""
        self._begin_search()

    def remove(self) -> None:
        """Take all hooks away. May be called from within one: torch walks a copy of these."""
        self._dead = True
        self._end_search()
        self._drop_filter()
        for hook in self._hooks.values():
            hook.remove()
        self._hooks = {}

    def _begin_search(self) -> None:
        if self._dead or self._search is not None or self._root is not None:
            return
        if len(self._hooks) >= _CANDIDATES:
            return
        if self._filter is None:
            # The hook is gone before the compiled module runs, so what torch warns of cannot happen.
            before = list(warnings.filters)
            warnings.filterwarnings("ignore", message=_COMPILE_WARNING)
            self._filter = next((f for f in warnings.filters if f not in before), None)
        self._search = modules.register_module_forward_pre_hook(self._before)

    def _end_search(self) -> None:
        if self._search is not None:
            self._search.remove()
            self._search = None

    def _drop_filter(self) -> None:
        filters: Any = warnings.filters
        if self._filter is not None and self._filter in filters:
            filters.remove(self._filter)
        self._filter = None

    def _before(self, module: Any, _inputs: Any) -> None:
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return
        self._end_search()
        if id(module) not in self._hooks:
            self._hooks[id(module)] = module.register_forward_hook(self._after)

    def _after(self, module: Any, _inputs: Any, _output: Any) -> None:
        if torch.compiler.is_compiling() or self._dead or threading.get_ident() != self._thread:
            return
        key = id(module)
        if self._root is None:
            self._calls[key] = self._calls.get(key, 0) + 1
            if self._calls[key] < 2:
                # It may have been called to set something up: keep looking for others too.
                self._begin_search()
                return
            self._choose(key)
        if key == self._root and self._wanted(module):
            self._on_step()

    def _choose(self, key: int) -> None:
        self._root = key
        self._end_search()
        self._drop_filter()
        for other, hook in list(self._hooks.items()):
            if other != key:
                hook.remove()
                del self._hooks[other]


class StepHooks:
    """Reports the steps of a program to `sink`. kind: `optimizer`, `forward`, or `auto` for whichever comes.

    Raises ValueError for another kind.
    """

    def __init__(self, sink: StepSink, kind: str = "auto") -> None:
        if kind not in ("auto", "optimizer", "forward"):
            raise ValueError(f"steps are seen by 'auto', 'optimizer' or 'forward', not {kind!r}")
        self._sink = sink
        self._kind = kind
        self._gradient_forwards = 0
        self._optimizer = OptimizerSteps(self._optimizer_step) if kind != "forward" else None
        self._forward = ForwardSteps(sink.step, self._is_step) if kind != "optimizer" else None
        self._only_optimizer = kind == "optimizer"

    def install(self) -> None:
        """Begin to report."""
        if self._optimizer is not None:
            self._optimizer.install()
        if self._forward is not None:
            self._forward.install()

    def remove(self) -> None:
        """Report no more, and leave nothing behind."""
        if self._optimizer is not None:
            self._optimizer.remove()
        if self._forward is not None:
            self._forward.remove()

    def _optimizer_step(self) -> None:
        if not self._only_optimizer:
            self._only_optimizer = True
            if self._forward is not None:
                self._forward.remove()
            self._sink.restart()
        self._sink.step()

    def _is_step(self, module: Any) -> bool:
        if self._kind == "forward" or not torch.is_grad_enabled() or not module.training:
            return True
        self._gradient_forwards += 1
        return self._gradient_forwards > FORWARDS_WITHOUT_OPTIMIZER
