"""Annotations: per call, the host's time, the device's, and what bounds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index.bound import Bound, Verdict
from analyzer.index.build import Chains
from analyzer.index.intervals import spread
from analyzer.index.vocabulary import Role
from analyzer.index.within import launched_in, work_of
from analyzer.report.blocks import Block, cells, table
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ns, Row, Text, Unit, column
from analyzer.report.results import Result

ORDER = 25

#: Verdicts are given to the annotations that take the most host time: beyond that many they are noise.
JUDGED = 64


class Annotation(Row, frozen=True, kw_only=True):
    """All calls of one annotation; medians per call."""

    name: Annotated[Name, column("annotation", "as recorded; `#` for numbers in which alike calls differ")]
    calls: Annotated[Count, column("calls", "outermost ones: inside itself it is not counted again")]
    cpu_ns_median: Annotated[MeanNs, column("CPU", "host time of a call")]
    cpu_ns_spread: Annotated[MeanNs, column("", "robust standard deviation of the host time over the calls")]
    cpu_ns_max: Annotated[Ns, column("max", "host time of the longest call")]
    tax_ns_median: Annotated[MeanNs, column("", "host time of a call less blocking waits and the profiler's time")]
    cpu_ns: Annotated[Ns, column("", "host time of all calls")]
    self_cpu_ns: Annotated[Ns, column("", "of `cpu_us`, what nothing recorded inside the annotation covers")]
    device_ns_median: Annotated[MeanNs, column("device", "device time that a call launched")]
    device_ns_spread: Annotated[MeanNs, column("", "robust standard deviation of the device time over the calls")]
    device_ns_max: Annotated[Ns, column("", "device time of the call that launched most")]
    device_events_median: Annotated[MeanCount, column("events", "device events that a call launched")]
    kernels_median: Annotated[MeanCount, column("", "of the device events, kernels")]
    copies_median: Annotated[MeanCount, column("", "of the device events, copies")]
    memsets_median: Annotated[MeanCount, column("", "of the device events, fills")]
    launches_median: Annotated[MeanCount, column("launches", "launch calls of a call")]
    verdict: Annotated[
        Bound | None,
        column(
            "verdict", "what bounds the work launched in it; null: it launched none, or it is not among the longest"
        ),
    ]
    verdict_reason: Annotated[Text | None, column("", "the verdict's sentence, with its figures")]


class Annotations(Result, frozen=True, kw_only=True):
    SECTION = "annotations"
    TITLE = "Annotations"

    annotations: tuple[Annotation, ...]

    def blocks(self) -> Iterator[Block]:
        if self.annotations:
            yield table(
                "Annotations",
                Annotation,
                self.annotations,
                "name",
                "calls",
                "cpu_ns_median",
                "cpu_ns_max",
                "device_ns_median",
                "device_events_median",
                "launches_median",
                cells("verdict", Unit.TEXT, lambda a: a.verdict or "no device work"),
                note="medians per call, with the CPU's max",
            )


def analyze(chains: Chains) -> Annotations:
    host = chains.host
    name = chains.places.folded.rank("dense").cast(pl.Int64).to_numpy()[host.name]
    mine = (chains.host.cat == Cat.ANNOTATION) & (chains.host.role != Role.STEP)
    rows = np.nonzero(host.outermost(mine, name))[0]
    work = work_of(chains, rows)
    table = (
        pl.DataFrame(
            {
                "name": chains.places.folded.gather(host.name[rows]),
                "row": rows,
                "cpu": host.end[rows] - host.start[rows],
                "own": host.self_ns[rows],
                "tax": np.maximum(
                    (host.end - host.start - host.below(chains.waits.ns) - host.below(chains.profiler_ns))[rows], 0
                ),
                "device": work.device_ns,
                "events": work.events,
                "kernels": work.kernels,
                "copies": work.copies,
                "fills": work.fills,
                "launches": work.launches,
            }
        )
        .group_by("name")
        .agg(
            calls=pl.len(),
            cpu_ns=pl.col("cpu").sum(),
            self_cpu_ns=pl.col("own").sum(),
            cpu_ns_median=pl.col("cpu").median(),
            cpu_ns_spread=spread("cpu"),
            cpu_ns_max=pl.col("cpu").max(),
            tax_ns_median=pl.col("tax").median(),
            device_ns_median=pl.col("device").median(),
            device_ns_spread=spread("device"),
            device_ns_max=pl.col("device").max(),
            device_events_median=pl.col("events").median(),
            kernels_median=pl.col("kernels").median(),
            copies_median=pl.col("copies").median(),
            memsets_median=pl.col("fills").median(),
            launches_median=pl.col("launches").median(),
            rows=pl.col("row"),
        )
        .sort(["cpu_ns", "name"], descending=[True, False])
    )
    names = table["name"]
    out = []
    for rank, (text, calls) in enumerate(zip(names, table["rows"], strict=True)):
        verdict = _verdict(chains, calls.to_numpy()) if rank < JUDGED and chains.device.frame.height else None
        figures = table.drop("name", "rows").row(rank, named=True)
        out.append(
            Annotation(
                name=text,
                verdict=None if verdict is None else verdict.bound,
                verdict_reason=None if verdict is None else verdict.reason,
                **figures,
            )
        )
    return Annotations(annotations=tuple(out))


def _verdict(chains: Chains, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Verdict | None:
    """Bound of the work launched in some annotations, with the idle time that its launches ended."""
    mine = launched_in(chains, rows)
    if not mine.any():
        return None
    return chains.account.judge(mine)
