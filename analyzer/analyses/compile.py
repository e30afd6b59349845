"""Compiled regions: what `torch.compile` costs the host at run time, split into its parts.

guards     `TorchDynamo Cache Lookup`: which compiled version fits; it comes just before the region
prologue   wrappers of AOTAutograd and Dynamo before the generated code
generated  the generated code's own time, outside operators
overhead   the region's own time, outside everything nested in it
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import polars as pl

from analyzer.index.build import Chains
from analyzer.index.intervals import union_length
from analyzer.index.vocabulary import Role
from analyzer.index.within import work_of
from analyzer.report.blocks import Block, metric, table
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, column
from analyzer.report.results import Result

ORDER = 60

_GRAPH = r"CompiledFxGraph (\S+)"
#: `Torch-Compiled Region: frame/version`: a version above 0 is a recompilation of that frame.
_VERSION = r"Torch-Compiled Region: (\d+)/(\d+)"


class Region(Row, frozen=True, kw_only=True):
    """All calls of one compiled region; medians per call."""

    name: Annotated[Name, column("region", "as the profiler wrote it: `frame/version` in newer traces")]
    calls: Annotated[Count, column("calls", "outermost ones: a region inside another is part of it")]
    cpu_ns_median: Annotated[MeanNs, column("CPU", "host time of a call, guards not included")]
    guard_ns_median: Annotated[
        MeanNs | None,
        column("guards", "which compiled version fits: the lookup before the region; null: none recorded"),
    ]
    prologue_ns_median: Annotated[MeanNs, column("prologue", "wrappers before the generated code")]
    generated_ns_median: Annotated[MeanNs, column("generated", "the generated code's own time, outside operators")]
    operators_ns_median: Annotated[MeanNs, column("operators", "operators that the generated code calls")]
    overhead_ns_median: Annotated[MeanNs, column("own", "the region's own time, outside all that is nested in it")]
    overhead_ns: Annotated[Ns, column("", "own time of all calls")]
    device_ns_median: Annotated[MeanNs, column("device", "device time that a call launched")]
    graph: Annotated[Name | None, column("", "id of the generated code that it calls first; null: its name says none")]


class Compilation(Row, frozen=True, kw_only=True):
    """The compiled regions and what was recorded of compiling."""

    regions: Annotated[tuple[Region, ...], column("", "largest host time of all calls first")]
    recompilations: Annotated[
        Count | None,
        column("recompiled versions", "versions above 0 in the regions' names; null: the names number none"),
    ]
    graph_breaks: Annotated[
        Count | None, column("graph breaks", "functions that resume in the middle; null: no Python stacks")
    ]
    guard_lookups: Annotated[Count, column("guard lookups", "evaluations of guards")]
    lookups_without_region: Annotated[
        Count, column("lookups without a region", "those that no compiled region follows: the function ran eagerly")
    ]
    compile_time_ns: Annotated[Ns, column("", "time in which Dynamo, AOTAutograd or Inductor was at work on the host")]


class Compile(Result, frozen=True, kw_only=True):
    SECTION = "compile"
    TITLE = "torch.compile"

    compile: Compilation

    def blocks(self) -> Iterator[Block]:
        found = self.compile
        if not found.regions and not found.guard_lookups:
            return
        yield metric(found, "recompilations", "numbered above 0 in the regions' names")
        yield metric(found, "graph_breaks", "functions that resume in the middle; n/a without Python stacks")
        yield metric(found, "guard_lookups")
        yield metric(found, "lookups_without_region", "the function ran eagerly")
        if found.regions:
            yield table(
                "Compiled regions",
                Region,
                found.regions,
                "name",
                "calls",
                "cpu_ns_median",
                "guard_ns_median",
                "prologue_ns_median",
                "generated_ns_median",
                "operators_ns_median",
                "overhead_ns_median",
                "device_ns_median",
                note="medians per call",
            )


def analyze(chains: Chains) -> Compile:
    host, role = chains.host, chains.role
    inside = host.enclosing(role == Role.REGION)
    rows = np.nonzero((role == Role.REGION) & (inside < 0))[0]
    lookups = np.nonzero(role == Role.GUARDS)[0]
    compiling = np.nonzero((role == Role.COMPILE) & (host.enclosing(role == Role.COMPILE) < 0))[0]
    spans = pl.DataFrame({"ts": host.start[compiling], "end": host.end[compiling]}).with_columns(all=pl.lit(0))
    compile_ns = int(union_length(spans, ["all"])["length"].sum())
    if not len(rows):
        return Compile(
            compile=Compilation(
                regions=(),
                recompilations=None,
                graph_breaks=None,
                guard_lookups=len(lookups),
                lookups_without_region=len(lookups),
                compile_time_ns=compile_ns,
            )
        )
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
    parts = pl.col("cpu", "guard", "prologue", "generated", "operators", "overhead", "device")
    regions = (
        frame.group_by("name")
        .agg(
            pl.len().alias("calls"),
            pl.col("cpu").sum(),
            parts.median().name.suffix("_ns_median"),
            pl.col("overhead").sum().alias("overhead_ns"),
            pl.col("graph").drop_nulls().first(),
        )
        .sort(["cpu", "name"], descending=[True, False])
        .drop("cpu")
    )
    versions = frame["name"].unique().str.extract_groups(_VERSION)
    numbered = pl.DataFrame({"frame": versions.struct[0], "version": versions.struct[1].cast(pl.Int64)}).drop_nulls()
    breaks = chains.trace.names.str.contains("torch_dynamo_resume_in", literal=True).sum()
    followed = np.isfinite(guard).sum()
    return Compile(
        compile=Compilation(
            regions=tuple(Region(**row) for row in regions.iter_rows(named=True)),
            recompilations=int((numbered["version"] > 0).sum()) if numbered.height else None,
            graph_breaks=int(breaks) if breaks or chains.frames.height else None,
            guard_lookups=len(lookups),
            lookups_without_region=max(0, len(lookups) - int(followed)),
            compile_time_ns=compile_ns,
        )
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
