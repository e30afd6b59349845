"""Graphs that are replayed: what a replay runs, what runs between replays, and what leaving the graph costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer.index import intervals
from analyzer.index.build import Chains
from analyzer.index.launched import launched
from analyzer.index.vocabulary import Call
from analyzer.report.blocks import Block, Table, table
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ns, Row, column
from analyzer.report.results import Result

ORDER = 17


class Graph(Row, frozen=True, kw_only=True):
    """All replays of one graph: launches of the same work."""

    IDENTITY: ClassVar[str] = "begins_with"

    begins_with: Annotated[Name, column("graph begins with", "first kernel, copy or fill of a replay")]
    replays: Annotated[Count, column("replays", "launches of it with device records, incomplete ones too")]
    incomplete: Annotated[Count, column("cut", "of the replays, those with the beginning of the work alone")]
    events: Annotated[Count, column("events", "kernels, copies and fills of a whole replay")]
    device_ns_median: Annotated[MeanNs, column("device", "busy time of a whole replay, median")]
    idle_ns_median: Annotated[
        MeanNs, column("idle inside", "between the first start and the last end of a whole replay, median")
    ]
    launch_ns_median: Annotated[MeanNs, column("launch", "host time of the call that launches it, median")]
    outside_median: Annotated[
        MeanCount | None,
        column(
            "launches outside", "made by its threads before the next replay of any graph, median; null: none follows"
        ),
    ]
    between_ns_median: Annotated[
        MeanNs | None, column("to the next", "from its last end to the first start of the next replay, median")
    ]
    between_idle_ns: Annotated[Ns, column("idle between", "of that time, of all replays, the idle part", bar=True)]


class Graphs(Result, frozen=True, kw_only=True):
    SECTION = "graphs"
    TITLE = "Replayed graphs"

    graphs: tuple[Graph, ...]  # the most device time first

    def blocks(self) -> Iterator[Block]:
        if self.graphs:
            yield self._table(
                "begins_with", "replays", "incomplete", "events", "device_ns_median", "idle_ns_median",
                "launch_ns_median", "outside_median", "between_ns_median", "between_idle_ns",
            )  # fmt: skip

    def first(self) -> Table | None:
        if not self.graphs:
            return None
        return self._table("begins_with", "replays", "events", "device_ns_median", "outside_median", "between_idle_ns")

    def _table(self, *fields: str) -> Table:
        return table("Replayed graphs", Graph, self.graphs, *fields)


def analyze(chains: Chains) -> Graphs:
    host = chains.host
    frame = chains.device.frame.select("device", "launch", "ts", "end", "name").drop_nulls("launch")
    work = frame.filter(pl.Series(host.call[frame["launch"].to_numpy()] == Call.GRAPH))
    if not work.height:
        return Graphs(graphs=())
    replay = (
        work.sort("launch", "ts", maintain_order=True)
        .group_by("launch", maintain_order=True)
        .agg(
            pl.col("device").first(),
            first=pl.col("name").first(),
            events=pl.len().cast(pl.Int64),
            start=pl.col("ts").min(),
            end=pl.col("end").max(),
            token=pl.col("name").hash(seed=1).sum(),
        )
        .join(intervals.union_length(work, ["launch"]).rename({"length": "busy"}), on="launch", maintain_order="left")
    )
    row = replay["launch"].to_numpy()
    replay = replay.with_columns(
        call=pl.Series(host.end[row] - host.start[row]), graph=pl.Series(_graph(work, replay))
    ).with_columns(whole=pl.col("events") == pl.col("events").max().over("graph"))
    replay = replay.join(_outside(chains), on="launch", how="left", maintain_order="left")
    replay = _between(chains, replay)
    rows = []
    for _, mine in replay.group_by("graph", maintain_order=True):
        whole = mine.filter("whole")
        rows.append(
            Graph(
                begins_with=str(chains.trace.names[int(mine["first"][0])]),
                replays=mine.height,
                incomplete=mine.height - whole.height,
                events=int(whole["events"][0]),
                device_ns_median=float(np.median(whole["busy"])),
                idle_ns_median=float(np.median(whole["end"] - whole["start"] - whole["busy"])),
                launch_ns_median=float(np.median(mine["call"])),
                outside_median=_median(mine["outside"]),
                between_ns_median=_median(mine["between"]),
                between_idle_ns=int(mine["idle"].sum()),
            )
        )
    order = {id(r): (-r.replays * r.device_ns_median, r.begins_with) for r in rows}
    return Graphs(graphs=tuple(sorted(rows, key=lambda r: order[id(r)])))


def _graph(work: pl.DataFrame, replay: pl.DataFrame) -> list[int]:
    """Number of each replay's graph: of the same work, or of one whose beginning it is, the rest being lost."""
    names = {
        launch: some["name"].to_list() for (launch,), some in work.sort("ts").group_by("launch", maintain_order=True)
    }
    kinds: dict[tuple[int, int], list[int]] = {}  # (first, token) -> names of one replay
    numbers: dict[tuple[int, int], int] = {}
    keys = list(replay.select("first", "token").iter_rows())
    for launch, key in zip(replay["launch"], keys, strict=True):
        kinds.setdefault(key, names[launch])
    for key in sorted(kinds, key=lambda key: -len(kinds[key])):
        mine = kinds[key]
        longer = (other for other in numbers if other[0] == key[0] and kinds[other][: len(mine)] == mine)
        whole = next(longer, None)
        numbers[key] = len(numbers) if whole is None else numbers[whole]
    return [numbers[key] for key in keys]


def _outside(chains: Chains) -> pl.DataFrame:
    """Of each graph launch, how many launches its threads make before their next graph: launch, outside."""
    found = launched(chains)
    at = np.flatnonzero(found.graph)
    follows = np.append(found.group[at[1:]] == found.group[at[:-1]], False)
    outside = np.append(np.diff(at) - 1, 0)
    return pl.DataFrame(
        {"launch": found.row[at], "outside": outside}, schema={"launch": pl.Int32, "outside": pl.Int64}
    ).with_columns(outside=pl.when(pl.Series(follows)).then("outside"))


def _between(chains: Chains, replay: pl.DataFrame) -> pl.DataFrame:
    """Adds between: from each replay's last end to the next one's first start on the device (ns; null: none follows,
    or it begins before), and idle of it."""
    ordered = replay.sort("device", "start").with_columns(follows=pl.col("start").shift(-1).over("device"))
    ordered = ordered.with_columns(
        between=pl.when(pl.col("follows") >= pl.col("end")).then(pl.col("follows") - pl.col("end"))
    )
    idle = np.zeros(ordered.height, np.int64)
    some = ordered["between"].is_not_null().to_numpy()
    device, start = ordered["device"].to_numpy(), ordered["end"].to_numpy()
    end = ordered["follows"].fill_null(0).to_numpy()
    for one, busy in chains.device.busy.items():
        mine = some & (device == one)
        idle[mine] = end[mine] - start[mine] - busy.within(start[mine], end[mine])
    return ordered.with_columns(idle=pl.Series(idle))


def _median(values: pl.Series) -> float | None:
    said = values.drop_nulls()
    return float(np.median(said)) if len(said) else None
