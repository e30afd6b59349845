"""Kernels that ran far longer than their own kind, stretches where all of a kind ran slower, and contention.

Members of a group share device, kernel, launch shape, the input shapes of the operator where they were recorded,
and of collectives the size of the message. What comes back at the same place of every step, or at even distances,
is another kind of call, and no spike. The score is the distance from the median in robust standard deviations
(1.4826 MAD: Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index import contention, exposure
from analyzer.index.build import Chains
from analyzer.report.blocks import Block, Note, cells, table
from analyzer.report.columns import Count, MeanNs, Name, Ns, Ratio, Row, Text, Unit, column
from analyzer.report.results import Result

ORDER = 70

#: A group needs this many members before its median says what is usual.
MEMBERS = 5
#: A spike lies this many robust deviations out, is this many times the median, and this much longer:
#: the first guards against wide groups, the second against tight ones, the third against short kernels.
SCORE, RATIO, EXCESS_NS = 8.0, 3.0, 50_000
#: More than this share of a group is no spike but a second kind of call (another problem size).
RARE = 0.1

#: A level shift: the running median of WINDOW calls stays this far above the group's for RUN calls.
#: Device timestamps tick every 32 ns: below SHIFT_NS a shift of a short kernel is the clock's grain.
WINDOW, RUN, SHIFT, SHIFT_SCORE, SHIFT_NS = 9, 20, 0.03, 3.0, 1_000
#: Stretches with fewer calls than this between them are one.
BRIDGE = 10

#: Device idle for longer than this just before: clocks may have dropped and ramp up again.
LONG_IDLE_NS = 10_000_000

#: Recurring takes so many; of the steps, this share.
RECURRING, OF_STEPS = 3, 0.5

PEERS = "a collective also waits for its peers: their traces tell"
UNSEEN = "not visible in a trace: clocks, power, thermal, another process"


class Spike(Row, frozen=True, kw_only=True):
    """One call."""

    device: Annotated[int, column("", "that it ran on")]
    name: Annotated[Name, column("kernel", "as the profiler wrote it")]
    start_ns: Annotated[Ns, column("at", "from the first event")]
    duration_ns: Annotated[Ns, column("took", "of this call")]
    median_ns: Annotated[MeanNs, column("median", "of its group")]
    ratio: Annotated[Ratio, column("ratio", "duration by median")]
    excess_ns: Annotated[Ns, column("", "time above the median, each moment once among spikes of the kernel")]
    reason: Annotated[Text, column("", "what the trace shows to be different, or that it shows nothing")]
    call: Annotated[Count, column("", "which call of its group, from 0")]


class Shift(Row, frozen=True, kw_only=True):
    """A run of neighbours that all moved together."""

    device: Annotated[int, column("", "that they ran on")]
    name: Annotated[Name, column("kernel", "as the profiler wrote it")]
    start_ns: Annotated[Ns, column("from", "start of the first call, from the first event")]
    end_ns: Annotated[Ns, column("to", "end of the last call")]
    count: Annotated[Count, column("calls", "from the first to the last")]
    median_ns: Annotated[MeanNs, column("median", f"median of the running median of {WINDOW} calls")]
    max_ns: Annotated[MeanNs, column("", f"largest running median of {WINDOW} calls")]
    baseline_ns: Annotated[MeanNs, column("usual", "median of the whole group")]
    ratio: Annotated[Ratio, column("ratio", "median by baseline")]
    excess_ns: Annotated[Ns, column("", "median less baseline, times the calls, at most from first start to last end")]
    first_call: Annotated[Count, column("", "which call of the group is the first, from 0")]
    last_call: Annotated[Count, column("", "which call of the group is the last, from 0")]


class Contention(Row, frozen=True, kw_only=True):
    """Work that was queued on one stream and started late, because another stream's work held the device or a link."""

    device: Annotated[int, column("", "that it ran on")]
    name: Annotated[Name, column("late", "kernel, copy or fill")]
    start_ns: Annotated[Ns, column("at", "its start, from the first event")]
    late_ns: Annotated[Ns, column("late by", "beyond the usual time after the work before it on its stream", bar=True)]
    by: Annotated[Name, column("behind", "what of another stream ran longest meanwhile")]


class Spikes(Result, frozen=True, kw_only=True):
    SECTION = "spikes"
    TITLE = "Spikes"

    spikes: tuple[Spike, ...]  # in time order
    level_shifts: tuple[Shift, ...]  # in time order
    contention: tuple[Contention, ...]  # the latest first

    def blocks(self) -> Iterator[Block]:
        if not self.spikes and not self.level_shifts and not self.contention:
            yield Note(f"none: no kernel ran over {RATIO:g}× its own median and {units.duration(EXCESS_NS)} above it")
        if self.spikes:
            yield table(
                "Spikes",
                Spike,
                sorted(self.spikes, key=lambda s: s.median_ns - s.duration_ns),
                "start_ns",
                "name",
                "duration_ns",
                "median_ns",
                "ratio",
                cells("what was different", Unit.TEXT, lambda s: _short(s.reason)),
                note="with nothing in the trace, it is clocks, power, heat or another process on the device",
            )
        if self.level_shifts:
            yield table(
                "Level shifts",
                Shift,
                self.level_shifts,
                "start_ns",
                "end_ns",
                "name",
                "count",
                "median_ns",
                "baseline_ns",
                "ratio",
                note="all calls of a stretch slower together: a clock or power state",
            )
        if self.contention:
            yield table(
                "Queued work that started late", Contention, self.contention, "start_ns", "name", "late_ns", "by"
            )


