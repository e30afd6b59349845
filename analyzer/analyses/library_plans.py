"""What cuDNN's and MIOpen's operators cost the host beyond a plain operator: execution plans, looked up or built."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.report.columns import Count, MeanNs, Name, Ns, Row, column
from analyzer.report.results import Result

ORDER = 41

_PLANNED = r"^aten::(?:_cudnn_attention_(?:forward|backward)|(?:cudnn|miopen)_convolution\w*)$"


class Plan(Row, frozen=True, kw_only=True):
    """An operator that asks the library for a plan in each call."""

    name: Annotated[Name, column("operator", "as in `operators`")]
    calls: Annotated[Count, column("calls", "of it")]
    excess_ns: Annotated[MeanNs, column("excess", "median self tax of a call, less that of a plain operator")]
    exposed_ns: Annotated[Ns, column("exposed", "what the device waited for of the excess, each moment once")]


class Plans(Row, frozen=True, kw_only=True):
    usual_ns: Annotated[
        MeanNs | None, column("plain operator", "median self tax of other operators that launch; null: there are none")
    ]
    operators: tuple[Plan, ...]


class LibraryPlans(Result, frozen=True, kw_only=True):
    library_plans: Plans


def analyze(chains: Chains) -> LibraryPlans:
    planned = exposure.operators(chains, _PLANNED)
    if not planned.any():
        return LibraryPlans(library_plans=Plans(usual_ns=None, operators=()))
    operator = chains.host.cat == Cat.OP
    by_name = (
        pl.DataFrame(
            {
                "name": chains.host.name[operator],
                "planned": planned[operator],
                "tax": exposure.own_tax_ns(chains)[operator],
                "device": chains.host.by_holder(chains.device.launched_ns)[operator],
            }
        )
        .group_by("name")
        .agg(pl.col("planned").first(), pl.len().alias("calls"), pl.col("tax").median(), pl.col("device").sum())
    )
    plain = by_name.filter(~pl.col("planned") & (pl.col("device") > 0))
    if not plain.height:
        return LibraryPlans(library_plans=Plans(usual_ns=None, operators=()))
    usual = float(np.median(np.repeat(plain["tax"].to_numpy(), plain["calls"].to_numpy())))
    mine = by_name.filter("planned").sort("tax", "name", descending=True)
    rows = tuple(
        _plan(chains, text, row["name"], row["calls"], row["tax"] - usual)
        for text, row in zip(chains.trace.text(mine["name"]), mine.iter_rows(named=True), strict=True)
    )
    return LibraryPlans(library_plans=Plans(usual_ns=usual, operators=rows))


def _plan(chains: Chains, text: str, name: int, calls: int, excess: float) -> Plan:
    rows = np.nonzero((chains.host.cat == Cat.OP) & (chains.host.name == name))[0]
    # At most what is usual for it: the first call also loads and tunes, which `first_use` counts.
    return Plan(name=text, calls=calls, excess_ns=excess, exposed_ns=exposure.waited(chains, rows, max(excess, 0.0)))
