"""Copies by kind: how much, how fast, how many small ones, and which pass through pageable memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.index.build import Chains
from analyzer.model import Column, Section, Table, Unit

ORDER = 55

#: Below this a copy's time is its set-up, not its bytes: PCIe moves 64 KiB in about 2 µs.
SMALL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Copies:
    """All copies or fills of one kind (its name). Times in ns; bandwidth in bytes/s, None if it has no time."""

    kind: str
    count: int
    total_ns: int
    median_ns: float
    max_ns: int
    bytes: int | None
    small: int
    operators: tuple[tuple[str, int], ...]  # who asked: (operator, count), most first

    @property
    def bandwidth(self) -> float | None:
        return self.bytes / self.total_ns * 1e9 if self.bytes and self.total_ns else None


@dataclass(frozen=True, slots=True)
class CopyKinds:
    rows: tuple[Copies, ...]

    def contract(self) -> dict[str, Any]:
        return {
            "copies": [
                {
                    "kind": c.kind,
                    "count": c.count,
                    "total_us": units.us(c.total_ns),
                    "median_us": units.us(c.median_ns),
                    "max_us": units.us(c.max_ns),
                    "bytes": c.bytes,
                    "small": c.small,
                    "gb_per_s": None if c.bandwidth is None else c.bandwidth / 1e9,
                    "operators": [{"name": name, "count": count} for name, count in c.operators],
                }
                for c in self.rows
            ]
        }

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return None
        table = Table(
            "Copies and fills",
            (
                Column("kind", Unit.NAME),
                Column("count", Unit.COUNT),
                Column("total", Unit.NS, bar=True),
                Column("median", Unit.NS),
                Column("bytes", Unit.BYTES),
                Column("bandwidth", Unit.RATE),
                Column("small", Unit.COUNT),
                Column("asked for by", Unit.NAME),
            ),
            tuple(
                (
                    c.kind,
                    c.count,
                    c.total_ns,
                    c.median_ns,
                    c.bytes,
                    c.bandwidth,
                    c.small,
                    c.operators[0][0] if c.operators else "",
                )
                for c in self.rows[:top]
            ),
            hidden=max(0, len(self.rows) - top),
            note=f"small: under {units.size(SMALL_BYTES)}, where the set-up costs more than the bytes",
        )
        return Section("copies", "Copies", tables=(table,), detail=True)


def analyze(chains: Chains) -> CopyKinds:
    work = chains.device.filter(pl.col("cat") != int(Cat.KERNEL))
    table = (
        work.group_by("name")
        .agg(
            count=pl.len(),
            total_ns=pl.col("dur").sum(),
            median_ns=pl.col("dur").median(),
            max_ns=pl.col("dur").max(),
            bytes=pl.when(pl.col("bytes").is_not_null().any()).then(pl.col("bytes").sum()),
            small=(pl.col("bytes") < SMALL_BYTES).sum(),
        )
        .sort(["total_ns", "name"], descending=[True, False])
    )
    asked: dict[int, list[tuple[str, int]]] = {}
    linked = work.filter(pl.col("launch").is_not_null())
    if linked.height:
        holder = chains.holder[linked["launch"].to_numpy()]
        owners = (
            linked.select("name")
            .with_columns(row=pl.Series(holder))
            .filter(pl.col("row") >= 0)
            .with_columns(operator=chains.host.frame["name"].gather(holder[holder >= 0]))
            .group_by("name", "operator")
            .len("count")
            .sort(["count", "operator"], descending=[True, False])
        )
        for (name, _, count), text in zip(owners.iter_rows(), chains.text(owners["operator"]), strict=True):
            asked.setdefault(name, []).append((text, count))
    return CopyKinds(
        tuple(
            Copies(kind=text, operators=tuple(asked.get(row.pop("name"), ())[:10]), **row)
            for text, row in zip(chains.text(table["name"]), table.iter_rows(named=True), strict=True)
        )
    )
