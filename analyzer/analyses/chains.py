"""Chain patterns: the different paths that led to device work, with what each link costs.

A chain is one device event with the path above it: annotation > operator > ... > host calls made
before the launch > launch call > kernel. Chains with the same path of names are one pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index.build import Chains
from analyzer.index.tree import take
from analyzer.index.vocabulary import Call
from analyzer.report.blocks import Block, cells, table
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, Unit, column
from analyzer.report.results import Result

ORDER = 35

#: The JSON report lists the patterns with the most chains and device time, up to this many.
MOST = 200
#: Odd, so that multiplying by it loses nothing modulo 2^64; the fraction of the golden ratio spreads well.
_BASE = np.uint64(0x9E3779B97F4A7C15)


class Pattern(Row, frozen=True, kw_only=True):
    """Chains with the same path of names. Medians are of a chain."""

    path: Annotated[
        tuple[str, ...], column("", "steps and annotations, the module and operators, outermost first; []: unlinked")
    ]
    count: Annotated[Count, column("count", "chains")]
    host_calls: Annotated[tuple[str, ...], column("", "calls of the operator before the launch, in order")]
    host_call_kinds: Annotated[tuple[str, ...], column("", "kinds of `host_calls`, as `host_calls[].kind` has them")]
    launch: Annotated[Name | None, column("", "the launch call; null: not linked")]
    device_work: Annotated[Name, column("device work", "the kernel, copy or fill")]
    cpu_ns_median: Annotated[
        MeanNs | None,
        column("CPU", "time of the innermost operator, its own and its calls'; null: launched by none"),
    ]
    device_ns_median: Annotated[MeanNs, column("device", "duration of the device work")]
    device_ns_max: Annotated[Ns, column("max", "longest duration of the device work")]
    device_ns_total: Annotated[Ns, column("", "sum over all chains")]
    latency_ns_median: Annotated[
        MeanNs | None,
        column("latency", "start of the launch call to start of the work; null: not linked, or clock skew alone"),
    ]


class ChainPatterns(Result, frozen=True, kw_only=True):
    SECTION = "chains"
    TITLE = "Dispatch chains"

    chains: tuple[Pattern, ...]  # most device time first
    chain_patterns: Annotated[Count, column("", "different patterns, those beyond the listed ones included")]

    def blocks(self) -> Iterator[Block]:
        if not self.chains:
            return
        note = "medians per chain, with the device's max; CPU: the operator's own time with the calls it makes"
        if more := self.chain_patterns - len(self.chains):
            note += f"; {more:,} patterns with less device time are not listed"
        yield table(
            "Dispatch chains",
            Pattern,
            self.chains,
            cells("operator", Unit.NAME, lambda p: p.path[-1] if p.path else "(no operator)"),
            cells("calls before", Unit.TEXT, lambda p: _counted(p.host_call_kinds)),
            cells("launched by", Unit.NAME, lambda p: p.launch or "n/a: not linked"),
            "device_work",
            "count",
            "cpu_ns_median",
            "latency_ns_median",
            "device_ns_median",
            "device_ns_max",
            note=note,
        )


def _counted(kinds: tuple[str, ...]) -> str:
    """Host calls before a launch by kind: `2 occupancy, 1 attribute`; the JSON has their names."""
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items(), key=lambda item: -item[1]))


def analyze(chains: Chains) -> ChainPatterns:
    host = chains.host
    path = chains.places.path_id
    before = _calls_before(chains)
    work = chains.device.frame.select("name", "dur", "launch", "ts").with_columns(launch=pl.col("launch").fill_null(-1))
    row = work["launch"].to_numpy()
    linked = row >= 0
    holder = np.where(linked, take(chains.host.holder, row), -1)
    modules = np.full(len(row), -1, np.int32)
    modules[linked] = chains.frames.modules(chains.host, row[linked])
    place = chains.places.names.rank("dense").cast(pl.Int32).to_numpy()
    frame = work.with_columns(
        path=pl.Series(np.where(holder >= 0, take(path, holder), -1)),
        module=pl.Series(np.where(modules >= 0, take(place, modules), -1)),
        module_name=pl.Series(modules),
        calls=pl.Series(np.where(linked, take(before, row), -1)),
        call=pl.Series(np.where(linked, take(host.name, row), -1)),
        holder=pl.Series(holder),
        cpu=pl.Series(np.where(holder >= 0, take(chains.host.own_ns, holder), 0)),
        latency=pl.Series(np.where(linked, work["ts"].to_numpy() - take(host.start, row), 0)),
        example=pl.Series(row),
    )
    grouped = (
        frame.group_by("path", "module", "calls", "call", "name")
        .agg(
            count=pl.len(),
            cpu=pl.col("cpu").filter(pl.col("holder") >= 0).median(),
            device=pl.col("dur").median(),
            longest=pl.col("dur").max(),
            total=pl.col("dur").sum(),
            latency=pl.col("latency").filter((pl.col("call") >= 0) & (pl.col("latency") >= 0)).median(),
            example=pl.col("example").first(),
            module_name=pl.col("module_name").first(),
        )
        .sort(
            ["total", "count", "example", "name", "path", "calls"], descending=[True, True, False, False, False, False]
        )
    )
    text = chains.trace.names
    rows = []
    for r in grouped.head(MOST).iter_rows(named=True):
        calls = _calls_of(chains, r["example"])
        rows.append(
            Pattern(
                path=_path(chains, r["example"], r["module_name"]),
                count=r["count"],
                host_calls=tuple(chains.trace.text(host.frame["name"].gather(calls)).to_list()),
                host_call_kinds=tuple(Call(kind).name.lower() for kind in chains.host.call[calls]),
                launch=None if r["call"] < 0 else text[r["call"]],
                device_work=text[r["name"]],
                cpu_ns_median=r["cpu"],
                device_ns_median=r["device"],
                device_ns_max=r["longest"],
                device_ns_total=r["total"],
                latency_ns_median=r["latency"],
            )
        )
    return ChainPatterns(chains=tuple(rows), chain_patterns=grouped.height)


def _path(chains: Chains, launch: int, module: int) -> tuple[str, ...]:
    """Steps and annotations, the module if frames were recorded, then the operators: outermost first."""
    if launch < 0:
        return ()
    path = chains.places.path(int(chains.host.holder[launch]))
    if module < 0:
        return path
    rows = chains.host.ancestors(int(chains.host.holder[launch]))
    outside = sum(1 for row in rows if chains.host.cat[row] == Cat.ANNOTATION)
    return (*path[:outside], chains.places.names[module], *path[outside:])


def _calls_before(chains: Chains) -> np.ndarray[Any, Any]:
    """For each launch call, a number for the sequence of calls since the launch before it in one operator.

    The sequence is folded to a polynomial in a large odd base, modulo 2^64: equal sequences have equal
    numbers, and no call 0.
    """
    calls = np.nonzero(chains.host.is_call & (chains.host.holder >= 0))[0]
    calls = calls[np.argsort(chains.host.holder[calls], kind="stable")]
    out = np.zeros(chains.host.height, np.int64)
    if not len(calls):
        return out
    holder, launch = chains.host.holder[calls], chains.launching.recorded[calls]
    fresh = np.append(True, (holder[1:] != holder[:-1]) | launch[:-1])
    begin = np.maximum.accumulate(np.where(fresh, np.arange(len(calls)), 0))
    place = np.arange(len(calls)) - begin
    weights = np.cumprod(np.full(int(place.max()) + 1, _BASE, np.uint64))
    terms = np.where(launch, np.uint64(0), (chains.host.name[calls] + 1).astype(np.uint64) * weights[place])
    total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms)))
    out[calls[launch]] = (total[:-1] - total[begin])[launch].view(np.int64)
    return out


def _calls_of(chains: Chains, launch: int) -> list[int]:
    """Rows of the calls in the same operator since the launch before this one."""
    if launch < 0 or chains.host.holder[launch] < 0:
        return []
    holder = int(chains.host.holder[launch])
    mine = np.arange(holder + 1, launch)
    mine = mine[chains.host.is_call[mine] & (chains.host.holder[mine] == holder)]
    launches = mine[chains.launching.recorded[mine]]
    mine = mine[mine > launches[-1]] if len(launches) else mine
    return [int(row) for row in mine]
