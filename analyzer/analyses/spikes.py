"""Kernels that ran far longer than their own kind, and stretches where all of a kind ran slower.

Members of a group share device, kernel, launch shape, and the input shapes of the operator where
they were recorded. The score is the distance from the median in robust standard deviations
(1.4826 MAD: Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index.build import Chains
from analyzer.model import Column, Section, Table, Unit

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

UNSEEN = "not visible in a trace: clocks, power, thermal, another process"


@dataclass(frozen=True, slots=True)
class Spike:
    """One call. Times in ns; `index`: which call of its group, from 0."""

    device: int
    name: str
    start_ns: int
    duration_ns: int
    median_ns: float
    reason: str
    index: int


@dataclass(frozen=True, slots=True)
class Shift:
    """A run of neighbours that all moved together: calls first to last of the group, in ns."""

    device: int
    name: str
    start_ns: int
    end_ns: int
    first: int
    last: int
    count: int
    median_ns: float
    max_ns: float
    baseline_ns: float


@dataclass(frozen=True, slots=True)
class Spikes:
    rows: tuple[Spike, ...]
    shifts: tuple[Shift, ...]

    def contract(self) -> dict[str, Any]:
        return {
            "spikes": [
                {
                    "device": s.device,
                    "name": s.name,
                    "start_us": units.us(s.start_ns),
                    "duration_us": units.us(s.duration_ns),
                    "median_us": units.us(s.median_ns),
                    "ratio": s.duration_ns / s.median_ns,
                    "reason": s.reason,
                    "call": s.index,
                }
                for s in self.rows
            ],
            "level_shifts": [
                {
                    "device": s.device,
                    "name": s.name,
                    "start_us": units.us(s.start_ns),
                    "end_us": units.us(s.end_ns),
                    "count": s.count,
                    "median_us": units.us(s.median_ns),
                    "max_us": units.us(s.max_ns),
                    "baseline_us": units.us(s.baseline_ns),
                    "ratio": s.median_ns / s.baseline_ns,
                    "first_call": s.first,
                    "last_call": s.last,
                }
                for s in self.shifts
            ],
        }

    def section(self, top: int) -> Section | None:
        if not self.rows and not self.shifts:
            none = f"none: no kernel ran over {RATIO:g}× its own median and {units.duration(EXCESS_NS)} above it"
            return Section("spikes", "Spikes", notes=(none,))
        tables = []
        if self.rows:
            worst = sorted(self.rows, key=lambda s: -(s.duration_ns - s.median_ns))[:top]
            tables.append(
                Table(
                    "Spikes",
                    (
                        Column("at", Unit.NS),
                        Column("kernel", Unit.NAME),
                        Column("took", Unit.NS),
                        Column("median", Unit.NS),
                        Column("ratio", Unit.RATIO),
                        Column("what was different", Unit.TEXT),
                    ),
                    tuple(
                        (s.start_ns, s.name, s.duration_ns, s.median_ns, s.duration_ns / s.median_ns, _short(s.reason))
                        for s in worst
                    ),
                    hidden=max(0, len(self.rows) - top),
                    note="with nothing in the trace, it is clocks, power, heat or another process on the device",
                )
            )
        if self.shifts:
            tables.append(
                Table(
                    "Level shifts",
                    (
                        Column("from", Unit.NS),
                        Column("to", Unit.NS),
                        Column("kernel", Unit.NAME),
                        Column("calls", Unit.COUNT),
                        Column("median", Unit.NS),
                        Column("usual", Unit.NS),
                        Column("ratio", Unit.RATIO),
                    ),
                    tuple(
                        (
                            s.start_ns,
                            s.end_ns,
                            s.name,
                            s.count,
                            s.median_ns,
                            s.baseline_ns,
                            s.median_ns / s.baseline_ns,
                        )
                        for s in self.shifts[:top]
                    ),
                    hidden=max(0, len(self.shifts) - top),
                    note="all calls of a stretch slower together: a clock or power state",
                )
            )
        return Section("spikes", "Spikes", tables=tuple(tables))


def _short(reason: str) -> str:
    return "nothing in the trace" if reason == UNSEEN else reason


def analyze(chains: Chains) -> Spikes:
    grouped = _groups(chains)
    shifts, shifted = _shifts(chains, grouped)
    return Spikes(_spikes(chains, grouped, shifted), shifts)


def _groups(chains: Chains) -> pl.DataFrame:
    """Kernels of groups that are large enough, with the group's median and robust deviation.

    Of a group whose usual call takes no time at all, no call is so many times as long.
    """
    work = chains.device.with_row_index("row").filter(pl.col("cat") == 16)
    launch = work["launch"].fill_null(-1).to_numpy()
    shapes = chains.host.frame["shapes"].to_numpy()
    holder = np.where(launch >= 0, chains.holder[launch] if len(chains.holder) else -1, -1)
    key = ["device", "name", "config", "shapes"]
    return (
        work.select("row", "device", "name", "config", "ts", "dur", "end", "frontier", "stream")
        .with_columns(shapes=pl.Series(np.where(holder >= 0, shapes[holder] if len(shapes) else -1, -1)))
        .with_columns(
            group=pl.struct(key).rank("dense"),
            members=pl.len().over(key),
            median=pl.col("dur").median().over(key),
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
    names = chains.text(out["name"])
    reasons = _reasons(chains, out)
    return tuple(
        Spike(r["device"], name, r["ts"], r["dur"], r["median"], reason, r["index"])
        for name, reason, r in zip(names, reasons, out.iter_rows(named=True), strict=True)
    )


def _reasons(chains: Chains, spikes: pl.DataFrame) -> list[str]:
    """What the trace shows to be different at each spike, or that it shows nothing."""
    work = chains.device
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
    names = chains.text(runs["name"])
    shifts = tuple(
        Shift(
            r["device"], name, r["start"], r["end"], r["first"], r["last"], r["last"] - r["first"] + 1, r["level"],
            r["peak"], r["median"],
        )
        for name, r in zip(names, runs.iter_rows(named=True), strict=True)
    )  # fmt: skip
    return shifts, inside.select("row")
