"""`Recorder`: a context manager and decorator around torch's profiler."""

import functools
import inspect
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import torch
from torch.profiler import ProfilerAction, ProfilerActivity, profile

from capture import device, output, stamp
from capture.clock import StepClock
from capture.messages import say, spare
from capture.neighbour import Neighbour
from capture.schedule import Schedule

P = ParamSpec("P")
R = TypeVar("R")

#: Recordings under way, the innermost last.
current: list["Recorder"] = []


@dataclass(frozen=True)
class Config:
    """What to record and where to. `on_ready` is called with the stopped profiler and the written file."""

    path: Path
    schedule: Schedule = field(default_factory=Schedule)
    whole: bool = False
    shapes: bool = False
    stacks: bool = False
    memory: bool = False
    modules: bool = False
    gpu: bool = True
    sync: bool = True
    scenario: str | None = None
    flags: dict[str, Any] = field(default_factory=dict)
    on_ready: Callable[[Any, Path], None] | None = None
    quiet: bool = False


class Recorder:
    """One recording, or `repeat` of them. Made by `record`; use it once, in a `with` block.

    files: what was written so far. problems: what went wrong, each also said on standard error.
    steps: how many steps were seen. hint: what to do where no step is seen.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.files: list[Path] = []
        self.problems: list[str] = []
        self.steps = 0
        self.on_done: Callable[[], None] | None = None
        self.hint = "call step() at the end of each step, or record the whole block"
        self._phase = "new"  # new, wait, warmup, active, done
        self._in_phase = 0
        self._cycle = 0
        self._profile: Any = None
        self._unprofiled, self._profiled = StepClock(), StepClock()
        self._wall_us: float | None = None
        self._first_recorded = 0
        self._device: dict[str, Any] = {}
        self._neighbour = Neighbour(self._give_way)
        self._deferred = False
        self._thread = self._process = 0

    # -- the program's side ---------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._phase != "new":
            raise RuntimeError("a recording is used once: call record(...) again for another")
        self._thread, self._process = threading.get_ident(), os.getpid()
        current.append(self)
        with spare("starting the recording", self._fail):
            self._neighbour.watch()
            self._new_cycle()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self in current:
            current.remove(self)
        self.close()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """As a decorator: each call of the function is recorded; `capture.step()` marks its steps."""
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise TypeError("record() decorates no coroutine or generator: use `with record()` inside it")
        config = self.config

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            with Recorder(config):
                return function(*args, **kwargs)

        return recorded

    def step(self) -> None:
        """A step of the program ended. Costs under a microsecond while nothing is recorded."""
        now = time.perf_counter_ns()
        # Other threads and forked workers have steps of their own, and the profiler is bound to one thread.
        if self._phase in ("new", "done") or threading.get_ident() != self._thread or os.getpid() != self._process:
            return
        self.steps += 1
        schedule = self.config.schedule
        if self._phase == "wait" and self._in_phase + 1 < schedule.wait - schedule.timed:
            # Nothing to time yet and nothing that can fail: most steps of a program that waits end here.
            self._in_phase += 1
            return
        with spare("recording", self._fail):
            self._advance(now)

    def restart(self) -> None:
        """Count the wait from here: what was taken for steps so far were none. Ignored once it began."""
        if self._phase == "wait":
            with spare("recording", self._fail):
                self.steps = 0
                self._new_cycle()

    def begin(self) -> None:
        """Leave the wait, and record from now on until `close`: for a window of time instead of steps."""
        if self._phase == "wait":
            self.config = replace(self.config, whole=True)
            with spare("starting the profiler", self._fail):
                self._start()

    def discard(self) -> None:
        """End without writing, and without a word about it."""
        with spare("stopping the profiler", self._problem):
            self._abandon()
        if self in current:
            current.remove(self)
        if self._phase != "done":
            self._done()

    def close(self) -> None:
        """End the recording, and write what there is. Called by leaving the `with` block."""
        if self._phase == "done" or os.getpid() != self._process:
            return
        if self._phase in ("warmup", "active") and threading.get_ident() != self._thread:
            self._problem("closed from another thread than it was started in: nothing is written")
            self._done()
            return
        with spare("ending the recording", self._fail):
            if self._phase == "active":
                if not self.config.whole:
                    self._too_few(f"recorded {self._in_phase} of {self.config.schedule.active} steps")
                self._finish("program ended" if not self.config.whole else None)
            elif self._phase == "warmup":
                self._too_few("the program ended while the profiler was warming up: nothing is recorded")
                self._abandon()
            elif self._phase == "wait" and not self.config.whole:
                self._too_few("the program ended before the recording began: nothing is recorded")
        self._done()

    # -- phases ---------------------------------------------------------------------------------

    def _advance(self, now: int) -> None:
        schedule = self.config.schedule
        self._in_phase += 1
        if self._phase == "wait":
            self._unprofiled.lap(now)
            if self._in_phase >= schedule.wait:
                self._end_wait()
            elif self._in_phase == schedule.wait - schedule.timed:
                self._settle()
                self._unprofiled.start()
        elif self._phase == "warmup":
            if self._in_phase >= schedule.warmup:
                self._settle()
                self._enter_active()
            with self._neighbour.ours():
                self._profile.step()
            self._profiled.resume()
        elif self.config.whole:
            self._profiled.lap(now)
        else:
            self._profiled.lap(now)
            if self._in_phase >= schedule.active:
                self._finish(None)
                self._cycle += 1
                if self._cycle < schedule.repeat:
                    self._new_cycle()
                else:
                    self._done()
                return
            with self._neighbour.ours():
                self._profile.step()
            self._profiled.resume()

    def _new_cycle(self) -> None:
        self._phase, self._in_phase, self._wall_us = "wait", 0, None
        self._unprofiled, self._profiled = StepClock(), StepClock()
        if self.config.whole or self.config.schedule.wait == 0:
            self._start()

    def _end_wait(self) -> None:
        if self._neighbour.busy:
            # The times of these steps are not the unprofiled program's either, so all of it begins again.
            if not self._deferred:
                self._note("the program is profiling itself: waiting until it has finished")
                self._deferred = True
            self._new_cycle()
            return
        if self._unprofiled.running:
            self._settle()
            self._wall_us = self._unprofiled.mean_us()
            self._unprofiled.stop()
        self._start()

    def _start(self) -> None:
        if self._neighbour.busy:
            self._problem("the program is profiling itself already: nothing is recorded")
            self._done()
            return
        config = self.config
        warmup = 0 if config.whole else config.schedule.warmup
        first = self.steps

        def plan(step: int) -> ProfilerAction:
            return ProfilerAction.WARMUP if step < first + warmup else ProfilerAction.RECORD

        # Asked for now: asking while the profiler runs would be recorded, and lengthen a step.
        self._device = device.describe()
        with self._neighbour.ours():
            profiler: Any = profile(
                activities=self._activities(),
                schedule=None if config.whole else plan,
                record_shapes=config.shapes,
                with_stack=config.stacks,
                profile_memory=config.memory,
                with_modules=config.modules,
            )
            if not config.whole:
                # Steps in the trace carry the numbers they have in the program.
                profiler.step_num = first
                profiler.current_action = plan(first)
                if hasattr(profiler, "_prev_schedule_action"):
                    profiler._prev_schedule_action = profiler.current_action
            profiler.__enter__()
        self._profile, self._in_phase = profiler, 0
        if warmup:
            self._phase = "warmup"
        else:
            self._enter_active()

    def _enter_active(self) -> None:
        self._phase, self._in_phase = "active", 0
        self._first_recorded = self.steps
        self._profiled.start()

    def _finish(self, cut_short: str | None) -> None:
        """Stop the profiler, stamp the trace and write it."""
        config, profiler = self.config, self._profile
        step_annotation = getattr(profiler, "step_rec_fn", None)
        if step_annotation is not None:
            # The last step ends here, and not after all that follows.
            step_annotation.__exit__(None, None, None)
            profiler.step_rec_fn = None
        if self._device.get("device") is None:
            # The program started CUDA only after we had started the profiler.
            self._device = device.describe()
        facts = {
            **self._device,
            "steps_before": self._first_recorded,
            "wait": config.schedule.wait,
            "warmup": config.schedule.warmup,
            "whole": config.whole,
            "cut_short": cut_short,
        }
        if (where := output.rank()) is not None:
            facts["rank"], facts["world_size"] = where
        flags = {
            "shapes": config.shapes,
            "stacks": config.stacks,
            "memory": config.memory,
            "modules": config.modules,
            **config.flags,
        }
        text = stamp.as_json(
            stamp.build(
                scenario=config.scenario,
                flags=flags,
                unprofiled=self._unprofiled,
                unprofiled_wall_us=self._wall_us,
                profiled=self._profiled,
                facts=facts,
            )
        )
        with self._neighbour.ours():
            with spare("stamping the trace", self._problem):
                # Before the stop: the profiler takes what it knows into the trace there.
                profiler.add_metadata_json(stamp.KEY, text)
            self._profile = None
            profiler.__exit__(None, None, None)
        path = output.name_for(config.path, self._cycle, config.schedule.repeat)
        output.write(path, profiler.export_chrome_trace)
        self.files.append(path)
        self._note(self._summary(path))
        if config.on_ready is not None:
            config.on_ready(profiler, path)

    def _abandon(self) -> None:
        """Stop the profiler, and write nothing."""
        profiler, self._profile = self._profile, None
        if profiler is not None:
            with self._neighbour.ours():
                profiler.__exit__(None, None, None)

    def _done(self) -> None:
        self._phase = "done"
        self._neighbour.unwatch()
        callback, self.on_done = self.on_done, None
        if callback is not None:
            with spare("removing the hooks", self._problem):
                callback()

    def _give_way(self) -> None:
        """The program starts a profiler of its own; there is room for one."""
        if self._phase not in ("warmup", "active"):
            return
        if self._phase == "active" and (self._in_phase or self.config.whole):
            after = "here" if self.config.whole else f"after {self._in_phase} steps"
            self._problem(f"the program starts its own profiler: this recording ends {after}")
            with spare("ending the recording", self._fail):
                self._finish("the program started its own profiler")
        else:
            self._problem("the program starts its own profiler: nothing is recorded")
            with spare("stopping the profiler", self._fail):
                self._abandon()
        self._done()

    def _fail(self, text: str) -> None:
        self._problem(text)
        if self._profile is not None:
            with spare("stopping the profiler", self._problem):
                self._abandon()
        if self._phase != "done":
            self._done()

    # -- small things ---------------------------------------------------------------------------

    def _activities(self) -> list[ProfilerActivity]:
        profiler: Any = torch.profiler
        known = profiler.supported_activities()
        cpu = ProfilerActivity.CPU
        others = sorted((a for a in known if a != cpu), key=str) if self.config.gpu else []
        if not torch.cuda.is_available():
            # A torch built for CUDA offers it without a device too, and the profiler would warn.
            others = [a for a in others if a != ProfilerActivity.CUDA]
        return [cpu, *others]

    def _settle(self) -> None:
        """Let the device catch up, so that timed and recorded steps both begin with nothing queued."""
        if self.config.sync:
            device.wait_for_device()

    def _too_few(self, what: str) -> None:
        schedule = self.config.schedule
        self._problem(
            f"{what}. {self.steps} steps were seen; the schedule needs {schedule.steps} "
            f"(wait {schedule.wait}, warmup {schedule.warmup}, active {schedule.active}, "
            f"repeat {schedule.repeat})" + ("" if self.steps else f"; {self.hint}")
        )

    def _summary(self, path: Path) -> str:
        text = f"wrote {path} ({path.stat().st_size / 1000:,.0f} KB"
        if not self.config.whole:
            text += f", {len(self._profiled.laps_ns)} steps"
        text += ")"
        before, during = self._unprofiled.median_us(), self._profiled.median_us()
        if before and during:
            text += f"; host time a step {before:,.0f} µs unprofiled, {during:,.0f} µs profiled"
            text += f" (×{during / before:.2f})"
        return text

    def _note(self, text: str) -> None:
        if not self.config.quiet:
            say(text)

    def _problem(self, text: str) -> None:
        self.problems.append(text)
        say(text)
