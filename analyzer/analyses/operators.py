"""Operators: what each costs the CPU (its tax) and the device, waits and the profiler taken out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.index.intervals import spread
from analyzer.report.blocks import Block, Table, cells, table
from analyzer.report.columns import Count, MeanNs, Name, Ns, Ratio, Row, Unit, column
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Ints

ORDER = 40


class Operator(Row, frozen=True, kw_only=True):
    """All calls of one operator. Inclusive figures count the outermost call of a recursion only."""

    name: Annotated[Name, column("operator", "as the dispatcher has it")]
    calls: Annotated[Count, column("calls", "calls, those inside a call of the same operator included")]
    cpu_ns: Annotated[Ns, column("", "host time, inclusive")]
    self_cpu_ns: Annotated[Ns, column("", "host time less the events nested directly in it, host calls included")]
    tax_ns: Annotated[Ns, column("", "host time less blocking waits and the profiler's time, inclusive")]
    self_tax_ns: Annotated[
        Ns, column("self tax", "its own part of the tax: self time and the host calls that it makes directly", bar=True)
    ]
    self_tax_median_ns: Annotated[MeanNs, column("median", "median self tax of a call")]
    self_tax_spread_ns: Annotated[MeanNs, column("", "robust standard deviation of a call's self tax: 1.4826 MAD")]
    self_tax_max_ns: Annotated[Ns, column("max", "largest self tax of a call")]
    wait_ns: Annotated[Ns, column("", "blocking waits inside, inclusive")]
    self_wait_ns: Annotated[Ns, column("waits", "blocking waits in calls that it makes directly", blank=True)]
    profiler_ns: Annotated[Ns, column("", "the profiler's own time inside, of the innermost event that spans it")]
    device_ns: Annotated[Ns, column("", "device time launched inside, inclusive, each kernel once")]
    self_device_ns: Annotated[Ns, column("device", "device time that its own calls launched", blank=True)]
    device_events: Annotated[Count, column("", "device work launched inside, inclusive")]
    tax_ratio: Annotated[Ratio | None, column("", "tax by device time, inclusive; null: it launched none")]


class Operators(Result, frozen=True, kw_only=True):
    SECTION = "operators"
    TITLE = "What operators cost the CPU"

    operators: tuple[Operator, ...]  # largest self tax first

    @property
    def self_tax_ns(self) -> int:
        return sum(o.self_tax_ns for o in self.operators)

    def blocks(self) -> Iterator[Block]:
        if not self.operators:
            return
        total = self.self_tax_ns
        waits = sum(o.self_wait_ns for o in self.operators)
        yield table(
            "CPU tax by operator",
            Operator,
            self.operators,
            "name",
            "calls",
            "self_tax_ns",
            cells("of tax", Unit.SHARE, lambda o: o.self_tax_ns / total if total else None),
            "self_tax_median_ns",
            "self_tax_max_ns",
            "self_wait_ns",
            "self_device_ns",
            note=f"{units.duration(waits)} of blocking waits are not counted as tax" if waits else None,
        )

    def first(self) -> Table | None:
        shown = "name", "calls", "self_tax_ns", "self_tax_median_ns", "self_tax_max_ns", "self_device_ns"
        return table("CPU tax by operator", Operator, self.operators, *shown) if self.operators else None


def analyze(chains: Chains) -> Operators:
    """Sums go by name id, a column at a time: a table of all columns of all events would be the peak of memory."""
    host = chains.host
    operator = chains.host.cat == Cat.OP
    name = host.name[operator]
    if not len(name):
        return Operators(operators=())
    # Calls and annotations are no operators: give them keys of their own, so that only operators recur.
    outermost = host.outermost(operator, host.name)[operator]

    def total(values: Ints) -> Ints:
        return np.bincount(name, weights=values.astype(np.float64)).astype(np.int64)

    def inclusive(values: Ints) -> Ints:
        return total(np.where(outermost, host.below(values)[operator], 0))

    waits, profiler = chains.waits.ns, chains.profiler_ns
    own_wait, own_profiler = chains.host.by_holder(waits)[operator], chains.host.by_holder(profiler)[operator]
    own_tax = exposure.own_tax_ns(chains)[operator]
    duration = (host.end - host.start)[operator]
    spared = (host.below(waits) + host.below(profiler))[operator]
    sums = {
        "cpu_ns": total(np.where(outermost, duration, 0)),
        "self_cpu_ns": total(host.self_ns[operator]),
        "tax_ns": total(np.where(outermost, np.maximum(duration - spared, 0), 0)),
        "wait_ns": inclusive(waits),
        "self_wait_ns": total(own_wait),
        "profiler_ns": total(own_profiler),
        "device_ns": inclusive(chains.device.launched_ns),
        "self_device_ns": total(chains.host.by_holder(chains.device.launched_ns)[operator]),
        "device_events": inclusive(chains.device.launched_events),
    }
    calls = (
        pl.DataFrame({"id": name, "tax": own_tax})
        .group_by("id")
        .agg(
            calls=pl.len(),
            self_tax_ns=pl.col("tax").sum(),
            self_tax_median_ns=pl.col("tax").median(),
            self_tax_spread_ns=spread("tax"),
            self_tax_max_ns=pl.col("tax").max(),
        )
        .sort(["self_tax_ns", "id"], descending=[True, False])
    )
    rows = []
    for text, row in zip(chains.trace.text(calls["id"]), calls.iter_rows(named=True), strict=True):
        figures = {key: int(values[row["id"]]) for key, values in sums.items()}
        ratio = figures["tax_ns"] / figures["device_ns"] if figures["device_ns"] else None
        rows.append(Operator(name=text, tax_ratio=ratio, **figures, **_without_id(row)))
    return Operators(operators=tuple(rows))


def _without_id(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "id"}
