"""Compiled regions and what of them is nested: guards, graph breaks, and the user's code at a break.

A region inside another resumes after a graph break, or is a compiled callee that was not inlined. What lies between
the end of what the outer one ran before and the lookup of the inner one is the user's code at the break.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer.index.vocabulary import Role

if TYPE_CHECKING:
    from analyzer.index.activity import Codes
    from analyzer.index.tree import Ints, Mask, Tree

#: Regions of Dynamo: `CompiledFunction` inside one is its autograd function, and no break.
REGION = r"^Torch-Compiled Region"

SCHEMA = {
    "row": pl.Int64,  # host row of the region
    "parent": pl.Int64,  # host row of the region around it; -1: outermost
    "guard": pl.Int64,  # host row of its cache lookup; -1: none
    "user_ns": pl.Int64,  # at the break before it, on the host; 0 for an outermost one
}


def find(host: Tree, role: Codes, dynamo: Mask) -> pl.DataFrame:
    """All calls of regions, in the order of rows. dynamo: rows that are named as REGION has it."""
    region = role == Role.REGION
    around = host.enclosing(region)
    mine = np.nonzero(region & ((around < 0) | dynamo))[0]
    listed = np.zeros(host.height, bool)
    listed[mine] = True
    parent = host.enclosing(listed)[mine].astype(np.int64)
    lookups = np.nonzero(role == Role.GUARDS)[0]
    guard = _guards(host, mine, lookups)
    begun = np.where(guard >= 0, guard, mine)
    before = _end_before(host, listed, begun, parent, role)
    user = np.where(parent >= 0, np.maximum(host.start[begun] - before, 0), 0) if len(mine) else np.zeros(0, np.int64)
    return pl.DataFrame({"row": mine, "parent": parent, "guard": guard, "user_ns": user}, schema=SCHEMA)


def _guards(host: Tree, rows: Ints, lookups: Ints) -> Ints:
    """The lookup of each region: the last one before it on its thread, later than the region before it."""
    if not len(lookups) or not len(rows):
        return np.full(len(rows), -1, np.int64)
    slot = np.searchsorted(lookups, rows, "left") - 1
    candidate = lookups[np.maximum(slot, 0)]
    previous = np.append(-1, rows[:-1])
    good = (slot >= 0) & (host.thread[candidate] == host.thread[rows]) & (candidate > previous)
    return np.where(good, candidate, -1)


def _end_before(host: Tree, listed: Mask, begun: Ints, parent: Ints, role: Codes) -> Ints:
    """End of what the parent region ran last before each of `begun`: generated code or a nested region (ns)."""
    part = listed | np.isin(role, (Role.REGION_PART, Role.PROLOGUE, Role.REGION))
    own = host.enclosing(listed).astype(np.int64)
    parts = np.nonzero(part & (own >= 0))[0]
    key = own[parts] * host.height + parts
    order = np.argsort(key, kind="stable")
    slot = np.searchsorted(key[order], parent * host.height + begun, "left") - 1
    last = parts[order][np.maximum(slot, 0)] if len(parts) else np.zeros(len(begun), np.int64)
    good = (slot >= 0) & (parent >= 0)
    if not len(parts):
        return np.where(parent >= 0, host.start[np.maximum(parent, 0)], 0)
    good &= own[last] == parent
    ends: Ints = np.where(good, host.end[last], host.start[np.maximum(parent, 0)])
    return ends
