"""Kinds of steps, told by what they launch and never by how long it took.

Two steps are of one kind where they have the same name, both or neither hold an optimizer's step, and the
kernels that they launch are mostly the same: weighted Jaccard (sum of minima over sum of maxima of the
counts) of 0.7 and more, and as many grid blocks within a factor of two. Prefill against decode of one model
has 0.22 to 0.49; steps of one kind over 0.82.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.events.schema import Cat

if TYPE_CHECKING:
    from analyzer.index.build import Chains
    from analyzer.index.tree import Ints, Mask

ALIKE, GRID = 0.7, 2.0

#: An optimizer's step by its annotation, or by an operator that nothing else calls.
UPDATE = r"^Optimizer\.step#|^aten::_fused_(?:adamw?|sgd|adagrad)_?$|^aten::_foreach_(?:addcdiv|lerp)_?$"


def kinds(chains: Chains, step: Ints, count: int, label: Ints) -> Ints:
    """Kind of each step: equal numbers, equal kinds. Shape (count,).

    step   of each device row the step that launched it, -1: none.
    label  of each step a number for its name: steps of different names are of different kinds.
    """
    kind = np.full(count, -1, np.int64)
    if not count:
        return kind
    # Steps that launch the very same are looked at once: a sum of the names' hashes is equal for equal counts.
    mine = step >= 0
    name = chains.device.frame["name"].to_numpy()[mine]
    weights = pl.Series(np.arange(chains.trace.names.len())).hash(seed=1).to_numpy()
    signature = np.zeros(count, np.uint64)
    np.add.at(signature, step[mine], weights[name])
    _, first, back = np.unique(np.column_stack([label.astype(np.uint64), signature]), axis=0, return_index=True,
                               return_inverse=True)  # fmt: skip
    back = back.ravel()
    table = _counts(np.where(mine, _first_of(back, first, step), -1), chains.device.frame["name"].to_numpy(), first)
    grids = _blocks(chains, step, count)
    leaders: list[tuple[float, int]] = []  # grid blocks, label
    tables = np.zeros((0, table.shape[1]), np.int64)
    for one in np.argsort(-np.bincount(back), kind="stable"):
        steps = np.nonzero(back == one)[0]
        for level in _levels(grids[steps]):
            rows = steps[level]
            grid, named = float(np.median(grids[rows])), int(label[rows[0]])
            found = _leader(table[one], tables, leaders, named, grid)
            if found < 0:
                found = len(leaders)
                leaders.append((grid, named))
                tables = np.vstack([tables, table[one]])
            kind[rows] = found
    return kind


def _first_of(back: Ints, first: Ints, step: Ints) -> Ints:
    """Of each device row, the signature whose first step launched it; -1 for rows of other steps."""
    of_step = np.full(len(back), -1, np.int64)
    of_step[first] = np.arange(len(first))
    return of_step[step]


def _levels(grids: Ints) -> list[Ints]:
    """Positions of steps with equal kernels, apart where their grids differ by more than the factor."""
    order = np.argsort(grids, kind="stable")
    sorted_ = grids[order]
    cuts = np.nonzero(sorted_[1:] > GRID * np.maximum(sorted_[:-1], 1))[0] + 1
    return list(np.split(order, cuts))


def _leader(counts: Ints, tables: Ints, leaders: list[tuple[float, int]], label: int, grid: float) -> int:
    """The first kind that these counts are alike, -1: none is."""
    if not leaders:
        return -1
    low, high = np.minimum(tables, counts).sum(1), np.maximum(tables, counts).sum(1)
    alike = np.where(high > 0, low / np.maximum(high, 1), 1.0) >= ALIKE
    blocks = np.array([of for of, _ in leaders])
    near = np.maximum(blocks, grid) <= GRID * np.maximum(np.minimum(blocks, grid), 1)
    same = np.array([of == label for _, of in leaders])
    found = np.nonzero(alike & near & same)[0]
    return int(found[0]) if len(found) else -1


def _counts(row: Ints, name: Ints, first: Ints) -> Ints:
    """How often each signature has each name. Shape (signatures, names).

    row: signature of each device row, -1: none.
    """
    mine = row >= 0
    names, column = np.unique(name[mine], return_inverse=True)
    out = np.zeros((len(first), len(names)), np.int64)
    np.add.at(out, (row[mine], column.ravel()), 1)
    return out


def _blocks(chains: Chains, step: Ints, count: int) -> Ints:
    """Grid blocks that each step launched."""
    configs = chains.trace.configs
    size = configs.select(pl.col("grid_x") * pl.col("grid_y") * pl.col("grid_z")).to_series().fill_null(0).to_numpy()
    config = chains.device.frame["config"].to_numpy()
    blocks = np.where(config >= 0, np.append(size, 0)[config], 0)
    mine = step >= 0
    return np.bincount(step[mine], weights=blocks[mine].astype(np.float64), minlength=count).astype(np.int64)


def updates(chains: Chains, group: Ints, start: Ints, end: Ints, by: Ints) -> Mask:
    """Which steps [start, end) of a group hold an optimizer's step. by: group of each thread."""
    host = chains.host
    of_name = chains.trace.names.str.contains(UPDATE).to_numpy()
    rows = np.nonzero(of_name[host.name] & np.isin(chains.host.cat, (Cat.ANNOTATION, Cat.OP)))[0]
    out = np.zeros(len(start), bool)
    for one in np.unique(group):
        mine = np.sort(host.start[rows[by[host.thread[rows]] == one]])
        these = np.nonzero(group == one)[0]
        out[these] = np.searchsorted(mine, end[these]) > np.searchsorted(mine, start[these])
    return out
