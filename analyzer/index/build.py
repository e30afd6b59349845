"""All that analyses share: the host tree, linked device work, idle intervals and their causes.

Everything is computed when first asked for, once. Rows of `device` and rows of the `host` tree are
the two index spaces; columns that hold a row say whose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from analyzer.events.schema import HOST_CALLS, Cat, Trace
from analyzer.index import activity, causes, exposure, intervals, overhead, paths, tree, vocabulary
from analyzer.index.bound import LATENCY_LIMIT_NS, Verdict, judge
from analyzer.index.links import Links, link
from analyzer.index.timeline import flatten
from analyzer.index.vocabulary import Call, Role
from analyzer.report.findings import Warning

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.activity import Codes
    from analyzer.index.tree import Ints, Mask, Tree


class Window(NamedTuple):
    """From the first host or device event to the last, less the profiler's own tail (ns)."""

    start: int
    end: int

    @property
    def duration(self) -> int:
        return self.end - self.start


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
    def places(self) -> pl.Series:
        """Names as places: all profiler steps are one, and all instances of a module's class.

        What happens in each of them adds up.
        """
        steps = self.trace.names.str.replace(r"^(ProfilerStep)#\d+$", "$1")
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
        name = self.device_properties.get(device, {}).get("name")
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
        communication    bool: a collective's kernel
        """
        names = self.trace.names
        collective = vocabulary.matches(names, vocabulary.COMMUNICATION_KERNEL)
        work = self._clipped.with_columns(self.links.launch.alias("launch"))
        work = intervals.with_frontier(work, ["device", "stream"]).rename({"frontier": "stream_frontier"})
        work = intervals.with_frontier(work, ["device"])
        return work.with_columns(
            communication=pl.Series(collective[work["name"].to_numpy()], dtype=pl.Boolean)
            & (pl.col("cat") == int(Cat.KERNEL))
        )

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

    @cached_property
    def kind(self) -> pl.Series:
        """Kind of each device row; see `exposure.kinds`."""
        return exposure.kinds(self)

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

        Calls after the last launch that was recorded are left out: there the recording just ended.
        """
        recorded = self.host.start[self.is_launch]
        if not len(recorded):
            return np.zeros(self.host.height, bool)
        return np.asarray(self._launch_calls & ~self.is_launch & (self.host.start < recorded.max()))

    @cached_property
    def _launch_calls(self) -> Mask:
        """Calls that launch a kernel or a graph by their name."""
        return np.isin(self.call, (Call.LAUNCH, Call.GRAPH))

    @cached_property
    def pageable(self) -> Mask:
        """Copy calls whose copy had pageable memory on one side: the host takes part in it."""
        out = np.zeros(self.host.height, bool)
        of_name = pl.Series(vocabulary.matches(self.trace.names, vocabulary.PAGEABLE))
        rows = self.device.filter(pl.col("launch").is_not_null() & (pl.col("cat") == int(Cat.MEMCPY)))
        out[rows["launch"].filter(of_name.gather(rows["name"])).to_numpy()] = True
        return out

    @cached_property
    def synchronous_copy(self) -> Mask:
        """Calls of copy functions that return only when the copy is done."""
        of_name = vocabulary.matches(self.trace.names, vocabulary.SYNCHRONOUS_COPY)
        return self.is_call & of_name[self.host.name]

    @cached_property
    def wait_ns(self) -> Ints:
        """Blocking wait of each host row (ns): synchronize calls, and copies that wait for their end.

        A wait inside a wait is the outer one's time, and is not counted again.
        A copy call that is synchronous by name, or takes part in a pageable copy, and that returns after
        the copy ended on the device, was waiting for it from its own start on.
        """
        length = self.host.end - self.host.start
        wait = np.where(self.call == Call.WAIT, length, 0)
        copies = self.device.filter(pl.col("launch").is_not_null() & (pl.col("cat") == int(Cat.MEMCPY)))
        row, done = copies["launch"].to_numpy(), copies["end"].to_numpy()
        waits = (self.pageable | self.synchronous_copy)[row] & (self.host.end[row] >= done)
        blocking = np.where(waits, np.maximum(done - self.host.start[row], 0), 0)
        np.maximum.at(wait, row, np.minimum(blocking, length[row]))
        return np.where(self.host.enclosing(wait > 0) >= 0, 0, wait)

    @cached_property
    def overhead(self) -> pl.DataFrame:
        """Profiler and loading events, each with the host row it fell into; see `overhead.assign`."""
        rows = self.trace.host
        own = pl.Series(vocabulary.matches(self.trace.names, vocabulary.PROFILER_OVERHEAD))
        return overhead.assign(rows, own, self.host)

    @cached_property
    def profiler_ns(self) -> Ints:
        """The profiler's time that fell into each host row itself (ns), at most the row's duration.

        What it did while the row waited anyway is the wait's, so that nobody takes it out twice.
        """
        mine = self.overhead.filter(pl.col("profiler") & (pl.col("host") >= 0))
        merged = intervals.union_length(mine, ["host"])
        out = np.zeros(self.host.height, np.int64)
        out[merged["host"].to_numpy()] = merged["length"].to_numpy()
        beside = np.maximum(self.host.self_ns - self.wait_ns, 0)
        return np.where(self.wait_ns > 0, np.minimum(out, beside), out)

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
        rows = np.nonzero((self.role == Role.STEP) & (self.cat == Cat.ANNOTATION))[0]
        return rows[np.argsort(self.host.start[rows], kind="stable")]

    # -- time -------------------------------------------------------------------------------------

    @cached_property
    def window(self) -> Window | None:
        """None where there is no event at all."""
        starts = [x for x in (_first(self.host.start), _first(self.device["ts"].to_numpy())) if x is not None]
        ends = [x for x in (self._host_end, _last(self.device["end"].to_numpy())) if x is not None]
        return Window(min(starts), max(ends)) if starts and ends else None

    @cached_property
    def _host_end(self) -> int | None:
        """Last host event, less trailing top-level synchronizes: the profiler flushes with them."""
        if not self.host.height:
            return None
        flush = (self.call == Call.WAIT) & (self.host.parent < 0)
        others = self.host.end[~flush]
        return int(others.max()) if len(others) else int(self.host.end.max())

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
        return found.with_columns(
            same_launch=(self.device["launch"].gather(found["before"]) == found["launch"]).fill_null(False)
        )

    @cached_property
    def edges(self) -> pl.DataFrame:
        """Lead-in of each device: from the window's start to its first work. Columns as `gaps`."""
        if self.window is None:
            return self.gaps.clear()
        return (
            self.device.with_row_index("after")
            .filter(pl.col("frontier").is_null() & (pl.col("ts") > self.window.start))
            .select(
                "device",
                "launch",
                start=pl.lit(self.window.start, dtype=pl.Int64),
                end="ts",
                after="after",
                before=pl.lit(None, dtype=pl.UInt32),
                same_launch=pl.lit(False),
            )
        )

    @cached_property
    def threads(self) -> causes.Threads:
        operator = (self.cat == Cat.OP) & ~np.isin(self.role, activity.REGION_ROLES)
        frame_name = self.frames.frame["name"]
        in_file = ~self.trace.names.str.starts_with("<").gather(frame_name).to_numpy().astype(bool)
        frame_roles = vocabulary.classify(self.trace.names, vocabulary.FRAMES)[frame_name.to_numpy()]
        return causes.Threads(
            host=self.host,
            host_activity=activity.host_activity(self.host, self.role, self.call, self.pageable, self.synchronous_copy),
            frames=self.frames,
            frame_activity=activity.frame_activity(self.frames, frame_roles, in_file),
            overhead=self.overhead,
            first_use=causes.first_use_share(self.host, operator, self.own_ns),
        )

    @cached_property
    def profiler_busy(self) -> pl.DataFrame:
        """Disjoint sorted intervals (ts, end) of the profiler's own work, all threads."""
        mine = self.overhead.filter("profiler").with_columns(all=pl.lit(0))
        return intervals.merged(mine, ["all"]).select("ts", "end")

    def attribute(self, idle: pl.DataFrame) -> pl.DataFrame:
        """Causes of idle intervals (rows as in `gaps`); see `causes.attribute`."""
        missing = np.sort(self.host.start[self.unrecorded])
        return causes.attribute(idle, missing, self.profiler_busy, self.threads)

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
        return self.attribute(self.edges)

    @cached_property
    def tail_pieces(self) -> pl.DataFrame:
        """From each device's last work to the window's end: what the thread that launched it did then."""
        if self.window is None:
            return self.gap_pieces.clear()
        last = (
            self.device.group_by("device", maintain_order=True)
            .agg(start=pl.col("end").max(), launch=pl.col("launch").sort_by("ts").drop_nulls().last())
            .filter(pl.col("launch").is_not_null() & (pl.col("start") < self.window.end))
        )
        parts = [self.gap_pieces.clear()]
        for number, (_, start, launch) in enumerate(last.iter_rows()):
            thread = int(self.host.thread[launch])
            _, cause, owner, ns = self.threads.pieces(thread, np.array([start]), np.array([self.window.end]))
            parts.append(pl.DataFrame({"gap": number, "cause": cause, "owner": owner, "ns": ns}, schema=causes.PIECES))
        return pl.concat(parts)

    @staticmethod
    def union(work: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        """Length of the union of device work (`ts`, `end`) per group; see `intervals.union_length`."""
        return intervals.union_length(work.select(*by, "ts", "end"), by)

    def judge(self, work: pl.DataFrame, *pieces: pl.DataFrame) -> Verdict:
        """What bounds some device work (rows of `device`) and the idle time cut into `pieces`."""

        def busy(some: pl.DataFrame) -> int:
            return int(self.union(some, ["device"])["length"].sum())

        everything = busy(work)
        kernels = busy(work.filter(pl.col("cat") == int(Cat.KERNEL)))
        compute = busy(work.filter((pl.col("cat") == int(Cat.KERNEL)) & ~pl.col("communication")))
        copies = busy(work.filter(pl.col("cat") == int(Cat.MEMCPY)))
        latency = pl.col("cause") == int(activity.Cause.LAUNCH_LATENCY)
        usual = pl.when(latency).then(pl.col("ns").clip(upper_bound=LATENCY_LIMIT_NS)).otherwise("ns")
        causes_ns = pl.concat(pieces).with_columns(usual=usual).group_by("cause").agg(pl.col("ns", "usual").sum())
        idle = {activity.Cause(cause): usual for cause, _, usual in causes_ns.iter_rows()}
        unexplained = int((causes_ns["ns"] - causes_ns["usual"]).sum())
        copy_only = min(copies, everything - kernels)
        return judge(everything - copy_only - (kernels - compute), copy_only, kernels - compute, idle, unexplained)

    @cached_property
    def verdict(self) -> Verdict:
        """What bounds the window, all devices together."""
        if not self.device.height:
            if not self.host.height:
                return Verdict("nothing-to-judge", "no events to analyse", {})
            launched = int(self._launch_calls.sum())
            reason = "the trace holds no device work: only the host's side is judged"
            if launched:
                reason = f"{launched:,} launches but no device record: what the device did was not recorded"
            return Verdict("cpu-only", reason, {})
        return self.judge(self.device, self.gap_pieces, self.edge_pieces, self.tail_pieces)

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


def _first(values: Ints) -> int | None:
    return int(values.min()) if len(values) else None


def _last(values: Ints) -> int | None:
    return int(values.max()) if len(values) else None


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
