"""Kernels, copies and fills by name: time with its spread, launch shape, occupancy, what the name says."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.index.build import Chains
from analyzer.index.intervals import spread
from analyzer.index.kernel_names import Decoded, decode
from analyzer.index.occupancy import Occupancy, theoretical
from analyzer.model import Column, Section, Table, Unit

ORDER = 50


@dataclass(frozen=True, slots=True)
class Kernel:
    """All device work of one name. Times in ns.

    spread_ns  robust standard deviation of the durations.
    share      of the sum of all device work's durations.
    grid etc.  of the launch shape that took the most time; `shapes` counts the different ones.
    reported   the profiler's own occupancy estimate, 0 to 1, None: not recorded.
    """

    name: str
    cat: Cat
    decoded: Decoded
    calls: int
    total_ns: int
    median_ns: float
    spread_ns: float
    min_ns: int
    max_ns: int
    share: float
    shapes: int
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    registers: int | None
    shared_memory: int | None
    reported: float | None
    occupancy: Occupancy | None


@dataclass(frozen=True, slots=True)
class Kernels:
    rows: tuple[Kernel, ...]  # largest total first
    total_ns: int

    def contract(self) -> dict[str, Any]:
        return {
            "kernels": [
                {
                    "name": k.name,
                    "kind": k.decoded.kind,
                    "calls": k.calls,
                    "total_us": units.us(k.total_ns),
                    "mean_us": units.us(k.total_ns / k.calls),
                    "median_us": units.us(k.median_ns),
                    "spread_us": units.us(k.spread_ns),
                    "min_us": units.us(k.min_ns),
                    "max_us": units.us(k.max_ns),
                    "share": k.share,
                    "launch_shapes": k.shapes,
                    "grid": k.grid,
                    "block": k.block,
                    "registers_per_thread": k.registers,
                    "shared_memory_bytes": k.shared_memory,
                    "occupancy_reported": k.reported,
                    "occupancy_theoretical": k.occupancy.share if k.occupancy else None,
                    "limited_by": k.occupancy.limited_by if k.occupancy else None,
                    "tensor_cores": k.decoded.tensor_cores,
                    "precision": k.decoded.precision,
                    "tile": k.decoded.tile,
                }
                for k in self.rows
            ]
        }

    def section(self, top: int) -> Section | None:
        if not self.rows:
            return None
        table = Table(
            "Kernels, copies and fills",
            (
                Column("name", Unit.NAME),
                Column("kind", Unit.TEXT),
                Column("calls", Unit.COUNT),
                Column("total", Unit.NS, bar=True),
                Column("of all", Unit.SHARE),
                Column("median", Unit.NS),
                Column("max", Unit.NS),
                Column("occ.", Unit.SHARE),
            ),
            tuple(
                (
                    k.name,
                    k.decoded.kind,
                    k.calls,
                    k.total_ns,
                    k.share,
                    k.median_ns,
                    k.max_ns,
                    k.occupancy.share if k.occupancy else k.reported if k.reported is not None else "",
                )
                for k in self.rows[:top]
            ),
            hidden=max(0, len(self.rows) - top),
            note="occ.: theoretical occupancy, from registers, shared memory and block; low is often by design",
        )
        return Section("kernels", "Kernels", tables=(table,))


def analyze(chains: Chains) -> Kernels:
    work = chains.device
    total = int(work["dur"].sum())
    table = (
        work.group_by("name", "cat")
        .agg(
            calls=pl.len(),
            total=pl.col("dur").sum(),
            median=pl.col("dur").median(),
            spread=spread("dur"),
            shortest=pl.col("dur").min(),
            longest=pl.col("dur").max(),
        )
        .sort(["total", "name"], descending=[True, False])
    )
    shapes = (
        work.filter(pl.col("config") >= 0)
        .group_by("name", "device", "config")
        .agg(total=pl.col("dur").sum())
        .sort(["total", "config"], descending=[True, False])
        .group_by("name", maintain_order=True)
        .agg(pl.col("config").first(), pl.col("device").first(), pl.col("config").n_unique().alias("shapes"))
    )
    launch = {name: (config, device, count) for name, config, device, count in shapes.iter_rows()}
    configs = chains.trace.configs
    rows = []
    names = chains.text(table["name"])
    for text, (name, cat, calls, ns, median, deviation, shortest, longest) in zip(
        names, table.iter_rows(), strict=True
    ):
        config, device, count = launch.get(name, (-1, -1, 0))
        c: dict[str, Any] = configs.row(config, named=True) if config >= 0 else dict.fromkeys(configs.columns)
        block = _triple(c, "block")
        threads = prod(block) if block else None
        rows.append(
            Kernel(
                name=text,
                cat=Cat(cat),
                decoded=decode(text) if cat == Cat.KERNEL else Decoded("copy" if cat == Cat.MEMCPY else "memset"),
                calls=calls,
                total_ns=ns,
                median_ns=median,
                spread_ns=deviation,
                min_ns=shortest,
                max_ns=longest,
                share=ns / total if total else 0.0,
                shapes=count,
                grid=_triple(c, "grid"),
                block=block,
                registers=c["registers"],
                shared_memory=c["shared_memory"],
                reported=None if c["occupancy"] is None else c["occupancy"] / 100,
                occupancy=theoretical(
                    threads, c["registers"], c["shared_memory"], chains.device_properties.get(device, {})
                ),
            )
        )
    return Kernels(tuple(rows), total)


def _triple(config: dict[str, Any], what: str) -> tuple[int, int, int] | None:
    x, y, z = (config[f"{what}_{axis}"] for axis in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)
