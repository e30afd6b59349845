"""Names of annotations that differ in numbers only: one, where their calls launch the same work.

`execute_context_0(0)_generation_8(8)` and `..._generation_7(7)` are one kind of call; `linear_m1` and
`linear_m4096` are two. The work tells, as for kinds of steps (`steps.kinds`); since the names differ as well, a
device time that differs by more than a factor of two keeps them apart too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.events.schema import Cat
from analyzer.index.launched import groups, launched
from analyzer.index.steps import kinds
from analyzer.index.vocabulary import Role

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.launched import Launched
    from analyzer.index.tree import Ints

NUMBER = r"\d+(?:\.\d+)?"
#: Median device time of two names of one kind of work differs by no more than this factor.
TIME = 2.0


def fold(chains: Chains) -> pl.Series:
    """The names of the trace, those of alike annotations replaced by their common one, with `#` for numbers."""
    names = chains.trace.names
    host = chains.host
    mine = (chains.host.cat == Cat.ANNOTATION) & (chains.host.role != Role.STEP)
    used = pl.DataFrame({"id": np.unique(host.name[mine]).astype(np.int64)})
    used = used.with_columns(name=names.gather(used["id"]))
    alike = used.with_columns(fold=pl.col("name").str.replace_all(NUMBER, "#")).filter(pl.len().over("fold") > 1)
    if not alike.height or not chains.device.launches.height:
        return names
    work = launched(chains)
    of_thread = groups(chains)
    changed: dict[int, str] = {}
    for (text,), some in alike.group_by("fold", maintain_order=True):
        ids = some["id"].to_numpy()
        rows = np.nonzero(mine & np.isin(host.name, ids))[0]
        for number, together in enumerate(_clusters(chains, work, of_thread, rows)):
            if len(together) > 1:
                common = str(text) if number == 0 else f"{text} (as {names[int(together[0])]})"
                changed.update(dict.fromkeys(together.tolist(), common))
    if not changed:
        return names
    at = pl.Series(list(changed), dtype=pl.UInt32)
    return names.clone().scatter(at, pl.Series(list(changed.values())))


def _clusters(chains: Chains, work: Launched, of_thread: Ints, rows: Ints) -> list[Ints]:
    """Name ids whose calls launch the same work, largest device time first; names that launch nothing are in none."""
    host = chains.host
    inside = np.zeros(host.height, bool)
    inside[rows] = True
    rows = rows[host.enclosing(inside)[rows] < 0]
    slot = work.slots(of_thread[host.thread[rows]], host.start[rows], host.end[rows])
    step = np.full(host.height + 1, -1, np.int64)
    step[work.row] = slot
    step = step[chains.device.frame["launch"].fill_null(-1).to_numpy()]
    kind = kinds.kinds(chains, step, len(rows), np.zeros(len(rows), np.int64))
    held = step >= 0
    device = np.bincount(step[held], weights=chains.device.frame["dur"].to_numpy()[held], minlength=len(rows))
    calls = pl.DataFrame({"name": host.name[rows].astype(np.int64), "kind": kind, "device": device})
    named = (
        calls.filter(pl.col("device") > 0)
        .group_by("name", maintain_order=True)
        .agg(kind=pl.col("kind").mode().sort().first(), device=pl.col("device").median(), total=pl.col("device").sum())
        .sort("kind", "device", "name")
    )
    out: list[tuple[float, Ints]] = []
    for _, one in named.group_by("kind", maintain_order=True):
        device = one["device"].to_numpy()
        first = 0
        for i in range(1, len(device) + 1):
            if i == len(device) or device[i] > TIME * device[first]:
                out.append((float(one["total"][first:i].sum()), np.sort(one["name"].to_numpy()[first:i])))
                first = i
    return [ids for _, ids in sorted(out, key=lambda one: -one[0])]