def _short(reason: str) -> str:
    return "nothing in the trace" if reason == UNSEEN else reason


def analyze(chains: Chains) -> Spikes:
    grouped = _groups(chains)
    shifts, shifted = _shifts(chains, grouped)
    return Spikes(
        spikes=_spikes(chains, grouped, shifted),
        level_shifts=shifts,
        contention=tuple(
            Contention(
                device=late["device"],
                name=chains.trace.names[late["name"]],
                start_ns=late["ts"],
                late_ns=row["late_ns"],
                by=chains.trace.names[chains.device.frame["name"][row["by"]]],
            )
            for row in contention.find(chains).iter_rows(named=True)
            for late in [chains.device.frame.row(row["row"], named=True)]
        ),
    )


def _groups(chains: Chains) -> pl.DataFrame:
    """Kernels of groups that are large enough, with the group's median and robust deviation.

    Of a group whose usual call takes no time at all, no call is so many times as long.
    """
    work = chains.device.frame.with_row_index("row").filter(pl.col("cat") == 16)
    launch = work["launch"].fill_null(-1).to_numpy()
    shapes = chains.host.frame["shapes"].to_numpy()
    holder = np.where(launch >= 0, chains.host.holder[launch] if len(chains.host.holder) else -1, -1)
    key = ["device", "name", "config", "shapes", "collective"]
    # Of two populations the median is a call of one of them, and never what lies between.
    median = pl.col("dur").quantile(0.5, "lower").over(key).cast(pl.Float64)
    return (
        work.select(
            "row",
            "device",
            "name",
            "config",
            "ts",
            "dur",
            "end",
            "frontier",
            "stream",
            "communication",
            "launch",
            collective=_message(chains, work["collective"]),
        )
        .with_columns(shapes=pl.Series(np.where(holder >= 0, shapes[holder] if len(shapes) else -1, -1)))
        .with_columns(
            group=pl.struct(key).rank("dense"),
            members=pl.len().over(key),
            median=median,
            index=pl.int_range(pl.len()).over(key),
        )
        .filter((pl.col("members") >= MEMBERS) & (pl.col("median") > 0))
        .with_columns(mad=(pl.col("dur") - pl.col("median")).abs().median().over("group"))
        .with_columns(score=(pl.col("dur") - pl.col("median")) / (1.4826 * pl.col("mad")).clip(lower_bound=1.0))
    )


def _spikes(chains: Chains, grouped: pl.DataFrame, shifted: pl.DataFrame) -> tuple[Spike, ...]:
    out = (
        grouped.filter(
            (pl.col("score") >= SCORE)
            & (pl.col("dur") >= RATIO * pl.col("median"))
            & (pl.col("dur") - pl.col("median") >= EXCESS_NS)
        )
        .filter(pl.len().over("group") <= (RARE * pl.col("members")).clip(lower_bound=1))
        .join(shifted, on="row", how="anti")
        .sort("row")
    )
    out = _alone(chains, grouped, out)
    out = out.with_columns(once=exposure.once(out, ["device", "name"]))
    names = chains.trace.text(out["name"])
    reasons = _reasons(chains, out)
    return tuple(
        Spike(
            device=r["device"],
            name=name,
            start_ns=r["ts"],
            duration_ns=r["dur"],
            median_ns=r["median"],
            ratio=r["dur"] / r["median"],
            excess_ns=min(int(r["dur"] - r["median"]), r["once"]),
            reason=reason,
            call=r["index"],
        )
        for name, reason, r in zip(names, reasons, out.iter_rows(named=True), strict=True)
    )


def _message(chains: Chains, collective: pl.Series) -> pl.Series:
    """A number for what each row of device work says of a collective but for its count; -1: nothing."""
    said = chains.trace.collectives
    alike = said.drop("seq", "comms_id").with_row_index("row")
    of_row = alike.group_by(pl.exclude("row"), maintain_order=True).agg("row").with_row_index("message").explode("row")
    number = np.full(said.height + 1, -1, np.int64)
    number[of_row["row"].to_numpy()] = of_row["message"].to_numpy()
    return pl.Series(number[collective.to_numpy()])


