"""Kernels, copies and fills by name: time with its spread, launch shape, occupancy, what the name says."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Annotated, Any, Literal

import polars as pl

from analyzer.events.schema import Cat
from analyzer.index.build import Chains
from analyzer.index.intervals import spread
from analyzer.index.kernel_names import Decoded, decode
from analyzer.index.occupancy import theoretical
from analyzer.report.blocks import Block, Table, cells, table
from analyzer.report.columns import Bytes, Count, MeanNs, Name, Ns, Row, Share, Text, Unit, column
from analyzer.report.results import Result

ORDER = 50

_CATEGORY: dict[int, Literal["kernel", "memcpy", "memset"]] = {
    Cat.KERNEL: "kernel",
    Cat.MEMCPY: "memcpy",
    Cat.MEMSET: "memset",
}


class Kernel(Row, frozen=True, kw_only=True):
    """All device work of one name. Grid to limit: of the launch shape that took the most time."""

    name: Annotated[Name, column("name", "as the profiler wrote it")]
    category: Annotated[Literal["kernel", "memcpy", "memset"], column("", "category of the events")]
    kind: Annotated[Text, column("kind", "what it computes, as far as its name says; `other`: it does not")]
    calls: Annotated[Count, column("calls", "events of that name")]
    total_ns: Annotated[Ns, column("total", "sum of the durations", bar=True)]
    mean_ns: Annotated[MeanNs, column("", "mean duration")]
    median_ns: Annotated[MeanNs, column("median", "median duration")]
    spread_ns: Annotated[MeanNs, column("", "robust standard deviation of the durations: 1.4826 MAD")]
    min_ns: Annotated[Ns, column("", "shortest duration")]
    max_ns: Annotated[Ns, column("max", "longest duration")]
    share: Annotated[Share, column("of all", "of the sum of the durations of all device work")]
    launch_shapes: Annotated[Count, column("", "different launch configurations; 0: none was recorded")]
    grid: Annotated[tuple[int, int, int] | None, column("", "blocks of a launch in x, y, z; null: not recorded")]
    block: Annotated[tuple[int, int, int] | None, column("", "threads of a block in x, y, z; null: not recorded")]
    registers_per_thread: Annotated[Count | None, column("", "null: not recorded")]
    shared_memory_bytes: Annotated[Bytes | None, column("", "a block, static and dynamic; null: not recorded")]
    occupancy_reported: Annotated[Share | None, column("", "the profiler's own estimate; null: not recorded")]
    occupancy_theoretical: Annotated[
        Share | None,
        column("", "from registers, shared memory, block and device; null: one of them is not known, or not CUDA"),
    ]
    limited_by: Annotated[Text | None, column("", "what stops another block; null: theoretical occupancy is n/a")]
    tensor_cores: Annotated[bool | None, column("", "matrix units of any vendor; null: the name does not say")]
    precision: Annotated[Text | None, column("", "number format of the inputs; null: the name does not say")]
    tile: Annotated[Text | None, column("", "what one block computes; null: the name does not say")]


class Kernels(Result, frozen=True, kw_only=True):
    SECTION = "kernels"
    TITLE = "Kernels"

    kernels: tuple[Kernel, ...]  # largest total first

    def blocks(self) -> Iterator[Block]:
        if self.kernels:
            yield table(
                "Kernels, copies and fills",
                Kernel,
                self.kernels,
                "name",
                "kind",
                "calls",
                "total_ns",
                "share",
                "median_ns",
                "max_ns",
                cells("occ.", Unit.SHARE, _occupancy),
                note="occ.: theoretical occupancy, from registers, shared memory and block; low is often by design",
            )

    def first(self) -> Table | None:
        shown = "name", "kind", "calls", "total_ns", "share", "median_ns", "max_ns"
        return table("Kernels, copies and fills", Kernel, self.kernels, *shown) if self.kernels else None


def _occupancy(k: Kernel) -> float | str:
    known = k.occupancy_reported if k.occupancy_theoretical is None else k.occupancy_theoretical
    return "" if known is None else known


def analyze(chains: Chains) -> Kernels:
    work = chains.device.frame
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
    names = chains.trace.text(table["name"])
    for text, (name, cat, calls, ns, median, deviation, shortest, longest) in zip(
        names, table.iter_rows(), strict=True
    ):
        config, device, count = launch.get(name, (-1, -1, 0))
        c: dict[str, Any] = configs.row(config, named=True) if config >= 0 else dict.fromkeys(configs.columns)
        block = _triple(c, "block")
        threads = prod(block) if block else None
        decoded = decode(text) if cat == Cat.KERNEL else Decoded("copy" if cat == Cat.MEMCPY else "memset")
        occupancy = theoretical(threads, c["registers"], c["shared_memory"], chains.device.properties.get(device, {}))
        rows.append(
            Kernel(
                name=text,
                category=_CATEGORY[cat],
                kind=decoded.kind,
                calls=calls,
                total_ns=ns,
                mean_ns=ns / calls,
                median_ns=median,
                spread_ns=deviation,
                min_ns=shortest,
                max_ns=longest,
                share=ns / total if total else 0.0,
                launch_shapes=count,
                grid=_triple(c, "grid"),
                block=block,
                registers_per_thread=c["registers"],
                shared_memory_bytes=c["shared_memory"],
                occupancy_reported=None if c["occupancy"] is None else c["occupancy"] / 100,
                occupancy_theoretical=occupancy.share if occupancy else None,
                limited_by=occupancy.limited_by if occupancy else None,
                tensor_cores=decoded.tensor_cores,
                precision=decoded.precision,
                tile=decoded.tile,
            )
        )
    return Kernels(kernels=tuple(rows))


def _triple(config: dict[str, Any], what: str) -> tuple[int, int, int] | None:
    x, y, z = (config[f"{what}_{axis}"] for axis in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)
