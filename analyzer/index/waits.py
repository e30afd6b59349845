"""Blocking waits: host time that a call spends waiting for the device or for another thread, whatever its name.

The synchronize calls and copies that block say so by name. Any other call is told by what happened meanwhile: a
launch behind a full queue (about a thousand entries) returns as some work ends and long before its own begins;
with `CUDA_LAUNCH_BLOCKING=1` nearly every launch contains its own kernel; and a call that needs the driver's lock
lies inside another thread's `cudaHostAlloc` or `cudaFree`. Such a host is ahead of the device: no tax, no fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import vocabulary
from analyzer.index.intervals import Cover, cover
from analyzer.index.vocabulary import Call

if TYPE_CHECKING:
    from analyzer.index.activity import Codes
    from analyzer.index.host import Host
    from analyzer.index.tree import Ints, Mask, Tree

#: A blocked call lasts this long and this many times its usual: below, a scheduler's hiccup looks alike (a minimum
#: of 20 µs hit 28 calls of a training run whose queue was never full).
BLOCKED_NS, BLOCKED_RATIO = 50_000, 3
#: The device works for this share of a blocked call, and some work ends this shortly before its return: the host
#: is woken by an interrupt.
BUSY, WOKEN_NS = 0.9, 30_000
#: A call held up by another thread's lock; this share of it lies inside the other's call.
LOCKED_NS, LOCKED_RATIO, LOCKED_SHARE = 100_000, 10, 0.8
#: `CUDA_LAUNCH_BLOCKING` is of the process: this share of its launches, and at least so many, contain their kernels.
LAUNCH_BLOCKING, LAUNCHES = 0.9, 5


@dataclass(frozen=True)
class Waits:
    """Per host row; times in ns.

    ns           the wait; 0 inside another wait, which is the outer one's time.
    pageable     copy calls with pageable memory on one side: the host takes part in the copy.
    synchronous  copy calls that return when the copy is done, by name.
    blocked      calls that waited in a full launch queue.
    locked       calls that waited for another thread's allocation.
    """

    ns: Ints
    pageable: Mask
    synchronous: Mask
    blocked: Mask
    locked: Mask

    @cached_property
    def rows(self) -> Ints:
        """Host rows that wait, but for those in a full launch queue: such a host is ahead of the device."""
        return np.nonzero((self.ns > 0) & ~self.blocked)[0]


@dataclass(frozen=True)
class _Calls:
    """What the rules look at. `process`, `device`: of each host row (device -1: nothing recorded)."""

    host: Tree
    call: Codes
    length: Ints
    process: Ints
    profiler: Ints
    launched: Mask
    work_start: Ints
    work_end: Ints
    device: Ints


def find(host: Host, device: pl.DataFrame, queue_full: Ints, profiler: Ints) -> Waits:
    """device: rows as in `Device.frame`. queue_full: host rows with a `Command Buffer Full` record.

    profiler  the profiler's time in each host row (ns).
    """
    calls = _calls(host, device, profiler)
    pageable, synchronous, copy_ns = _copies(calls, host.is_call, device, host.names)
    wait = np.where(host.call == Call.WAIT, calls.length, 0)
    np.maximum(wait, copy_ns, out=wait)
    np.maximum(wait, _launch_blocking(calls), out=wait)
    plain = host.is_call & (wait == 0) & ~pageable & ~synchronous
    blocked, usual = _blocked(calls, plain, device, queue_full)
    locked = _locked(calls, plain & ~blocked)
    held = blocked | locked
    wait[held] = np.maximum(calls.length - usual - profiler, 0)[held]
    return Waits(np.where(host.enclosing(wait > 0) >= 0, 0, wait), pageable, synchronous, blocked, locked)


def _calls(host: Host, device: pl.DataFrame, profiler: Ints) -> _Calls:
    work = (
        device.filter(pl.col("launch").is_not_null())
        .group_by("launch")
        .agg(start=pl.col("ts").min(), end=pl.col("end").max(), device=pl.col("device").first())
    )
    row = work["launch"].to_numpy()

    def spread(values: pl.Series, default: int) -> Ints:
        out = np.full(host.height, default, np.int64)
        out[row] = values.to_numpy()
        return out

    device_of = spread(work["device"].cast(pl.Int64), -1)
    return _Calls(
        host=host,
        call=host.call,
        length=host.end - host.start,
        process=host.process[host.thread],
        profiler=profiler,
        launched=device_of >= 0,
        work_start=spread(work["start"], 0),
        work_end=spread(work["end"], 0),
        device=device_of,
    )


def _copies(calls: _Calls, is_call: Mask, device: pl.DataFrame, names: pl.Series) -> tuple[Mask, Mask, Ints]:
    """(pageable, synchronous by name, the blocking part) of copy calls.

    A copy to the host from or to memory that the device cannot reach returns when it is done (CUDA's "API
    synchronization behavior"). Elsewhere the clocks decide: the call returned after the copy ended, or, where its
    name says that it waits, so shortly before that the two clocks merely disagree.
    """
    host = calls.host
    pageable = np.zeros(host.height, bool)
    wait = np.zeros(host.height, np.int64)
    synchronous = is_call & vocabulary.matches(names, vocabulary.SYNCHRONOUS_COPY)[host.name]
    copies = device.filter(pl.col("launch").is_not_null() & (pl.col("cat") == int(Cat.MEMCPY)))
    if not copies.height:
        return pageable, synchronous, wait
    name = copies["name"].to_numpy()
    staged = vocabulary.matches(names, vocabulary.PAGEABLE)[name]
    home = vocabulary.matches(names, vocabulary.TO_HOST)[name]
    row, begun, done = copies["launch"].to_numpy(), copies["ts"].to_numpy(), copies["end"].to_numpy()
    pageable[row[staged]] = True
    by_name = synchronous[row]
    early = done - host.end[row]
    waits = (staged | by_name) & ((early <= 0) | (home & (begun < host.end[row])))
    waits |= by_name & (early <= WOKEN_NS) & (begun < host.end[row])
    part = np.minimum(np.maximum(done - host.start[row], 0), calls.length[row])
    np.maximum.at(wait, row, np.where(waits, part, 0))
    return pageable, synchronous, wait


def _launch_blocking(calls: _Calls) -> Ints:
    """Where launches contain their own kernels: the time in which these ran."""
    host = calls.host
    launches = calls.launched & (calls.call == Call.LAUNCH)
    inside = launches & (calls.work_start >= host.start) & (calls.work_end <= host.end)
    count = int(calls.process.max()) + 1 if len(calls.process) else 0
    every = np.bincount(calls.process[launches], minlength=count)
    blocking = (every >= LAUNCHES) & (np.bincount(calls.process[inside], minlength=count) >= LAUNCH_BLOCKING * every)
    return np.where(inside & blocking[calls.process], calls.work_end - calls.work_start, 0)


def _blocked(calls: _Calls, plain: Mask, device: pl.DataFrame, queue_full: Ints) -> tuple[Mask, Ints]:
    """Calls that waited for room in a launch queue, and the usual duration of each row's name (ns)."""
    host = calls.host
    noted = np.zeros(host.height, bool)
    noted[queue_full] = True
    noted &= plain
    long = np.nonzero(plain & calls.launched & (calls.length >= BLOCKED_NS) & (calls.work_start >= host.end) & ~noted)[
        0
    ]
    suspect = noted.copy()
    for one in np.unique(calls.device[long]):
        rows = long[calls.device[long] == one]
        work = device.filter(pl.col("device") == int(one))
        busy = cover(work).within(host.start[rows], host.end[rows])
        ends = np.sort(work["end"].to_numpy())
        latest = ends[np.maximum(np.searchsorted(ends, host.end[rows], "right") - 1, 0)]
        woken = (latest <= host.end[rows]) & (latest >= host.end[rows] - WOKEN_NS)
        suspect[rows] = woken & (busy >= BUSY * calls.length[rows])
    usual = _usual(calls, plain, suspect)
    return suspect & (noted | (calls.length >= BLOCKED_RATIO * usual)), usual


def _usual(calls: _Calls, plain: Mask, suspect: Mask) -> Ints:
    """Median duration of the calls of each row's name that are no suspects; of all launches where all are."""
    name = calls.host.name
    if not suspect.any() and not (plain & (calls.length >= LOCKED_NS)).any():
        return np.zeros(calls.host.height, np.int64)
    wanted = np.zeros(int(name.max()) + 1 if len(name) else 0, bool)
    wanted[name[suspect | (plain & (calls.length >= LOCKED_NS))]] = True
    rows = plain & wanted[name]
    frame = pl.DataFrame({"name": name[rows], "ns": calls.length[rows], "clear": ~suspect[rows]})
    clear = frame.filter("clear")
    known = clear.group_by("name").agg(pl.col("ns").median())
    rest = np.median(clear["ns"].to_numpy()) if clear.height else frame["ns"].to_numpy().min(initial=0)
    of_name = np.full(len(wanted), int(rest), np.int64)
    of_name[known["name"].to_numpy()] = known["ns"].cast(pl.Int64).to_numpy()
    usual: Ints = of_name[name] if len(name) else np.zeros(0, np.int64)
    return usual


def _locked(calls: _Calls, plain: Mask) -> Mask:
    """Calls that lie inside another thread's long allocation, and take many times their usual."""
    host = calls.host
    out = np.zeros(host.height, bool)
    holding = np.nonzero((calls.call == Call.ALLOCATE) & (calls.length >= LOCKED_NS))[0]
    if not len(holding):
        return out
    usual = _usual(calls, plain, np.zeros(host.height, bool))
    long = np.nonzero(
        plain & (calls.call != Call.ALLOCATE) & (calls.length >= LOCKED_NS) & (calls.length >= LOCKED_RATIO * usual)
    )[0]
    for thread in np.unique(host.thread[long]):
        rows = long[host.thread[long] == thread]
        others = holding[(host.thread[holding] != thread) & (calls.process[holding] == calls.process[rows[0]])]
        if len(others):
            held: Cover = cover(pl.DataFrame({"ts": host.start[others], "end": host.end[others]}))
            out[rows] = held.within(host.start[rows], host.end[rows]) >= LOCKED_SHARE * calls.length[rows]
    return out
