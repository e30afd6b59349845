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
from typing import Any

import numpy as np
import polars as pl

from analyzer import units
from analyzer.chains.build import Chains
from analyzer.chains.intervals import spread
from analyzer.model import Column, Section, Table, Unit
from analyzer.trace.schema import Cat

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
    host = chains.host
    operator = chains.cat == Cat.OP
    waits, profiler = chains.wait_ns, chains.profiler_ns
    own_wait, own_profiler = chains.by_holder(waits), chains.by_holder(profiler)
    name = host.name
    # Calls and annotations are no operators: give them keys of their own, so that only operators recur.
    outermost = host.outermost(np.where(operator, name, -1 - np.arange(host.height)).astype(np.int64))
    duration = host.end - host.start
    own_tax = np.maximum(chains.own_ns - own_wait - own_profiler, 0)
    table = (
        pl.DataFrame(
            {
                "name": name,
                "cpu": np.where(outermost, duration, 0),
                "self_cpu": host.self_ns,
                "tax": np.where(outermost, np.maximum(duration - host.below(waits) - host.below(profiler), 0), 0),
                "self_tax": own_tax,
                "wait": np.where(outermost, host.below(waits), 0),
                "self_wait": own_wait,
                "profiler": own_profiler,
                "device": np.where(outermost, host.below(chains.direct_device_ns), 0),
                "self_device": chains.by_holder(chains.direct_device_ns),
                "events": np.where(outermost, host.below(chains.direct_device_events), 0),
            }
        )
        .filter(pl.Series(operator))
        .group_by("name")
        .agg(
            pl.len().alias("calls"),
            pl.col("cpu", "self_cpu", "tax", "self_tax").sum(),
            pl.col("self_tax").median().alias("median"),
            spread("self_tax").alias("spread"),
            pl.col("self_tax").max().alias("longest"),
            pl.col("wait", "self_wait", "profiler", "device", "self_device", "events").sum(),
        )
        .sort(["self_tax", "name"], descending=[True, False])
    )
    names = chains.text(table["name"])
    return Operators(tuple(Operator(text, *row[1:]) for text, row in zip(names, table.iter_rows(), strict=True)))
