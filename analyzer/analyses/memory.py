"""Memory: peaks from the allocator's own instants, where `profile_memory` recorded them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import polars as pl

from analyzer.index.build import Chains
from analyzer.report.blocks import Block, cells, table
from analyzer.report.columns import Bytes, Count, Row, Unit, column
from analyzer.report.results import Result

ORDER = 75


class Allocator(Row, frozen=True, kw_only=True):
    """One device's allocator, or the CPU's."""

    IDENTITY: ClassVar[str] = "device"

    device: Annotated[int | Literal["cpu"], column("device", "id of the device, or `cpu`")]
    peak_allocated_bytes: Annotated[
        Bytes | None, column("peak allocated", "most that tensors held; null: totals were not recorded")
    ]
    peak_reserved_bytes: Annotated[
        Bytes | None, column("peak reserved", "most that the allocator held; null: totals were not recorded")
    ]
    net_change_bytes: Annotated[Bytes, column("net change", "allocations less releases in the recording")]
    events: Annotated[Count, column("events", "allocations and releases")]


def _title(row: Allocator) -> str:
    return "CPU" if row.device == "cpu" else f"GPU {row.device}"


class Memory(Result, frozen=True, kw_only=True):
    SECTION = "memory"
    TITLE = "Memory"
    DETAIL = True

    memory: tuple[Allocator, ...]

    def blocks(self) -> Iterator[Block]:
        if self.memory:
            yield table(
                "Memory",
                Allocator,
                self.memory,
                cells("device", Unit.TEXT, _title),
                "peak_allocated_bytes",
                "peak_reserved_bytes",
                "net_change_bytes",
                "events",
            )


def analyze(chains: Chains) -> Memory:
    cpu = pl.col("device_type") == 0
    devices = (
        chains.trace.memory.with_columns(device=pl.when(~cpu).then("device_id"))
        .group_by("device")
        .agg(
            peak_allocated_bytes=pl.col("allocated").max(),
            peak_reserved_bytes=pl.col("reserved").max(),
            net_change_bytes=pl.col("bytes").sum(),
            events=pl.len(),
        )
        .sort("device", nulls_last=True)
    )
    return Memory(
        memory=tuple(
            Allocator(device="cpu" if (device := row.pop("device")) is None else device, **row)
            for row in devices.iter_rows(named=True)
        )
    )
