"""Copies by kind: how much, how fast, how many small ones, and which pass through pageable memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.index.build import Chains
from analyzer.index.exposure import SMALL_BYTES
from analyzer.report.blocks import Block, cells, table
from analyzer.report.columns import Bytes, Count, MeanNs, Name, Ns, Row, Unit, column
from analyzer.report.results import Result

ORDER = 55


class Asker(Row, frozen=True, kw_only=True):
    """An operator that asked for copies of one kind."""

    name: Annotated[Name, column("operator", "the innermost one that held the copy's call")]
    count: Annotated[Count, column("count", "copies that it asked for")]


class CopyKind(Row, frozen=True, kw_only=True):
    """All copies or fills of one kind."""

    IDENTITY: ClassVar[str] = "kind"

    kind: Annotated[Name, column("kind", "the event's name: direction and kinds of memory")]
    count: Annotated[Count, column("count", "copies or fills")]
    total_ns: Annotated[Ns, column("total", "sum of the durations", bar=True)]
    median_ns: Annotated[MeanNs, column("median", "duration")]
    max_ns: Annotated[Ns, column("", "duration of the longest")]
    bytes: Annotated[Bytes | None, column("bytes", "of all; null: not recorded")]
    small: Annotated[Count, column("small", "those under 64 KiB, where the set-up costs more than the bytes")]
    gb_per_s: Annotated[
        float | None, column("", "bytes by the sum of the durations, in GB/s; null: bytes not recorded, or no time")
    ]
    operators: Annotated[tuple[Asker, ...], column("", "who asked, most first, ten at most")]


def _bandwidth(kind: CopyKind) -> float | None:
    return None if kind.gb_per_s is None else kind.gb_per_s * 1e9


class Copies(Result, frozen=True, kw_only=True):
    SECTION = "copies"
    TITLE = "Copies"
    DETAIL = True

    copies: tuple[CopyKind, ...]

    def blocks(self) -> Iterator[Block]:
        if self.copies:
            yield table(
                "Copies and fills",
                CopyKind,
                self.copies,
                "kind",
                "count",
                "total_ns",
                "median_ns",
                "bytes",
                cells("bandwidth", Unit.RATE, _bandwidth),
                "small",
                cells("asked for by", Unit.NAME, lambda c: c.operators[0].name if c.operators else ""),
                note=f"small: under {units.size(SMALL_BYTES)}, where the set-up costs more than the bytes",
            )


def analyze(chains: Chains) -> Copies:
    work = chains.device.frame.filter(pl.col("cat") != int(Cat.KERNEL))
    kinds = (
        work.group_by("name")
        .agg(
            count=pl.len(),
            total_ns=pl.col("dur").sum(),
            median_ns=pl.col("dur").median(),
            max_ns=pl.col("dur").max(),
            bytes=pl.when(pl.col("bytes").is_not_null().any()).then(pl.col("bytes").sum()),
            small=(pl.col("bytes") < SMALL_BYTES).sum(),
        )
        # Bytes a nanosecond are GB a second.
        .with_columns(
            gb_per_s=pl.when(pl.col("bytes") > 0, pl.col("total_ns") > 0).then(pl.col("bytes") / pl.col("total_ns"))
        )
        .sort(["total_ns", "name"], descending=[True, False])
    )
    asked: dict[int, list[Asker]] = {}
    linked = work.filter(pl.col("launch").is_not_null())
    if linked.height:
        holder = chains.host.holder[linked["launch"].to_numpy()]
        owners = (
            linked.select("name")
            .with_columns(row=pl.Series(holder))
            .filter(pl.col("row") >= 0)
            .with_columns(operator=chains.host.frame["name"].gather(holder[holder >= 0]))
            .group_by("name", "operator")
            .len("count")
            .sort(["count", "operator"], descending=[True, False])
        )
        for (name, _, count), text in zip(owners.iter_rows(), chains.trace.text(owners["operator"]), strict=True):
            asked.setdefault(name, []).append(Asker(name=text, count=count))
    return Copies(
        copies=tuple(
            CopyKind(kind=text, operators=tuple(asked.get(row.pop("name"), ())[:10]), **row)
            for text, row in zip(chains.trace.text(kinds["name"]), kinds.iter_rows(named=True), strict=True)
        )
    )
