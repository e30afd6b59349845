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

from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.index.intervals import cover
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
    parent: Annotated[
        Name | None, column("inside", "region that it resumes after a break, or is called from; null: none", blank=True)
    ]
    calls: Annotated[Count, column("calls", "of it")]
    breaks: Annotated[Count, column("breaks", "regions directly inside it: where its graph breaks")]
    user_ns_at_breaks: Annotated[Ns, column("at breaks", "host time of the user's code at these, all calls")]
    cpu_ns_median: Annotated[MeanNs, column("CPU", "host time of a call with all inside it, guards not included")]
    guard_ns_median: Annotated[
        MeanNs | None,
        column("guards", "which compiled version fits: the lookup before the region; null: none recorded"),
    ]
    prologue_ns_median: Annotated[MeanNs, column("prologue", "wrappers before the generated code")]
    generated_ns_median: Annotated[MeanNs, column("generated", "the generated code's own time, outside operators")]
    operators_ns_median: Annotated[MeanNs, column("operators", "operators that the generated code calls")]
    overhead_ns_median: Annotated[
        MeanNs, column("own", "the region's own time, outside all that is nested in it and the user's code at breaks")
    ]
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
        Count | None,
        column("graph breaks", "places where a region resumes inside another, or by Python frames; null: neither told"),
    ]
    break_ns: Annotated[Ns, column("", "idle time of devices at the breaks: the user's code and the guards after it")]
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
        yield metric(found, "graph_breaks", "where a region resumes inside another")
        yield metric(found, "guard_lookups")
        yield metric(found, "lookups_without_region", "the function ran eagerly")
        if found.regions:
            yield table(
                "Compiled regions",
                Region,
                found.regions,
                "name",
                "parent",
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
    host, role = chains.host, chains.host.role
    lookups = np.nonzero(role == Role.GUARDS)[0]
    compiling = np.nonzero((role == Role.COMPILE) & (host.enclosing(role == Role.COMPILE) < 0))[0]
    compile_ns = cover(pl.DataFrame({"ts": host.start[compiling], "end": host.end[compiling]})).total
    found = chains.host.regions
    rows, parent, guard = (found[column].to_numpy() for column in ("row", "parent", "guard"))
    if not len(rows):
        return Compile(
            compile=Compilation(
                regions=(),
                recompilations=None,
                graph_breaks=None,
                break_ns=0,
                guard_lookups=len(lookups),
                lookups_without_region=len(lookups),
                compile_time_ns=compile_ns,
            )
        )
    names = chains.trace.text(host.frame["name"].gather(rows))
    table = _calls(chains, names)
    shown = pl.col("cpu", "guard", "prologue", "generated", "operators", "overhead", "device")
    regions = (
        table.group_by("name")
        .agg(
            pl.col("parent").drop_nulls().mode().sort().first(),
            pl.len().alias("calls"),
            pl.col("cpu").sum(),
            shown.median().name.suffix("_ns_median"),
            pl.col("overhead").sum().alias("overhead_ns"),
            pl.col("user").sum().alias("user_ns_at_breaks"),
            pl.col("graph").drop_nulls().first(),
        )
        .join(
            table.drop_nulls("parent").group_by("parent").agg(breaks=pl.col("name").n_unique()),
            left_on="name",
            right_on="parent",
            how="left",
        )
        .with_columns(pl.col("breaks").fill_null(0))
        .sort(["cpu", "name"], descending=[True, False])
        .drop("cpu")
    )
    versions = table["name"].unique().str.extract_groups(_VERSION)
    numbered = pl.DataFrame({"frame": versions.struct[0], "version": versions.struct[1].cast(pl.Int64)}).drop_nulls()
    resumed = int(chains.trace.names.str.contains("torch_dynamo_resume_in", literal=True).sum())
    # Versions of one resumed function break at one place.
    nested = table.drop_nulls("parent")["name"].str.replace(r"/\d+$", "").n_unique()
    nested_rows = np.nonzero(parent >= 0)[0]
    begun = np.where(guard >= 0, guard, rows)[nested_rows]
    since = host.start[begun] - found["user_ns"].to_numpy()[nested_rows]
    return Compile(
        compile=Compilation(
            regions=tuple(Region(**row) for row in regions.iter_rows(named=True)),
            recompilations=int((numbered["version"] > 0).sum()) if numbered.height else None,
            graph_breaks=max(nested, resumed) if nested or resumed or numbered.height or chains.frames.height else None,
            break_ns=int(exposure.waited_during(chains, since, host.start[rows[nested_rows]]).sum()),
            guard_lookups=len(lookups),
            lookups_without_region=len(lookups) - len(np.unique(guard[guard >= 0])),
            compile_time_ns=compile_ns,
        )
    )


def _calls(chains: Chains, names: pl.Series) -> pl.DataFrame:
    """One row a call of a region, times in ns. What is nested in a region is that one's, and not its own."""
    host, role, found = chains.host, chains.host.role, chains.host.regions
    rows, parent, guard, user = (found[column].to_numpy() for column in ("row", "parent", "guard", "user_ns"))
    listed = np.zeros(host.height, bool)
    listed[rows] = True
    region = host.nearest(listed)
    at = np.searchsorted(rows, parent)

    def inside(wanted: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        mine = wanted & (region >= 0)
        total = np.bincount(region[mine], weights=values[mine].astype(np.float64), minlength=host.height)
        return np.asarray(total[rows].astype(np.int64))

    every = inside(np.ones(host.height, bool), host.self_ns)
    prologue = inside(role == Role.PROLOGUE, chains.host.own_ns)
    generated = inside((role == Role.REGION_PART) | ((role == Role.REGION) & ~listed), chains.host.own_ns)
    guards = inside(role == Role.GUARDS, host.self_ns)
    at_breaks = np.bincount(at[parent >= 0], weights=user[parent >= 0], minlength=len(rows)).astype(np.int64)
    own = host.self_ns[rows]
    overhead = np.maximum(own - at_breaks, 0)
    length = host.end - host.start
    return pl.DataFrame(
        {
            "name": names,
            "parent": chains.trace.text(pl.Series(np.where(parent >= 0, host.name[parent], -1).astype(np.int32))),
            "cpu": length[rows],
            "guard": pl.select(pl.when(pl.Series(guard >= 0)).then(pl.Series(length[guard]))).to_series(),
            "prologue": prologue,
            "generated": generated,
            "operators": np.maximum(every - own - prologue - generated - guards, 0),
            "overhead": overhead,
            "user": at_breaks,
            "device": work_of(chains, rows).device_ns,
            "graph": _graphs(chains, rows),
        }
    )


def _graphs(chains: Chains, rows: np.ndarray[Any, Any]) -> pl.Series:
    """Id of the generated code that each region calls first, null if its name says none."""
    host = chains.host
    ids = chains.trace.names.str.extract(_GRAPH).gather(host.frame["name"])
    calls = np.nonzero(ids.is_not_null().to_numpy())[0]
    slot = np.searchsorted(calls, rows, "left")
    row = calls[np.minimum(slot, len(calls) - 1)] if len(calls) else rows
    inside = (slot < len(calls)) & (row < host.last[rows])
    return pl.select(pl.when(pl.Series(inside)).then(ids.gather(row))).to_series()
