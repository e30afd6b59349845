"""What every thread did at any instant, put together from what is known of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analyzer.events.schema import Cat
from analyzer.index import activity, first_use, handover, vocabulary
from analyzer.index.causes import USED, Threads
from analyzer.index.tree import take
from analyzer.index.vocabulary import Role

if TYPE_CHECKING:
    import polars as pl

    from analyzer.index.capture import Captures
    from analyzer.index.frames import Frames
    from analyzer.index.host import Host
    from analyzer.index.launching import Launching
    from analyzer.index.tree import Ints
    from analyzer.index.waits import Waits


def build(
    host: Host, frames: Frames, launching: Launching, waits: Waits, overhead: pl.DataFrame, profiler_ns: Ints
) -> Threads:
    """overhead: `Profiler.events`. profiler_ns: the profiler's time in each host row, beside its waits."""
    region = np.isin(host.role, activity.REGION_ROLES)
    operator = (host.cat == Cat.OP) & ~region & (host.role != Role.STEP)
    # A call outside operators and regions is a thing of its own; else it is of the one that makes it.
    inner = host.nearest(operator | region)
    rows = np.arange(host.height, dtype=np.int32)
    unit = np.where(host.is_call & (host.holder == inner) & (inner >= 0), inner, rows).astype(np.int32)
    host_activity = activity.host_activity(host, host.role, host.call, waits)
    plain = np.isin(host_activity.cause, USED)
    own = np.where(plain, np.maximum(host.self_ns - waits.ns - profiler_ns, 0), 0)
    below = host.below(launching.all.astype(np.int64)) > 0
    top = host.nearest(operator & (host.enclosing(operator) < 0))
    in_file = ~host.names.str.starts_with("<").to_numpy()[frames.name]
    frame_roles = vocabulary.classify(host.names, vocabulary.FRAMES)[frames.name]
    return Threads(
        host=host,
        is_call=host.is_call,
        host_activity=host_activity,
        frames=frames,
        frame_activity=activity.frame_activity(frames, frame_roles, in_file.astype(bool)),
        overhead=overhead,
        captures=_captures(host, launching.captures),
        first_use=first_use.share(
            host,
            (unit == rows) & (host.role != Role.STEP),
            unit,
            own,
            host.below(launching.device.launched_ns),
            below,
        ),
        unit=unit,
        quiet=(top >= 0) & ~take(below, top),
        backward=host.names.str.contains(vocabulary.BACKWARD_FRAME).to_numpy()[frames.name].astype(bool),
        partners=handover.find(host, host.engine, host.steps, host.launch_calls, host.process),
    )


def _captures(host: Host, captures: Captures) -> dict[int, pl.DataFrame]:
    """thread -> (ts, end) of the captures that it made, or that autograd's threads launched in."""
    out = {}
    for thread in np.unique(captures.thread):
        mine = np.zeros(len(host.process), bool)
        mine[thread] = True
        took_part = host.engine & (host.process == host.process[thread])
        for one in (thread, *np.nonzero(took_part)[0]):
            out[int(one)] = captures.intervals(mine)
    return out