def _alone(chains: Chains, grouped: pl.DataFrame, spikes: pl.DataFrame) -> pl.DataFrame:
    """Spikes that do not come back: neither at the same place of the steps, nor at even distances."""
    if not spikes.height:
        return spikes
    even = spikes.group_by("group").agg(
        count=pl.len(), least=pl.col("index").diff().min(), most=pl.col("index").diff().max()
    )
    periodic = even.filter((pl.col("count") >= RECURRING) & (pl.col("least") == pl.col("most")))
    kept = spikes.join(periodic, on="group", how="anti", maintain_order="left")
    steps = chains.host.steps
    if len(steps) < 2 or not kept.height:
        return kept
    starts = chains.host.start[steps]
    members = grouped.join(kept.select("group").unique(), on="group", how="semi").sort("row")
    called = np.where(
        members["launch"].is_null().to_numpy(),
        members["ts"].to_numpy(),
        chains.host.start[members["launch"].fill_null(0).to_numpy()],
    )
    members = members.with_columns(step=pl.Series(np.searchsorted(starts, called, "right"))).with_columns(
        place=pl.int_range(pl.len()).over("group", "step")
    )
    placed = kept.select("row").join(members.select("row", "group", "step", "place"), on="row")
    usual = (
        placed.group_by("group", "place")
        .agg(steps=pl.col("step").n_unique())
        .filter(pl.col("steps") >= max(2, OF_STEPS * len(steps)))
    )
    recurring = placed.join(usual, on=["group", "place"], how="semi").select("row")
    return kept.join(recurring, on="row", how="anti", maintain_order="left")


def _reasons(chains: Chains, spikes: pl.DataFrame) -> list[str]:
    """What the trace shows to be different at each spike, or that it shows nothing."""
    work = chains.device.frame
    out = []
    for r in spikes.iter_rows(named=True):
        same = work.filter(
            (pl.col("device") == r["device"])
            & (pl.col("ts") < r["end"])
            & (pl.col("end") > r["ts"])
            & (pl.col("stream") != r["stream"])
        )
        said = []
        if r["index"] == 0:
            said.append("the first of its kind")
        if r["communication"]:
            said.append(PEERS)
        if same.height:
            copies = same.filter(pl.col("cat") == 17).height
            what = "a memory copy" if copies == same.height else units.plural(same.height, "event")
            said.append(f"{what} on another stream")
        if r["frontier"] is not None and r["ts"] - r["frontier"] >= LONG_IDLE_NS:
            said.append(f"the device was idle for {units.duration(r['ts'] - r['frontier'])} before: clocks ramp up")
        out.append("; ".join(said) or UNSEEN)
    return out


def _shifts(chains: Chains, grouped: pl.DataFrame) -> tuple[tuple[Shift, ...], pl.DataFrame]:
    """Stretches of slow neighbours, and the rows in them that are explained by the stretch."""
    smooth = (
        grouped.filter(pl.col("members") >= 2 * RUN)
        .sort("group", "index")
        .with_columns(level=pl.col("dur").rolling_median(WINDOW, center=True, min_samples=1).over("group"))
        .with_columns(
            slow=(pl.col("level") > (1 + SHIFT) * pl.col("median"))
            & (pl.col("level") - pl.col("median") > SHIFT_SCORE * 1.4826 * pl.col("mad"))
            & (pl.col("level") - pl.col("median") >= SHIFT_NS)
        )
    )
    slow = (
        smooth.filter("slow")
        .with_columns(step=(pl.col("index") - pl.col("index").shift(1).over("group")).fill_null(BRIDGE + 1))
        .with_columns(run=(pl.col("step") > BRIDGE).cum_sum())
    )
    runs = (
        slow.group_by("run", maintain_order=True)
        .agg(
            pl.col("device", "name", "group", "median").first(),
            start=pl.col("ts").first(),
            end=pl.col("end").last(),
            first=pl.col("index").first(),
            last=pl.col("index").last(),
            count=pl.len(),
            level=pl.col("level").median(),
            peak=pl.col("level").max(),
            members=pl.col("members").first(),
        )
        .filter((pl.col("count") >= RUN) & (pl.col("count") <= pl.col("members") // 2))
        .sort("start")
    )
    inside = slow.join(runs.select("run", "level"), on="run", suffix="_run").filter(
        pl.col("dur") <= 1.5 * pl.col("level_run")
    )
    names = chains.trace.text(runs["name"])
    shifts = tuple(
        Shift(
            device=r["device"],
            name=name,
            start_ns=r["start"],
            end_ns=r["end"],
            count=r["last"] - r["first"] + 1,
            median_ns=r["level"],
            max_ns=r["peak"],
            baseline_ns=r["median"],
            ratio=r["level"] / r["median"],
            excess_ns=min(int((r["level"] - r["median"]) * (r["last"] - r["first"] + 1)), r["end"] - r["start"]),
            first_call=r["first"],
            last_call=r["last"],
        )
        for name, r in zip(names, runs.iter_rows(named=True), strict=True)
    )
    return shifts, inside.select("row")
