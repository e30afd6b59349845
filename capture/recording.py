"""`record` and `step`: what a program calls."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capture import output
from capture.recorder import Config, Recorder, current
from capture.schedule import Schedule


def record(
    path: str | os.PathLike[str] = "trace.json.gz",
    *,
    wait: int = 10,
    warmup: int = 3,
    active: int = 5,
    repeat: int = 1,
    whole: bool = False,
    shapes: bool = False,
    stacks: bool = False,
    memory: bool = False,
    modules: bool = False,
    gpu: bool = True,
    sync: bool = True,
    scenario: str | None = None,
    flags: dict[str, Any] | None = None,
    on_ready: Callable[[Any, Path], None] | None = None,
    quiet: bool = False,
) -> Recorder:
    """Record some steps of the enclosed program into `path` (`.json` or `.json.gz`).

    Call `step()` on the result (or `capture.step()`) at the end of each step. The first `wait` steps run
    without any profiler, and the later of them are timed; `warmup` steps let the profiler start up; `active`
    steps are recorded; all that `repeat` times, one file each. `whole` records all of the block instead,
    and needs no steps.

    shapes, stacks, memory, modules: record these too. Off, because each makes CPU times longer than they
    are. gpu: record the device where there is one. sync: wait for the device before the timed and before
    the recorded steps, never inside them; off, the first device events may belong to earlier steps.
    scenario, flags: noted in the trace. on_ready: called with torch's profiler and the file's path.

    In a distributed run each rank writes its own file, with the rank in the name. Whatever fails in here
    is said on standard error, and the program goes on. Raises ValueError for a schedule or a name that
    makes no sense, before anything is run.
    """
    if callable(path):
        raise TypeError("write @record(...) with parentheses and a file name")
    return Recorder(
        Config(
            path=output.check(path),
            schedule=Schedule(wait, warmup, active, repeat),
            whole=whole,
            shapes=shapes,
            stacks=stacks,
            memory=memory,
            modules=modules,
            gpu=gpu,
            sync=sync,
            scenario=scenario,
            flags=dict(flags or {}),
            on_ready=on_ready,
            quiet=quiet,
        )
    )


def step() -> None:
    """A step of the program ended: for the innermost recording, if one is under way; else nothing."""
    if current:
        current[-1].step()
