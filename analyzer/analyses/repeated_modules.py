"""Modules that are called many times in a row, with nothing launched between the calls: pieces of one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import polars as pl

from analyzer.index import exposure, intervals
from analyzer.index.build import Chains
from analyzer.index.launched import groups, launched
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ns, Row, column
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Ints

ORDER = 60

#: Calls of one module in a row from which on they are listed.
REPEATS = 8
#: What launches less is an activation or a scalar's helper that many share.
LAUNCHES = 2
_MODULE = "nn.Module: "


class RepeatedModule(Row, frozen=True, kw_only=True):
    """Modules of one class, each called many times in a row: in one call of the module around it, or in one step.

    A row: calls of modules side by side between which nothing is launched, so that none of them needs a value that
    the host had to make of the one before it.
    """

    name: Annotated[Name, column("module", "class of it")]
    around: Annotated[Name | None, column("in", "class of the module around it; null: none, but a profiler step")]
    rows: Annotated[Count, column("rows", "of calls; one for each module and call around it")]
    calls: Annotated[Count, column("calls", "in all rows")]
    calls_a_row: Annotated[MeanCount, column("a row", "calls, median")]
    launches_median: Annotated[MeanCount, column("launches", "of a call, median")]
    host_ns_median: Annotated[MeanNs, column("host", "from the start of a call to that of the next one, median")]
    device_ns_median: Annotated[MeanNs, column("device", "device time that a call launched, median")]
    waited_ns: Annotated[Ns, column("waited", "in that time, what devices waited for a late launch")]
    spare_ns: Annotated[Ns, column("spare", "of it, were each row one call", bar=True)]


class RepeatedModules(Result, frozen=True, kw_only=True):
    repeated_modules: tuple[RepeatedModule, ...]  # the most spare time first


def analyze(chains: Chains) -> RepeatedModules:
    calls = _calls(chains)
    if calls is None:
        return RepeatedModules(repeated_modules=())
    # Side by side: the one around is the same, and the next one's first launch follows this one's last.
    goes_on = (pl.col("around") == pl.col("around").shift(-1)) & (pl.col("past") == pl.col("first").shift(-1))
    calls = calls.with_columns(
        until=pl.when(goes_on.fill_null(value=False)).then(pl.col("start").shift(-1)).otherwise("end"),
        run=(~goes_on.shift(1).fill_null(value=False)).cum_sum(),
    )
    row = ["run", "instance"]
    calls = calls.with_columns(repeats=pl.len().over(row)).filter(pl.col("repeats") >= REPEATS)
    calls = calls.filter((pl.col("past") - pl.col("first")).median().over(row) >= LAUNCHES)
    calls = calls.with_columns(waited=pl.Series(_waited(chains, calls["start"].to_numpy(), calls["until"].to_numpy())))
    out = []
    for (name, around), mine in calls.group_by("name", "outer", maintain_order=True):
        rows = mine.group_by(row, maintain_order=True).agg(pl.len(), pl.col("waited").sum())
        out.append(
            RepeatedModule(
                name=str(name),
                around=None if around is None else str(around),
                rows=rows.height,
                calls=mine.height,
                calls_a_row=float(np.median(rows["len"])),
                launches_median=float(np.median(mine["past"] - mine["first"])),
                host_ns_median=float(np.median(mine["until"] - mine["start"])),
                device_ns_median=float(np.median(mine["device"])),
                waited_ns=int(mine["waited"].sum()),
                spare_ns=int((rows["waited"] - rows["waited"] // rows["len"]).sum()),
            )
        )
    return RepeatedModules(repeated_modules=tuple(sorted(out, key=lambda r: (-r.spare_ns, r.name))))


def _waited(chains: Chains, start: Ints, end: Ints) -> Ints:
    """What devices waited in each interval (ns). What several threads waited for at once is shared out among them."""
    each = exposure.waited_during(chains, start, end)
    once = intervals.merged(pl.DataFrame({"all": np.zeros(len(start), np.int8), "ts": start, "end": end}), ["all"])
    total, together = (
        int(each.sum()),
        int(exposure.waited_during(chains, *(once[c].to_numpy() for c in ("ts", "end"))).sum()),
    )
    return each if total <= together else (each * (together / total)).astype(np.int64)


def _calls(chains: Chains) -> pl.DataFrame | None:
    """Calls of modules inside other modules or steps, by thread, what is around them, and start; None: there are none.

    instance    name id, which has the instance's number; name, outer: classes of it and of the module around it.
    around      frame row of that module, or -2 - number of the step.
    start, end  ns. first, past: positions of what it launched in the sequence of its thread. device: of these, ns.
    """
    frames, names = chains.frames, chains.trace.names
    module = names.str.starts_with(_MODULE).to_numpy()[frames.name]
    rows = np.flatnonzero(module)
    if not len(rows):
        return None
    steps = chains.host.steps
    begin, end = np.sort(chains.host.start[steps]), np.sort(chains.host.end[steps])
    slot = np.searchsorted(begin, frames.start[rows], "right") - 1
    in_step = (slot >= 0) & (frames.start[rows] < end[np.maximum(slot, 0)]) if len(steps) else np.zeros(len(rows), bool)
    enclosing = frames.enclosing(module)[rows].astype(np.int64)
    around = np.where(enclosing >= 0, enclosing, np.where(in_step, -2 - slot, -1))
    kept = around != -1
    rows, around = rows[kept], around[kept]
    order = np.lexsort((frames.start[rows], around, frames.thread[rows]))
    rows, around = rows[order], around[order]
    first, past = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    device = np.zeros(len(rows), np.int64)
    all_, group = launched(chains), groups(chains)[frames.thread[rows]]
    for one in np.unique(group):
        of, mine = all_.group == one, group == one
        total = np.concatenate(([0], np.cumsum(chains.device.launched_ns[all_.row[of]])))
        first[mine] = np.searchsorted(all_.start[of], frames.start[rows[mine]])
        past[mine] = np.searchsorted(all_.start[of], frames.end[rows[mine]])
        device[mine] = total[past[mine]] - total[first[mine]]
    classes = names.str.strip_prefix(_MODULE).str.replace(r"_\d+$", "")
    outer = np.where(around >= 0, frames.name[np.maximum(around, 0)], -1)
    return pl.DataFrame(
        {
            "instance": frames.name[rows],
            "name": classes.gather(frames.name[rows]),
            "outer": classes.gather(pl.Series(np.maximum(outer, 0))).set(pl.Series(outer < 0), None),
            "around": around,
            "start": frames.start[rows],
            "end": frames.end[rows],
            "first": first,
            "past": past,
            "device": device,
        }
    )
