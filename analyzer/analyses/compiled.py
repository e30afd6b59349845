"""Compiled regions: what `torch.compile` costs the host at run time, split into its parts.

guards     `TorchDynamo Cache Lookup`: which compiled version fits; it comes just before the region
prologue   wrappers of AOTAutograd and Dynamo before the generated code
generated  the generated code's own time, outside operators
overhead   the region's own time, outside everything nested in it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index.build import Chains
from analyzer.index.vocabulary import Role
from analyzer.index.within import work_of
from analyzer.model import Column, Metric, Section, Table, Unit

ORDER = 60

_GRAPH = r"CompiledFxGraph (\S+)"
#: `Torch-Compiled Region: frame/version`: a version above 0 is a recompilation of that frame.
_VERSION = r"Torch-Compiled Region: (\d+)/(\d+)"


@dataclass(frozen=True, slots=True)
class Region:
    """All calls of one region. Medians per call in ns; graph: id of the generated code, None if unsaid."""

    name: str
    calls: int
    cpu_ns: float
    cpu_total_ns: int
    guard_ns: float | None
    prologue_ns: float
    generated_ns: float
    operators_ns: float
    overhead_ns: float
    overhead_total_ns: int
    device_ns: float
    graph: str | None


@dataclass(frozen=True, slots=True)
class Compiled:
    """lookups: guard evaluations; without_region: those that no compiled region follows (it ran eagerly)."""

    regions: tuple[Region, ...]
    recompilations: int | None
    graph_breaks: int | None
    lookups: int
    without_region: int
    compile_ns: int

    def contract(self) -> dict[str, Any]:
        return {
            "compile": {
                "regions": [
                    {
                        "name": r.name,
                        "calls": r.calls,
                        "cpu_us_median": units.us(r.cpu_ns),
                        "guard_us_median": units.us(r.guard_ns),
                        "prologue_us_median": units.us(r.prologue_ns),
                        "generated_us_median": units.us(r.generated_ns),
                        "operators_us_median": units.us(r.operators_ns),
                        "overhead_us_median": units.us(r.overhead_ns),
                        "overhead_us": units.us(r.overhead_total_ns),
                        "device_us_median": units.us(r.device_ns),
                        "graph": r.graph,
                    }
                    for r in self.regions
                ],
                "recompilations": self.recompilations,
                "graph_breaks": self.graph_breaks,
                "guard_lookups": self.lookups,
                "lookups_without_region": self.without_region,
                "compile_time_us": units.us(self.compile_ns),
            }
        }

    def section(self, top: int) -> Section | None:
        if not self.regions and not self.lookups:
            return None
        metrics = (
            Metric(
                "recompiled versions",
                self.recompilations,
                Unit.COUNT,
                "numbered above 0 in the regions' names",
            ),
            Metric(
                "graph breaks",
                self.graph_breaks,
                Unit.COUNT,
                "functions that resume in the middle; n/a without Python stacks",
            ),
            Metric("guard lookups", self.lookups, Unit.COUNT),
            Metric("lookups without a region", self.without_region, Unit.COUNT, "the function ran eagerly"),
        )
        table = Table(
            "Compiled regions",
            (
                Column("region", Unit.NAME),
                Column("calls", Unit.COUNT),
                Column("CPU", Unit.NS),
                Column("guards", Unit.NS),
                Column("prologue", Unit.NS),
                Column("generated", Unit.NS),
                Column("operators", Unit.NS),
                Column("own", Unit.NS),
                Column("device", Unit.NS),
            ),
            tuple(
                (
                    r.name,
                    r.calls,
                    r.cpu_ns,
                    r.guard_ns,
                    r.prologue_ns,
                    r.generated_ns,
                    r.operators_ns,
                    r.overhead_ns,
                    r.device_ns,
                )
                for r in self.regions[:top]
            ),
            hidden=max(0, len(self.regions) - top),
            note="medians per call",
        )
        return Section("compile", "torch.compile", metrics=metrics, tables=(table,) if self.regions else ())


def analyze(chains: Chains) -> Compiled:
    host, role = chains.host, chains.role
    inside = host.enclosing(role == Role.REGION)
    rows = np.nonzero((role == Role.REGION) & (inside < 0))[0]
    lookups = np.nonzero(role == Role.GUARDS)[0]
    compiling = np.nonzero((role == Role.COMPILE) & (host.enclosing(role == Role.COMPILE) < 0))[0]
    compile_ns = int((host.end[compiling] - host.start[compiling]).sum())
    if not len(rows):
        return Compiled((), None, None, len(lookups), len(lookups), compile_ns)
    own = chains.own_ns
    below = {
        part: host.below(np.where(np.isin(role, roles), own, 0))[rows]
        for part, roles in (
            ("prologue", (Role.PROLOGUE,)),
            ("generated", (Role.REGION_PART,)),
        )
    }
    nested_regions = host.below(np.where(role == Role.REGION, host.self_ns, 0))[rows] - host.self_ns[rows]
    duration = host.end[rows] - host.start[rows]
    overhead = host.self_ns[rows]
    guard = _guards(chains, rows, lookups)
    names = chains.text(host.frame["name"].gather(rows))
    frame = pl.DataFrame(
        {
            "name": names,
            "cpu": duration,
            "guard": pl.Series(guard, dtype=pl.Int64, strict=False, nan_to_null=True),
            "prologue": below["prologue"],
            "generated": below["generated"] + nested_regions,
            "operators": duration - overhead - below["prologue"] - below["generated"] - nested_regions,
            "overhead": overhead,
            "device": work_of(chains, rows).device_ns,
            "graph": _graphs(chains, rows),
        }
    )
    table = (
        frame.group_by("name")
        .agg(
            pl.len().alias("calls"),
            pl.col("cpu").median(),
            pl.col("cpu").sum().alias("cpu_total"),
            pl.col("guard", "prologue", "generated", "operators", "overhead").median(),
            pl.col("overhead").sum().alias("overhead_total"),
            pl.col("device").median(),
            pl.col("graph").drop_nulls().first(),
        )
        .sort(["cpu_total", "name"], descending=[True, False])
    )
    versions = frame["name"].unique().str.extract_groups(_VERSION)
    numbered = pl.DataFrame({"frame": versions.struct[0], "version": versions.struct[1].cast(pl.Int64)}).drop_nulls()
    breaks = chains.trace.names.str.contains("torch_dynamo_resume_in", literal=True).sum()
    followed = np.isfinite(guard).sum()
    return Compiled(
        regions=tuple(Region(*row) for row in table.iter_rows()),
        recompilations=int((numbered["version"] > 0).sum()) if numbered.height else None,
        graph_breaks=int(breaks) if breaks or chains.frames.height else None,
        lookups=len(lookups),
        without_region=max(0, len(lookups) - int(followed)),
        compile_ns=compile_ns,
    )


def _guards(chains: Chains, rows: np.ndarray[Any, Any], lookups: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Time of the guard lookup that belongs to each region, NaN if none.

    It is the last one on the thread before the region, later than the region before it; or inside.
    """
    host = chains.host
    out = np.full(len(rows), np.nan)
    slot = np.searchsorted(lookups, rows, "left") - 1
    candidate = lookups[np.maximum(slot, 0)] if len(lookups) else rows
    thread = host.thread
    previous = np.append(-1, rows[:-1])
    good = (slot >= 0) & (thread[candidate] == thread[rows]) & (candidate > previous)
    out[good] = (host.end - host.start)[candidate[good]]
    return out


def _graphs(chains: Chains, rows: np.ndarray[Any, Any]) -> pl.Series:
    """Id of the generated code that each region calls first, null if its name says none."""
    host = chains.host
    ids = chains.trace.names.str.extract(_GRAPH).gather(host.frame["name"])
    calls = np.nonzero(ids.is_not_null().to_numpy())[0]
    slot = np.searchsorted(calls, rows, "left")
    row = calls[np.minimum(slot, len(calls) - 1)] if len(calls) else rows
    inside = (slot < len(calls)) & (row < host.last[rows])
    return pl.select(pl.when(pl.Series(inside)).then(ids.gather(row))).to_series()
