"""Memory: peaks from the allocator's own instants, where `profile_memory` recorded them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from analyzer.index.build import Chains
from analyzer.model import Column, Section, Table, Unit

ORDER = 75


@dataclass(frozen=True, slots=True)
class Memory:
    """One device's allocator. Bytes; peaks None where totals were not recorded. id None: the CPU."""

    id: int | None
    peak_allocated: int | None
    peak_reserved: int | None
    net_change: int
    events: int

    @property
    def title(self) -> str:
        return "CPU" if self.id is None else f"GPU {self.id}"


@dataclass(frozen=True, slots=True)
class MemoryPeaks:
    rows: tuple[Memory, ...]

    def contract(self) -> dict[str, Any]:
        return {
            "memory": [
                {
                    "device": "cpu" if m.id is None else m.id,
                    "peak_allocated_bytes": m.peak_allocated,
                    "peak_reserved_bytes": m.peak_reserved,
                    "net_change_bytes": m.net_change,
                    "events": m.events,
                }
                for m in self.rows
            ]
        }

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return None
        table = Table(
            "Memory",
            (
                Column("device", Unit.TEXT),
                Column("peak allocated", Unit.BYTES),
                Column("peak reserved", Unit.BYTES),
                Column("net change", Unit.BYTES),
                Column("events", Unit.COUNT),
            ),
            tuple((m.title, m.peak_allocated, m.peak_reserved, m.net_change, m.events) for m in self.rows[:top]),
            hidden=max(0, len(self.rows) - top),
        )
        return Section("memory", "Memory", tables=(table,), detail=True)


def analyze(chains: Chains) -> MemoryPeaks:
    cpu = pl.col("device_type") == 0
    table = (
        chains.trace.memory.with_columns(id=pl.when(~cpu).then("device_id"))
        .group_by("id")
        .agg(
            allocated=pl.col("allocated").max(),
            reserved=pl.col("reserved").max(),
            net=pl.col("bytes").sum(),
            events=pl.len(),
        )
        .sort("id", nulls_last=True)
    )
    return MemoryPeaks(tuple(Memory(*row) for row in table.iter_rows()))
