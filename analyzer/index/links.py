"""From device work to the call that launched it: by correlation, within a process, never by guess."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from analyzer.events.schema import HOST_CALLS, Cat
from analyzer.report.findings import Warning


@dataclass(frozen=True)
class Links:
    """launch    row of the launching call in the host tree for each row of device work, null: unlinked.
    ambiguous    work whose correlation belongs to calls of several processes, with none to prefer.
    """

    launch: pl.Series
    ambiguous: int
    warnings: tuple[Warning, ...]


def link(host: pl.DataFrame, work: pl.DataFrame, threads: pl.DataFrame) -> Links:
    """Join device work (`schema.DEVICE`) to host calls (rows of the tree, `schema.HOST`).

    Correlation numbers are counted per process. Where several processes of one file use the same
    number, a device is matched to the process that all of its unambiguous work came from; if there is
    no such process the work stays unlinked, and a warning says so.
    """
    calls = (
        host.with_row_index("launch")
        # The legacy autograd profiler knows no calls: there the operator itself carries the number.
        .filter(pl.col("cat").is_in([*(int(c) for c in HOST_CALLS), int(Cat.OP)]) & (pl.col("correlation") != 0))
        .sort(pl.col("cat") == int(Cat.OP), maintain_order=True)
        .join(_processes(threads), on="thread", how="left")
        # Runtime and driver layer may both carry the number: the outer call is the one that was made.
        .unique(["process", "correlation"], keep="first", maintain_order=True)
        .select("process", "correlation", "launch")
    )
    shared = calls.group_by("correlation").len().filter(pl.col("len") > 1).select("correlation")
    keyed = work.select("device", "correlation").with_row_index("work")
    plain = keyed.join(calls.join(shared, on="correlation", how="anti"), on="correlation", how="inner")
    warnings: list[Warning] = []
    ambiguous = 0
    if shared.height:
        owner = (
            plain.group_by("device")
            .agg(process=pl.col("process").first(), processes=pl.col("process").n_unique())
            .filter(pl.col("processes") == 1)
            .drop("processes")
        )
        contested = keyed.join(shared, on="correlation", how="semi")
        settled = contested.join(owner, on="device", how="inner").join(
            calls, on=["process", "correlation"], how="inner"
        )
        ambiguous = contested.height - settled.height
        plain = pl.concat([plain, settled.select(plain.columns)])
        fate = (
            f"{ambiguous:,} device events stay unlinked, since nothing says whose they are"
            if ambiguous
            else "each device's work was matched to the process that its other work came from"
        )
        warnings.append(
            Warning(
                "correlation-collision",
                f"{shared.height:,} correlation ids are used by several processes in this file; {fate}",
                count=shared.height,
            )
        )
    launch = keyed.select("work").join(plain.select("work", "launch"), on="work", how="left", maintain_order="left")
    return Links(launch["launch"].cast(pl.Int32), ambiguous, tuple(warnings))


def _processes(threads: pl.DataFrame) -> pl.DataFrame:
    """thread -> process: a small number for each pid."""
    return threads.select(
        thread=pl.int_range(pl.len(), dtype=pl.Int32), process=pl.col("pid").rank("dense").cast(pl.Int32)
    )
