"""What compiled regions cost the host beside the work that they run, and how much of it the device waited for.

The tax of a call is the guard lookup and the region's own time outside operators and host calls, less the
profiler's. Of a region inside another only the outer one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import polars as pl

from analyzer.index import exposure
from analyzer.index.activity import REGION_ROLES
from analyzer.index.build import Call, Chains, Role
from analyzer.index.within import work_of
from analyzer.report.columns import Ns, Row, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Rows

ORDER = 62


class GraphInputs(Row, frozen=True, kw_only=True):
    """A region that replays a CUDA graph copies its inputs to where the graph expects them."""

    calls: Annotated[Durations, column("", "device time of the copies in each call that replays a graph")]
    device_ns: Annotated[Ns, column("device", "time in which such a copy ran, each moment once")]


class RegionTaxes(Row, frozen=True, kw_only=True):
    calls: Annotated[Durations | None, column("", "the regions' own time in each call; null: no region")]
    guards_ns: Annotated[Ns, column("guards", "all guard lookups, less the profiler's time in them")]
    exposed: Annotated[
        Durations | None, column("", "of each call's own time, what the device waited for; null: no region")
    ]
    exposed_ns: Annotated[Ns, column("exposed", "of own time and guards, what the device waited for, each moment once")]
    host_ahead: Annotated[bool, column("", "the usual call launches more device time than it takes the host")]
    graph_inputs: Annotated[GraphInputs | None, column("", "null: no region replays a graph")]


class RegionTax(Result, frozen=True, kw_only=True):
    region_tax: RegionTaxes


def analyze(chains: Chains) -> RegionTax:
    host, role = chains.host, chains.host.role
    regions = np.nonzero((role == Role.REGION) & (host.enclosing(role == Role.REGION) < 0))[0].astype(np.int32)
    lookups = np.nonzero(role == Role.GUARDS)[0].astype(np.int32)
    length = host.end - host.start
    own = np.where(np.isin(role, REGION_ROLES), np.maximum(host.self_ns - chains.profiler_ns, 0), 0)
    tax = host.below(own)[regions]
    guards = int((length - chains.profiler_ns)[lookups].sum())
    exposed = np.minimum(tax, exposure.waited_during(chains, host.start[regions], host.end[regions]))
    both = np.concatenate([regions, lookups])
    most = np.concatenate([tax, length[lookups]])
    return RegionTax(
        region_tax=RegionTaxes(
            calls=Durations.of(pl.Series(tax)),
            guards_ns=guards,
            exposed=Durations.of(pl.Series(exposed)),
            exposed_ns=min(exposure.waited(chains, both, most), int(tax.sum()) + guards),
            host_ahead=_ahead(chains, regions, guards),
            graph_inputs=_graph_inputs(chains, regions),
        )
    )


def _ahead(chains: Chains, regions: Rows, guards: int) -> bool:
    if not len(regions):
        return False
    length = (chains.host.end - chains.host.start)[regions]
    device = work_of(chains, regions.astype(np.int64)).device_ns
    return bool(np.median(length) + guards / len(regions) < np.median(device))


def _graph_inputs(chains: Chains, regions: Rows) -> GraphInputs | None:
    host, graph = chains.host, chains.host.call == Call.GRAPH
    replays = regions[host.below(graph.astype(np.int64))[regions] > 0]
    if not len(replays):
        return None
    wanted = np.zeros(host.height, bool)
    wanted[replays] = True
    region = host.nearest(wanted)
    work = chains.device.frame.with_columns(kind=chains.device.kind).filter(
        pl.col("launch").is_not_null() & (pl.col("kind") == "copy")
    )
    launch = work["launch"].to_numpy()
    mine = (region[launch] >= 0) & ~graph[launch]
    copies = work.filter(pl.Series(mine))
    slot = np.searchsorted(replays, region[launch[mine]])
    per_call = np.bincount(slot, copies["dur"].to_numpy().astype(np.float64), len(replays)).astype(np.int64)
    calls = Durations.of(pl.Series(per_call))
    assert calls is not None
    return GraphInputs(calls=calls, device_ns=int(exposure.once(copies).sum()))
