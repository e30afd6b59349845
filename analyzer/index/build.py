"""All that analyses share, each thing by an object of its own, made when first asked for, once.

Rows of `device.frame` and rows of the `host` tree are the two index spaces; columns that hold a row say whose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.events.schema import Cat, Trace
from analyzer.index import (
    activity,
    earlier_work,
    folding,
    frames,
    host,
    phases,
    recording,
    threads,
    trust,
    waits,
    window,
)
from analyzer.index.account import Account
from analyzer.index.device import Device
from analyzer.index.engines import Engines, known, load
from analyzer.index.frames import Frames
from analyzer.index.host import Host
from analyzer.index.idle import Idle
from analyzer.index.launching import Launching
from analyzer.index.places import Places
from analyzer.index.profiler import Profiler
from analyzer.index.tree import take
from analyzer.index.vocabulary import Call, Role
from analyzer.index.window import Window

if TYPE_CHECKING:
    from analyzer.index.bound import Verdict
    from analyzer.index.causes import Threads
    from analyzer.index.tree import Ints, Mask
    from analyzer.report.findings import Warning


@dataclass(frozen=True)
class Chains:
    """A trace with its structure. See `build`."""

    trace: Trace  # its host frame holds the overhead lane alone
    host: Host
    frames: Frames
    engines: Engines

    @cached_property
    def device(self) -> Device:
        return Device(self.trace, self.host)

    @cached_property
    def launching(self) -> Launching:
        return Launching(self.host, self.device)

    @cached_property
    def profiler(self) -> Profiler:
        return Profiler(self.trace.host, self.host)

    @cached_property
    def waits(self) -> waits.Waits:
        """Blocking waits of each host row, whatever its name; see `waits.find`."""
        queue_full, inside = self.profiler.queue_full, self.profiler.inside
        return waits.find(self.host, self.device.frame, queue_full, inside)

    @cached_property
    def profiler_ns(self) -> Ints:
        """The profiler's time in each host row, beside its waits (ns)."""
        return self.profiler.beside(self.waits.ns)

    @cached_property
    def places(self) -> Places:
        return Places(self.host, folding.fold(self))

    @cached_property
    def window(self) -> Window | None:
        """What the verdict speaks of; None where there is no event at all."""
        host = self.host
        return window.find(host, host.call, self.launching.all, host.steps, self.device.frame, self.trace.window)

    @cached_property
    def earlier_work(self) -> earlier_work.EarlierWork:
        """What the device worked through that was launched before the window."""
        waiting = np.nonzero((self.host.call == Call.WAIT) | self.waits.blocked)[0].astype(np.int32)
        part = self.trace.window is not None
        return earlier_work.find(self.host, self.device.frame, waiting, self.window, part=part)

    @cached_property
    def threads(self) -> Threads:
        """What every thread did at any instant."""
        parts = self.host, self.frames, self.launching, self.waits
        return threads.build(*parts, self.profiler.events, self.profiler_ns)

    @cached_property
    def idle(self) -> Idle:
        sides = self.host, self.device, self.launching, self.profiler
        return Idle(*sides, self.threads, self.window, self.earlier_work)

    @cached_property
    def autotuning(self) -> Mask:
        """Device rows that a compiler launched to try them. Shape (device rows,)."""
        launch = self.device.launch
        compiling = self.threads.host_activity.cause == activity.Cause.COMPILE
        mine: Mask = (launch >= 0) & take(compiling, launch).astype(bool)
        if self.frames.height:
            rest = np.nonzero((launch >= 0) & ~mine)[0]
            frame = self.frames.open_at(self.host, launch[rest])
            mine[rest] = (frame >= 0) & (self.threads.frame_activity.cause[frame] == activity.Cause.COMPILE)
        return mine

    @cached_property
    def account(self) -> Account:
        return Account(self.trace, self.window, self.earlier_work, self.autotuning, self.idle)

    @property
    def verdict(self) -> Verdict:
        return self.account.verdict

    @cached_property
    def phases(self) -> phases.Phases:
        """The run's steps and their kinds."""
        return phases.phases(self)

    @cached_property
    def recording(self) -> recording.Recording:
        """How far the figures can be trusted."""
        return recording.find(self.host, self.launching, self.earlier_work, self.device.frame, self.account.parts)

    @cached_property
    def warnings(self) -> tuple[Warning, ...]:
        return tuple(trust.warnings(self))


def build(trace: Trace, engines: str | None = None) -> Chains:
    """Nest the host events of a trace; all else follows on demand.

    engines  file with rows before those of the known table. Raises TraceError where it is none.

    Of the trace's own host frame only the overhead lane is kept: the trees hold the rest, in their order.
    """
    cat, names = pl.col("cat"), trace.names
    work = [int(Cat.OP), int(Cat.ANNOTATION), int(Cat.RUNTIME), int(Cat.DRIVER)]
    return Chains(
        trace=replace(trace, host=trace.host.filter(cat == int(Cat.OVERHEAD))),
        host=host.build(trace.host.filter(cat.is_in(work)), names, trace.threads),
        frames=frames.build(trace.host.filter(cat == int(Cat.PYTHON)), names),
        engines=known() if engines is None else load(engines),
    )


__all__ = ["Call", "Chains", "Role", "Window", "build"]
