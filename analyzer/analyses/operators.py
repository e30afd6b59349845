"""Operators: what each costs the CPU (its tax) and the device, waits and the profiler taken out.

cpu         host time, inclusive; of a recursion the outermost call only
self_cpu    cpu less the events nested directly in it, host calls included: as torch's own table has it
wait        blocking waits inside, inclusive
tax         cpu less waits less the profiler's time, inclusive
self_tax    the operator's own part of the tax: its self time and the host calls it makes directly
device      device time launched inside, inclusive, each kernel once; self_device: by its own calls
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.index.build import Chains
from analyzer.index.intervals import spread
from analyzer.model import Column, Section, Table, Unit

if TYPE_CHECKING:
    from analyzer.index.tree import Ints

ORDER = 40


@dataclass(frozen=True, slots=True)
class Operator:
    """All calls of one operator. Times in ns."""

    name: str
    calls: int
    cpu_ns: int
    self_cpu_ns: int
    tax_ns: int
    self_tax_ns: int
    self_tax_median_ns: float
    self_tax_spread_ns: float
    self_tax_max_ns: int
    wait_ns: int
    self_wait_ns: int
    profiler_ns: int
    device_ns: int
    self_device_ns: int
    device_events: int


@dataclass(frozen=True, slots=True)
class Operators:
    rows: tuple[Operator, ...]  # largest self tax first

    def contract(self) -> dict[str, Any]:
        return {
            "operators": [
                {
                    "name": o.name,
                    "calls": o.calls,
                    **{f.name[:-3] + "_us": units.us(getattr(o, f.name)) for f in fields(o) if f.name.endswith("_ns")},
                    "device_events": o.device_events,
                    "tax_ratio": o.tax_ns / o.device_ns if o.device_ns else None,
                }
                for o in self.rows
            ]
        }

    @property
    def self_tax_ns(self) -> int:
        return sum(o.self_tax_ns for o in self.rows)

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return None
        total = self.self_tax_ns
        rest = self.rows[top:]
        waits = sum(o.self_wait_ns for o in self.rows)
        table = Table(
            "CPU tax by operator",
            (
                Column("operator", Unit.NAME),
                Column("calls", Unit.COUNT),
                Column("self tax", Unit.NS, bar=True),
                Column("of tax", Unit.SHARE),
                Column("median", Unit.NS),
                Column("max", Unit.NS),
                Column("waits", Unit.NS),
                Column("device", Unit.NS),
            ),
            tuple(
                (
                    o.name,
                    o.calls,
                    o.self_tax_ns,
                    o.self_tax_ns / total if total else None,
                    o.self_tax_median_ns,
                    o.self_tax_max_ns,
                    o.self_wait_ns or "",
                    o.self_device_ns or "",
                )
                for o in self.rows[:top]
            ),
            hidden=len(rest),
            note=f"{units.duration(waits)} of blocking waits are not counted as tax" if waits else None,
        )
        return Section("operators", "What operators cost the CPU", tables=(table,))


def analyze(chains: Chains) -> Operators:
    """Sums go by name id, a column at a time: a table of all columns of all events would be the peak of memory."""
    host = chains.host
    operator = chains.cat == Cat.OP
    name = host.name[operator]
    if not len(name):
        return Operators(())
    # Calls and annotations are no operators: give them keys of their own, so that only operators recur.
    outermost = host.outermost(np.where(operator, host.name, -1 - np.arange(host.height)).astype(np.int64))[operator]

    def total(values: Ints) -> Ints:
        return np.bincount(name, weights=values.astype(np.float64)).astype(np.int64)

    def inclusive(values: Ints) -> Ints:
        return total(np.where(outermost, host.below(values)[operator], 0))

    waits, profiler = chains.wait_ns, chains.profiler_ns
    own_wait, own_profiler = chains.by_holder(waits)[operator], chains.by_holder(profiler)[operator]
    own_tax = np.maximum(chains.own_ns[operator] - own_wait - own_profiler, 0)
    duration = (host.end - host.start)[operator]
    spared = (host.below(waits) + host.below(profiler))[operator]
    sums = {
        "cpu_ns": total(np.where(outermost, duration, 0)),
        "self_cpu_ns": total(host.self_ns[operator]),
        "tax_ns": total(np.where(outermost, np.maximum(duration - spared, 0), 0)),
        "wait_ns": inclusive(waits),
        "self_wait_ns": total(own_wait),
        "profiler_ns": total(own_profiler),
        "device_ns": inclusive(chains.direct_device_ns),
        "self_device_ns": total(chains.by_holder(chains.direct_device_ns)[operator]),
        "device_events": inclusive(chains.direct_device_events),
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
    return Operators(
        tuple(
            Operator(name=text, **{key: int(values[row["id"]]) for key, values in sums.items()}, **_without_id(row))
            for text, row in zip(chains.text(calls["id"]), calls.iter_rows(named=True), strict=True)
        )
    )


def _without_id(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "id"}
