"""Device time by kind of work, with who launched it."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl

from analyzer.index.build import Chains
from analyzer.report.columns import Count, Name, Ns, Row, Text, column
from analyzer.report.results import Result

ORDER = 51

#: Operators that are listed of one kind, the most device time first.
LISTED = 20


class KindLauncher(Row, frozen=True, kw_only=True):
    name: Annotated[Name, column("operator", "operator or annotation that launched the work")]
    ns: Annotated[Ns, column("device", "sum of the durations of what it launched")]


class WorkKind(Row, frozen=True, kw_only=True):
    """All device work of one kind. Copies by kernel and by copy engine are one kind."""

    IDENTITY: ClassVar[str] = "kind"

    kind: Annotated[Text, column("kind", "as in `kernels`; copy and memset")]
    events: Annotated[Count, column("events", "kernels, copies or fills")]
    total_ns: Annotated[Ns, column("device", "sum of the durations", bar=True)]
    operators: Annotated[tuple[KindLauncher, ...], column("", "who launched it; at most 20")]


class Kinds(Result, frozen=True, kw_only=True):
    """The most device time first."""

    kinds: tuple[WorkKind, ...]


def analyze(chains: Chains) -> Kinds:
    work = chains.device.frame.select("launch", "dur").with_columns(kind=chains.device.kind)
    linked = work.drop_nulls("launch")
    holder = chains.host.holder[linked["launch"].to_numpy()]
    owners = (
        linked.with_columns(name=pl.Series(chains.host.name[holder]))
        .filter(pl.Series(holder >= 0))
        .group_by("kind", "name")
        .agg(pl.col("dur").sum())
        .filter(pl.col("dur") > 0)
        .sort("dur", "name", descending=True)
    )
    launchers: dict[str, list[KindLauncher]] = {}
    for (kind, _, ns), text in zip(owners.iter_rows(), chains.trace.text(owners["name"]), strict=True):
        launchers.setdefault(kind, []).append(KindLauncher(name=text, ns=ns))
    total = work.group_by("kind").agg(pl.len(), pl.col("dur").sum()).sort("dur", "kind", descending=[True, False])
    return Kinds(
        kinds=tuple(
            WorkKind(kind=kind, events=events, total_ns=ns, operators=tuple(launchers.get(kind, ())[:LISTED]))
            for kind, events, ns in total.iter_rows()
        )
    )
