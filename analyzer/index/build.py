"""All that analyses share: the host tree, linked device work, idle intervals and their causes.

Everything is computed when first asked for, once. Rows of `device` and rows of the `host` tree are
the two index spaces; columns that hold a row say whose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from analyzer.events.schema import HOST_CALLS, Cat, Trace
from analyzer.index import (
    activity,
    capture,
    causes,
    cells,
    contention,
    earlier_work,
    exposure,
    first_use,
    folding,
    handover,
    intervals,
    kinds,
    overhead,
    parts,
    paths,
    pauses,
    recording,
    regions,
    tree,
    vocabulary,
    waits,
    window,
)
from analyzer.index.bound import Verdict, judge
from analyzer.index.links import Links, link
from analyzer.index.timeline import flatten
from analyzer.index.tree import take
from analyzer.index.vocabulary import Call, Role
from analyzer.index.window import Window
from analyzer.report.findings import Warning

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.activity import Codes
    from analyzer.index.tree import Ints, Mask, Rows, Tree


#: What a thread of the autograd engine runs at its top: hooks and callbacks come beside its own functions.
ENGINE_SHARE = 0.8


@dataclass(frozen=True)
class Chains:
    """A trace with its structure. See `build`."""

    trace: Trace  # its host frame holds the overhead lane alone
    host: Tree  # operators, annotations and host calls
    frames: Tree  # Python frames, a tree of their own: their times are coarser and may cross operators'

    # -- names ------------------------------------------------------------------------------------

    @cached_property
    def name_role(self) -> Codes:
        return vocabulary.classify(self.trace.names, vocabulary.ROLES)

    @cached_property
    def name_call(self) -> Codes:
        return vocabulary.classify(self.trace.names, vocabulary.CALLS)

    @cached_property
    def role(self) -> Codes:
        """`vocabulary.Role` of each host row."""
        return activity.roles_of(self.host, self.name_role)

    @cached_property
    def call(self) -> Codes:
        """`vocabulary.Call` of each host row."""
        return activity.calls_of(self.host, self.name_call)

    @cached_property
    def cat(self) -> npt.NDArray[np.uint8]:
        return self.host.frame["cat"].to_numpy()

    @cached_property
    def is_call(self) -> Mask:
        return np.isin(self.cat, HOST_CALLS)

    def text(self, ids: pl.Series) -> pl.Series:
        """Names of ids; null for -1."""
        return self.trace.names.gather(ids.set(ids < 0, None))

    @cached_property
    def folded(self) -> pl.Series:
        """Names, alike annotations as one; see `folding.fold`."""
        return folding.fold(self)

    @cached_property
    def places(self) -> pl.Series:
        """Names as places: all profiler steps are one, all instances of a module's class, and annotations that
        differ in numbers only where they launch the same work.

        What happens in each of them adds up.
        """
        steps = self.folded.str.replace(r"^(ProfilerStep)#\d+$", "$1")
        return steps.str.replace(r"^(nn\.Module: .+?)_\d+$", "$1")

    @cached_property
    def path_id(self) -> Ints:
        """Of each host row, a number that is equal for equal paths of places."""
        place = self.places.rank("dense").cast(pl.Int64).to_numpy()
        return paths.number(self.host, place[self.host.name])

    def host_path(self, row: int) -> list[int]:
        """Rows from a host row up to the top; [] for -1."""
        rows: list[int] = []
        while row >= 0:
            rows.append(row)
            row = int(self.host.parent[row])
        return rows

    def path(self, row: int) -> tuple[str, ...]:
        """Places from the top down to a host row; () for -1."""
        rows = self.host_path(row)
        return tuple(self.places.gather(self.host.frame["name"].gather(rows[::-1])).to_list())

    # -- device -----------------------------------------------------------------------------------

    @cached_property
    def device_properties(self) -> dict[int, Mapping[str, Any]]:
        """`deviceProperties` by device number, those of a file that makes sense only."""
        return {d["id"]: d for d in self.trace.header.devices if type(d.get("id")) is int}

    def device_name(self, device: int) -> str | None:
        """None where nothing says it. ROCm numbers its devices otherwise than its properties: one name is all's."""
        known = self.device_properties
        names = [d.get("name") for d in ([known[device]] if device in known else known.values())]
        name = names[0] if len(set(map(str, names))) == 1 else None
        return name if isinstance(name, str) and name else None

    @cached_property
    def _clipped(self) -> pl.DataFrame:
        return intervals.clip_overruns(self.trace.device)

    @cached_property
    def links(self) -> Links:
        return link(self.host.frame, self._clipped, self.trace.threads)

    @cached_property
    def device(self) -> pl.DataFrame:
        """Device work, by device and start: `schema.DEVICE` with

        end, clipped     ns; `dur` and `end` are after clipping
        launch           host row of the launching call, null: unlinked
        frontier         latest end of earlier work on the device, null for the first
        stream_frontier  the same on its stream
        kind             of the work, as `kinds.kinds` has it
        communication    bool: a collective's kernel, or a copy between devices
        """
        work = self._clipped.with_columns(self.links.launch.alias("launch"))
        work = intervals.with_frontier(work, ["device", "stream"]).rename({"frontier": "stream_frontier"})
        work = intervals.with_frontier(work, ["device"])
        launch = work["launch"].fill_null(-1).to_numpy()
        holder = np.where(launch >= 0, take(self.holder, launch), -1)
        operator = pl.Series(np.where(holder >= 0, take(self.host.name, holder), -1).astype(np.int32))
        recorded = (work["collective"] >= 0) & (work["cat"] == int(Cat.KERNEL))
        kind = kinds.kinds(work, self.trace.names, operator, recorded.to_numpy())
        return work.with_columns(kind=kind, communication=kind == "communication")

    @cached_property
    def launches(self) -> pl.DataFrame:
        """One row a call that launched device work:

        launch            host row
        first             device row of its first work; events: how many it launched
        work_start        start of that first work (ns); stream_frontier as in `device`
        device_ns         sum of durations
        """
        return (
            self.device.with_row_index("row")
            .filter(pl.col("launch").is_not_null())
            .sort("launch", "ts", maintain_order=True)
            .group_by("launch", maintain_order=True)
            .agg(
                first=pl.col("row").first(),
                events=pl.len().cast(pl.Int64),
                work_start=pl.col("ts").first(),
                stream_frontier=pl.col("stream_frontier").first(),
                device_ns=pl.col("dur").sum(),
            )
        )

    @property
    def kind(self) -> pl.Series:
        """Kind of each device row; see `kinds.kinds`."""
        return self.device["kind"]

    @cached_property
    def skewed(self) -> int:
        """Device events that start before their launch call: the clocks disagree."""
        linked = self.device.filter(pl.col("launch").is_not_null())
        return int((linked["ts"].to_numpy() < self.host.start[linked["launch"].to_numpy()]).sum())

    def modules(self, rows: Ints) -> npt.NDArray[np.int32]:
        """Name id of the `nn.Module` whose frame is open when each host row starts; -1: none recorded."""
        out = np.full(len(rows), -1, np.int32)
        if not self.frames.height:
            return out
        of_name = self.trace.names.str.starts_with("nn.Module: ").to_numpy()
        module = self.frames.nearest(of_name[self.frames.name])
        threads = self.host.thread[rows]
        for thread in np.unique(threads):
            mine = threads == thread
            open_ = flatten(self.frames, *self.frames.rows_of(int(thread))).at(self.host.start[rows[mine]])
            found = np.where(open_ >= 0, module[open_], -1)
            out[mine] = np.where(found >= 0, self.frames.name[found], -1)
        return out

    @cached_property
    def direct_device_ns(self) -> Ints:
        """Device time that each host row launched itself (calls only)."""
        return self._scatter("device_ns")

    @cached_property
    def direct_device_events(self) -> Ints:
        return self._scatter("events")

    def _scatter(self, column: str) -> Ints:
        out = np.zeros(self.host.height, np.int64)
        out[self.launches["launch"].to_numpy()] = self.launches[column].to_numpy()
        return out

    # -- host -------------------------------------------------------------------------------------

    @cached_property
    def is_launch(self) -> Mask:
        """Calls that launched device work that was recorded."""
        return self.direct_device_events > 0

    @cached_property
    def unrecorded(self) -> Mask:
        """Launch calls of kernels or graphs without any device record, on a trace that has device work.

        Calls after the last launch that was recorded are left out: there the recording just ended. Captured ones
        run nothing.
        """
        recorded = self.host.start[self.is_launch]
        if not len(recorded):
            return np.zeros(self.host.height, bool)
        lost = self._launch_calls & ~self.is_launch & ~self.captures.captured
        return np.asarray(lost & (self.host.start < recorded.max()))

    @cached_property
    def _launch_calls(self) -> Mask:
        """Calls that launch a kernel or a graph by their name."""
        return np.isin(self.call, (Call.LAUNCH, Call.GRAPH))

    @cached_property
    def captures(self) -> capture.Captures:
        """Graph captures, and the launches that they captured."""
        silent = self._launch_calls & ~self.is_launch
        return capture.find(self.host, self.call, silent, self.is_launch, self.process_of_thread)

    @cached_property
    def waits(self) -> waits.Waits:
        """Blocking waits of each host row, whatever its name; see `waits.find`."""
        return waits.find(
            self.host,
            self.call,
            self.is_call,
            self.device,
            self.trace.names,
            self._queue_full,
            self._profiler_inside,
            self.process_of_thread[self.host.thread],
        )

    @property
    def wait_ns(self) -> Ints:
        """Blocking wait of each host row (ns); a wait inside a wait is the outer one's time."""
        return self.waits.ns

    @cached_property
    def waiting(self) -> Ints:
        """Host rows that wait, but for those in a full launch queue: such a host is ahead of the device."""
        return np.nonzero((self.wait_ns > 0) & ~self.waits.blocked)[0]

    @property
    def pageable(self) -> Mask:
        return self.waits.pageable

    @cached_property
    def _queue_full(self) -> Ints:
        """Host rows for which the profiler noted that the launch queue was full."""
        rows = self.trace.host
        noted = rows.filter(self._is_queue_full.gather(rows["name"]))
        found = overhead.assign(noted, self._is_queue_full, self.host)["host"].to_numpy()
        return np.unique(found[found >= 0]).astype(np.int64)

    @cached_property
    def _is_queue_full(self) -> pl.Series:
        return pl.Series(vocabulary.matches(self.trace.names, vocabulary.QUEUE_FULL))

    @cached_property
    def overhead(self) -> pl.DataFrame:
        """Profiler and loading events, each with the host row it fell into; see `overhead.assign`."""
        rows = self.trace.host
        own = pl.Series(vocabulary.matches(self.trace.names, vocabulary.PROFILER_OVERHEAD))
        return overhead.assign(rows.filter(~self._is_queue_full.gather(rows["name"])), own, self.host)

    @cached_property
    def _profiler_inside(self) -> Ints:
        """The profiler's time that fell into each host row itself (ns)."""
        mine = self.overhead.filter(pl.col("profiler") & (pl.col("host") >= 0))
        merged = intervals.union_length(mine, ["host"])
        out = np.zeros(self.host.height, np.int64)
        out[merged["host"].to_numpy()] = merged["length"].to_numpy()
        return out

    @cached_property
    def profiler_ns(self) -> Ints:
        """The same, at most the row's duration.

        What it did while the row waited anyway is the wait's, so that nobody takes it out twice.
        """
        inside, wait = self._profiler_inside, self.wait_ns
        beside = np.maximum(self.host.self_ns - wait, 0)
        return np.where(wait > 0, np.minimum(inside, beside), inside)

    @cached_property
    def holder(self) -> npt.NDArray[np.int32]:
        """For each host row the operator or annotation that it belongs to: itself, or a call's caller; -1."""
        return self.host.nearest(~self.is_call)

    def by_holder(self, values: Ints) -> Ints:
        """Move what host calls have to the operator or annotation that makes them. Shape (rows,)."""
        held = self.holder >= 0
        return np.bincount(
            self.holder[held], weights=values[held].astype(np.float64), minlength=self.host.height
        ).astype(np.int64)

    @cached_property
    def own_ns(self) -> Ints:
        """Self time of each operator with the host calls that it makes directly (ns); 0 for calls."""
        return self.by_holder(self.host.self_ns)

    @cached_property
    def steps(self) -> Ints:
        """Host rows of the profiler's steps, in time order."""
        steps = self.role == Role.STEP
        annotated = steps & (self.cat == Cat.ANNOTATION)
        # Old Kineto files have them as operators.
        rows = np.nonzero(annotated if annotated.any() else steps & (self.cat == Cat.OP))[0]
        return rows[np.argsort(self.host.start[rows], kind="stable")]

    @cached_property
    def process_of_thread(self) -> Ints:
        """Of each thread its process, as a small number: what one does, it does for itself alone."""
        return self.trace.threads["pid"].rank("dense").cast(pl.Int64).to_numpy()

    @cached_property
    def engine(self) -> Mask:
        """Threads of the autograd engine: what they run at the top is nearly all its own. Shape (threads,)."""
        host = self.host
        top = (host.parent < 0) & ~self.is_call
        own = self.trace.names.str.contains(vocabulary.ENGINE).to_numpy()[host.name]
        own |= (host.frame["fwd_thread"].fill_null(0) > 0).to_numpy()
        count = self.trace.threads.height
        theirs = np.bincount(host.thread[top & own], minlength=count)
        every = np.bincount(host.thread[top & (self.cat == Cat.OP)], minlength=count)
        steps = np.bincount(host.thread[self.steps], minlength=count)
        return np.asarray((theirs > 0) & (theirs >= ENGINE_SHARE * every) & (steps == 0))

    @cached_property
    def regions(self) -> pl.DataFrame:
        """Calls of compiled regions, nested ones too; see `regions.SCHEMA`."""
        dynamo = self.trace.names.str.contains(regions.REGION).to_numpy()[self.host.name]
        return regions.find(self.host, self.role, dynamo)

    # -- time -------------------------------------------------------------------------------------

    @cached_property
    def window(self) -> Window | None:
        """What the verdict speaks of; None where there is no event at all."""
        launching = self._launch_calls | self.is_launch
        return window.find(self.host, self.call, launching, self.steps, self.device)

    @cached_property
    def earlier_work(self) -> earlier_work.EarlierWork:
        """What the device worked through that was launched before the window."""
        waiting = np.nonzero((self.call == Call.WAIT) | self.waits.blocked)[0].astype(np.int32)
        return earlier_work.find(self.host, self.device, waiting, self.window)

    @cached_property
    def autotuning(self) -> Mask:
        """Device rows that a compiler launched to try them. Shape (device rows,)."""
        launch = self.device["launch"].fill_null(-1).to_numpy()
        compiling = self.threads.host_activity.cause == activity.Cause.COMPILE
        mine: Mask = (launch >= 0) & take(compiling, launch).astype(bool)
        if self.frames.height:
            rest = np.nonzero((launch >= 0) & ~mine)[0]
            frame = self.open_frame(launch[rest])
            mine[rest] = (frame >= 0) & (self.threads.frame_activity.cause[frame] == activity.Cause.COMPILE)
        return mine

    def open_frame(self, rows: Ints) -> Rows:
        """Innermost Python frame (row of `frames`) when each host row starts; -1: none."""
        out = np.full(len(rows), -1, np.int32)
        thread = self.host.thread[rows]
        for one in np.unique(thread):
            mine = thread == one
            line = flatten(self.frames, *self.frames.rows_of(int(one)))
            out[mine] = line.at(self.host.start[rows[mine]])
        return out

    @cached_property
    def window_work(self) -> pl.DataFrame:
        """Device work in the window, cut to it: `device` with earlier and autotuning (bool)."""
        marked = self.device.with_columns(
            earlier=pl.Series(self.earlier_work.recorded), autotuning=pl.Series(self.autotuning)
        )
        return parts.clipped(marked, self.window.start, self.window.end) if self.window else marked.clear()

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """Idle intervals inside each device's span, by device and time:

        device, start, end (ns), after: device row that ends it, before: row of the latest work ended,
        launch, same_launch as `causes.attribute` wants them.
        """
        reach = pl.col("end").cum_max().over("device")
        last = pl.when(pl.col("end") == pl.col("reach")).then(pl.col("row")).forward_fill().shift(1)
        work = self.device.with_row_index("row").with_columns(reach=reach).with_columns(ended=last.over("device"))
        found = work.filter(pl.col("ts") > pl.col("frontier")).select(
            "device", "launch", start="frontier", end="ts", after="row", before="ended"
        )
        ended, next_ = self.device[found["before"]], self.device[found["after"]]
        # A graph's end stands for all of its branches, on whatever stream the last of them ran.
        graph = take(self.direct_device_events, ended["launch"].fill_null(0).to_numpy()) > 1
        return found.with_columns(
            same_launch=(ended["launch"] == found["launch"]).fill_null(False),
            same_stream=(ended["stream"] == next_["stream"]) | (ended["launch"].is_not_null() & pl.Series(graph)),
            handed=self._thread_of(ended["launch"]) != self._thread_of(found["launch"]),
        )

    def _thread_of(self, launch: pl.Series) -> pl.Series:
        """Thread of each launching host row; -1 for null."""
        row = launch.fill_null(-1).to_numpy()
        return pl.Series(np.where(row >= 0, take(self.host.thread, row), -1).astype(np.int32))

    @cached_property
    def edges(self) -> pl.DataFrame:
        """Lead-in of each device: from the window's start to its first work. Columns as `gaps`."""
        if self.window is None:
            return self.gaps.clear()
        limits = self.window
        return (
            self.device.with_row_index("after")
            .filter(pl.col("frontier").is_null() & (pl.col("ts") > limits.start))
            .select(
                "device",
                "launch",
                start=pl.lit(limits.start, dtype=pl.Int64),
                end=pl.min_horizontal("ts", pl.lit(limits.end)),
                after="after",
                before=pl.lit(None, dtype=pl.UInt32),
                same_launch=pl.lit(False),
                same_stream=pl.lit(False),
                handed=pl.lit(True),
            )
        )

    @cached_property
    def tails(self) -> pl.DataFrame:
        """Tail-out of each device: from its last work to the window's end. device, start, end (ns), thread.

        The thread that launched last, or one that launches at all; -1 where nothing did.
        """
        if self.window is None:
            return pl.DataFrame(schema={"device": pl.Int32, "start": pl.Int64, "end": pl.Int64, "thread": pl.Int32})
        limits = self.window
        last = (
            self.device.group_by("device", maintain_order=True)
            .agg(start=pl.col("end").max(), launch=pl.col("launch").sort_by("ts").drop_nulls().last())
            .with_columns(
                start=pl.max_horizontal("start", pl.lit(limits.start)), end=pl.lit(limits.end, dtype=pl.Int64)
            )
            .filter(pl.col("start") < pl.col("end"))
        )
        return last.with_columns(thread=self._thread_of(last["launch"])).drop("launch")

    @cached_property
    def threads(self) -> causes.Threads:
        region = np.isin(self.role, activity.REGION_ROLES)
        operator = (self.cat == Cat.OP) & ~region & (self.role != Role.STEP)
        # A call outside operators and regions is a thing of its own; else it is of the one that makes it.
        inner = self.host.nearest(operator | region)
        rows = np.arange(self.host.height, dtype=np.int32)
        unit = np.where(self.is_call & (self.holder == inner) & (inner >= 0), inner, rows).astype(np.int32)
        host_activity = activity.host_activity(self.host, self.role, self.call, self.waits)
        plain = np.isin(host_activity.cause, causes.USED)
        own = np.where(plain, np.maximum(self.host.self_ns - self.wait_ns - self.profiler_ns, 0), 0)
        launching = self.host.below((self._launch_calls | self.is_launch).astype(np.int64)) > 0
        top = self.host.nearest(operator & (self.host.enclosing(operator) < 0))
        frame_name = self.frames.frame["name"]
        in_file = ~self.trace.names.str.starts_with("<").gather(frame_name).to_numpy().astype(bool)
        frame_roles = vocabulary.classify(self.trace.names, vocabulary.FRAMES)[frame_name.to_numpy()]
        backward = self.trace.names.str.contains(vocabulary.BACKWARD_FRAME).gather(frame_name)
        return causes.Threads(
            host=self.host,
            is_call=self.is_call,
            host_activity=host_activity,
            frames=self.frames,
            frame_activity=activity.frame_activity(self.frames, frame_roles, in_file),
            overhead=self.overhead,
            captures=self._captures_of_threads,
            first_use=first_use.share(
                self.host,
                (unit == rows) & (self.role != Role.STEP),
                unit,
                own,
                self.host.below(self.direct_device_ns),
                launching,
            ),
            unit=unit,
            quiet=(top >= 0) & ~take(launching, top),
            backward=backward.to_numpy().astype(bool),
            partners=handover.find(self.host, self.engine, self.steps, self._launch_calls, self.process_of_thread),
        )

    @property
    def _captures_of_threads(self) -> dict[int, pl.DataFrame]:
        """thread -> (ts, end) of the captures that it made, or that autograd's threads launched in."""
        captures, process = self.captures, self.process_of_thread
        out = {}
        for thread in np.unique(captures.thread):
            mine = np.zeros(len(process), bool)
            mine[thread] = True
            took_part = self.engine & (process == process[thread])
            for one in (thread, *np.nonzero(took_part)[0]):
                out[int(one)] = captures.intervals(mine)
        return out

    @cached_property
    def profiler_busy(self) -> pl.DataFrame:
        """Disjoint sorted intervals (ts, end) of the profiler's own work, all threads."""
        mine = self.overhead.filter("profiler").with_columns(all=pl.lit(0))
        return intervals.merged(mine, ["all"]).select("ts", "end")

    def attribute(self, idle: pl.DataFrame) -> pl.DataFrame:
        """Causes of idle intervals (rows as in `gaps`); see `causes.attribute`."""
        missing = np.sort(self.host.start[self.unrecorded])
        pieces = causes.attribute(idle, missing, intervals.cover(self.overhead.filter("profiler")), self.threads)
        return self._with_earlier_work(idle, pieces)

    def _with_earlier_work(self, idle: pl.DataFrame, pieces: pl.DataFrame) -> pl.DataFrame:
        """Idle time that ends with earlier work belongs to it, and so does what was not recorded of it."""
        found, cause = self.earlier_work, pl.lit(int(activity.Cause.EARLIER_WORK), dtype=pl.Int8)
        start = self.window.start if self.window else 0
        ends = pl.Series(found.recorded).gather(idle["after"]) & (idle["end"] > start)
        if ends.any():
            mine = ends.gather(pieces["gap"])
            pieces = pieces.with_columns(cause=pl.when(mine).then(cause).otherwise("cause"))
        device = idle["device"].to_numpy()
        for of, begin, end in found.unrecorded.iter_rows():
            mine = pl.Series(device == of).gather(pieces["gap"])
            stop = pl.col("begin") + pl.col("ns")
            touched = pl.Series(mine) & ((pieces["begin"] < end) & (pieces["begin"] + pieces["ns"] > begin))
            if touched.any():
                some = pieces.filter(touched)
                inner = parts.clipped(some, begin, end).with_columns(
                    cause=cause, owner=pl.lit(-1, dtype=pl.Int32), quiet=pl.lit(False)
                )
                before = some.filter(pl.col("begin") < begin).with_columns(ns=begin - pl.col("begin"))
                after = some.filter(stop > end).with_columns(begin=pl.lit(end, dtype=pl.Int64), ns=stop - end)
                pieces = pl.concat([pieces.filter(~touched), before, inner, after])
        return pieces

    @cached_property
    def gap_pieces(self) -> pl.DataFrame:
        """Every gap cut into causes; `gap` is a row of `gaps`."""
        return self.attribute(self.gaps)

    @cached_property
    def gap_causes(self) -> pl.DataFrame:
        """Idle time of each gap by cause; see `exposure.gaps_by_cause`."""
        return exposure.gaps_by_cause(self)

    @cached_property
    def edge_pieces(self) -> pl.DataFrame:
        """The lead-ins; `gap` is a row of `edges`."""
        return self.attribute(self.edges)

    @cached_property
    def tail_pieces(self) -> pl.DataFrame:
        """The tail-outs, by what the thread that launched last did then; `gap` is a row of `tails`."""
        out = [self.gap_pieces.clear()]
        for number, (_, start, end, thread) in enumerate(self.tails.iter_rows()):
            if thread < 0:
                unlinked = {"gap": number, "cause": int(activity.Cause.UNLINKED), "owner": -1, "quiet": False}
                out.append(pl.DataFrame([{**unlinked, "begin": start, "ns": end - start}], schema=causes.PIECES))
            else:
                out.append(causes.of_thread(self.threads, thread, number, start, end))
        return pl.concat(out)

    @cached_property
    def idle_spans(self) -> pl.DataFrame:
        """All idle intervals that touch the window: gaps, then lead-ins, then tail-outs, each cut to it.

        device, start, end (ns), thread (that launched what ends it; of a tail, what came before; -1), handed,
        edge (bool), after, before (device rows, null where there is none), launch (host row, null).
        """
        if self.window is None:
            return self._spans(self.gaps.clear(), edge=False)
        gaps = self._spans(self.gaps, edge=False)
        nothing = pl.lit(None, dtype=pl.UInt32)
        tails = self.tails.with_columns(
            handed=pl.lit(True), edge=pl.lit(True), after=nothing, before=nothing, launch=pl.lit(None, dtype=pl.Int32)
        ).select(gaps.columns)
        return pl.concat([gaps, self._spans(self.edges, edge=True), tails])

    def _spans(self, idle: pl.DataFrame, *, edge: bool) -> pl.DataFrame:
        return idle.with_columns(thread=self._thread_of(idle["launch"]), edge=pl.lit(edge)).select(
            "device", "start", "end", "thread", "handed", "edge", "after", "before", "launch"
        )

    @cached_property
    def idle_pieces(self) -> pl.DataFrame:
        """All idle time of the window: `causes.PIECES` cut to it, `gap` a row of `idle_spans`."""
        if self.window is None:
            return self.gap_pieces.clear()
        gaps, edges = self.gaps.height, self.edges.height
        inside = self.window.start, self.window.end
        return pl.concat(
            [
                parts.clipped(self.gap_pieces, *inside),
                parts.clipped(self.edge_pieces, *inside).with_columns(pl.col("gap") + gaps),
                parts.clipped(self.tail_pieces, *inside).with_columns(pl.col("gap") + gaps + edges),
            ]
        )

    @cached_property
    def pauses(self) -> pauses.Pauses:
        """Which of `idle_pieces` are pauses, and where; see `pauses.find`."""
        launches = np.sort(self.host.start[self.is_launch])
        if self.window is not None:
            launches = launches[(launches >= self.window.start) & (launches < self.window.end)]
        borders = np.concatenate([self.host.start[self.steps], self.host.end[self.steps]])
        own = self.by_holder(self.host.self_ns)
        return pauses.find(self.idle_pieces, self.idle_spans, self.threads, self.trace.names, own, launches, borders)

    @staticmethod
    def union(work: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        """Length of the union of device work (`ts`, `end`) per group; see `intervals.union_length`."""
        return intervals.union_length(work.select(*by, "ts", "end"), by)

    def judge(self, mine: Mask) -> Verdict:
        """What bounds some device work (by row) with the idle time that it ended."""
        marked = self.device.filter(pl.Series(mine)).with_columns(
            earlier=pl.lit(False), autotuning=pl.Series(self.autotuning[mine])
        )
        after = self.idle_spans["after"].fill_null(0).to_numpy()
        ended = take(mine, after) & self.idle_spans["after"].is_not_null().to_numpy()
        rows = np.nonzero(ended[self.idle_pieces["gap"].to_numpy()])[0]
        pieces = self.idle_pieces[rows].with_columns(pause=pl.Series(self.pauses.pieces[rows]))
        return judge(parts.total(parts.busy(marked), parts.idle(pieces)))

    @cached_property
    def parts(self) -> dict[parts.Part, int]:
        """Where the window went (ns, averaged over devices); adds up to it. Empty without device work."""
        devices = int(self.device["device"].n_unique())
        if not devices:
            return {}
        idle = parts.idle(self.idle_pieces.with_columns(pause=pl.Series(self.pauses.pieces)))
        return parts.total(parts.busy(self.window_work), idle, devices=devices)

    @cached_property
    def contention(self) -> pl.DataFrame:
        """Device work that was queued and started late because another stream held the device."""
        waits = self.trace.names.str.contains(vocabulary.STREAM_WAIT).to_numpy()[self.host.name]
        return contention.find(self.host, self.device, self.trace.names, self.is_call & waits)

    @cached_property
    def recording(self) -> recording.Recording:
        """How far the figures can be trusted."""
        return recording.find(
            self.host, self.call, self.unrecorded, self.captures, self.earlier_work, self.device, self.parts
        )

    def timeline(self, count: int) -> list[cells.Cells]:
        """The window of each device in `count` cells, each divided into parts."""
        if self.window is None or not self.device.height or not self.window.duration:
            return []
        pieces = self.idle_pieces.with_columns(pause=pl.Series(self.pauses.pieces))
        return cells.find(self.window, self.window_work, self.idle_spans, pieces, count)

    @cached_property
    def verdict(self) -> Verdict:
        """What bounds the window, the mean of all devices."""
        if self.device.height and self.window is not None:
            ranks = self.trace.header.distributed.get("world_size")
            return judge(self.parts, ranks if type(ranks) is int else 1)
        if not self.host.height:
            return Verdict("nothing-to-judge", "no events to analyse", {})
        launched, captured = int(self._launch_calls.sum()), int(self.captures.captured.sum())
        if launched and captured == launched:
            return Verdict("nothing-to-judge", "a graph was captured: its launches ran nothing", {})
        left_out = next((w.message for w in self.trace.warnings if w.code == "unknown-category"), None)
        if left_out is not None:
            return Verdict("nothing-to-judge", f"no device work that is understood: {left_out}", {})
        reason = "the trace holds no device work: only the host's side is judged"
        if launched:
            reason = f"{launched:,} launches but no device record: what the device did was not recorded"
        return Verdict("cpu-only", reason, {})

    # -- trust ------------------------------------------------------------------------------------

    @cached_property
    def warnings(self) -> tuple[Warning, ...]:
        """What the structure had to repair or cannot know, beside the reader's own warnings."""
        out = list(self.links.warnings)
        cut = self.device.filter(pl.col("clipped") > 0)
        if cut.height:
            out.append(
                Warning(
                    "stream-overrun",
                    f"{cut.height:,} device events outlast the end of the next one on their in-order stream, by "
                    f"{cut['clipped'].sum() / 1000:,.3f} µs in total; each is cut where the next one starts",
                    count=cut.height,
                )
            )
        for forest, what in ((self.host, "host events"), (self.frames, "Python frames")):
            if forest.clamped:
                out.append(
                    Warning(
                        "outlived-parent",
                        f"{forest.clamped:,} {what} end after the event they are nested in, by "
                        f"{forest.clamped_ns / 1000:,.3f} µs in total; each is cut at its parent's end",
                        count=forest.clamped,
                    )
                )
        if not self.device.height and self._launch_calls.any():
            out.append(
                Warning(
                    "device-not-recorded",
                    f"{int(self._launch_calls.sum()):,} launch calls but no device record: the profiler had no access "
                    "to the device's activity (CUPTI or roctracer missing, CUDA activities not asked for, or only "
                    "counters collected)",
                    count=int(self._launch_calls.sum()),
                )
            )
        missing = int(self.unrecorded.sum())
        if missing:
            total = missing + int((self.is_launch & np.isin(self.call, (Call.LAUNCH, Call.GRAPH))).sum())
            graphs = int((self.unrecorded & (self.call == Call.GRAPH)).sum())
            detail = f" ({graphs:,} of them graph launches)" if graphs else ""
            out.append(
                Warning(
                    "launches-without-work",
                    f"{missing:,} of {total:,} launches{detail} without a device record: the device may have worked "
                    "in what looks like idle time, so idle time and utilization are not reliable",
                    count=missing,
                )
            )
        return tuple(out)


def build(trace: Trace) -> Chains:
    """Nest the host events of a trace; all else follows on demand.

    Of the trace's own host frame only the overhead lane is kept: the trees hold the rest, in their order.
    """
    events = trace.host
    work = [int(Cat.OP), int(Cat.ANNOTATION), int(Cat.RUNTIME), int(Cat.DRIVER)]
    return Chains(
        trace=replace(trace, host=events.filter(pl.col("cat") == int(Cat.OVERHEAD))),
        host=tree.build(events.filter(pl.col("cat").is_in(work))),
        frames=tree.build(events.filter(pl.col("cat") == int(Cat.PYTHON))),
    )


__all__ = ["Call", "Chains", "Role", "Window", "build"]
