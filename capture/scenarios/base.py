"""What a scenario is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """A parameter on the command line; its type is that of its default. choices: what it may be."""

    name: str
    default: Any
    help: str
    choices: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Expect:
    """What is announced before the run, and checked after it on the kind of device it was written for.

    verdict: what holds the run back, in the words of the report; more than one where it is close.
    device_events: work on the device in each annotation, by median. text: what to look at, a line each.
    """

    verdict: tuple[str, ...]
    device_events: Mapping[str, int] = field(default_factory=dict)
    text: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """A program made ready. step: one step of it, told its number. close: what to tidy up."""

    step: Callable[[int], object]
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Variant:
    """One recording of a scenario, kept as a fixture under `file`.

    values: options that differ from the defaults. why: what it is kept for. wait, warmup, active: steps.
    whole: all steps from the first, which is cold. fresh: needs a process of its own.
    """

    file: str
    why: str
    values: Values = field(default_factory=dict)
    wait: int = 12
    warmup: int = 3
    active: int = 3
    whole: bool = False
    fresh: bool = False
    sync: bool = True
    shapes: bool = False
    stacks: bool = False
    memory: bool = False
    modules: bool = False


@dataclass(frozen=True)
class Scenario:
    """One effect: how to build it, what to expect, and which recordings of it are fixtures.

    build: from option values to work; runs before any profiler. gpus: how many it needs; 0 runs anywhere.
    small: values that make it small enough to be tried on a CPU.
    """

    name: str
    about: str
    build: Callable[[Values], Work]
    expect: Callable[[Values], Expect]
    variants: tuple[Variant, ...]
    options: tuple[Option, ...] = ()
    gpus: int = 1
    small: Values = field(default_factory=dict)

    def shrunk(self, variant: Variant) -> Variant:
        """The same recording with small operands and few steps, to try it out."""
        values = {**variant.values, **self.small}
        active = min(variant.active, 3)
        return replace(variant, values=values, wait=min(variant.wait, 4), warmup=1, active=active)

    def values(self, given: Values) -> dict[str, Any]:
        """All option values: the defaults, and what was given. Raises ValueError for an unknown one."""
        values = {o.name: o.default for o in self.options}
        for name, value in given.items():
            option = next((o for o in self.options if o.name == name), None)
            if option is None:
                raise ValueError(f"{self.name} has no option {name!r}")
            if option.choices is not None and value not in option.choices:
                raise ValueError(f"{name} is one of {', '.join(option.choices)}, not {value!r}")
            values[name] = value
        return values


def default_device() -> Any:
    """The GPU where there is one; scenarios are small enough to be tried on a CPU too."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def synchronize() -> None:
    """Wait for the GPU, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


DTYPES = ("bfloat16", "float16", "float32", "float64")


def dtype_of(name: str) -> Any:
    """The torch type of that name."""
    return getattr(torch, name)


COMPILE_MODES = ("none", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compiled(target: Any, mode: str) -> Any:
    """`target`, compiled unless mode is `none`.

    Compiled code of other scenarios in this process is forgotten first: the counts that name a compiled
    region in the trace begin at nought.
    """
    if mode == "none":
        return target
    torch.compiler.reset()
    return torch.compile(target, mode=None if mode == "default" else mode)
