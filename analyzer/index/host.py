"""The host's side: operators, annotations and host calls as a tree, and what each of its rows is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from analyzer.events.schema import HOST_CALLS, Cat
from analyzer.index import activity, regions, tree, vocabulary
from analyzer.index.tree import Tree
from analyzer.index.vocabulary import Call, Role

if TYPE_CHECKING:
    import polars as pl

    from analyzer.index.activity import Codes
    from analyzer.index.tree import Ints, Mask, Rows

#: What a thread of the autograd engine runs at its top: hooks and callbacks come beside its own functions.
ENGINE_SHARE = 0.8


@dataclass(frozen=True)
class Host(Tree):
    """names: the trace's, by id. threads: `schema.THREADS`."""

    names: pl.Series
    threads: pl.DataFrame

    @cached_property
    def cat(self) -> Codes:
        return self.frame["cat"].to_numpy()

    @cached_property
    def role(self) -> Codes:
        """`vocabulary.Role` of each row."""
        return activity.roles_of(self, vocabulary.classify(self.names, vocabulary.ROLES))

    @cached_property
    def call(self) -> Codes:
        """`vocabulary.Call` of each row."""
        return activity.calls_of(self, vocabulary.classify(self.names, vocabulary.CALLS))

    @cached_property
    def is_call(self) -> Mask:
        return np.isin(self.cat, HOST_CALLS)

    @cached_property
    def holder(self) -> Rows:
        """For each row the operator or annotation that it belongs to: itself, or a call's caller; -1."""
        return self.nearest(~self.is_call)

    def by_holder(self, values: Ints) -> Ints:
        """Move what host calls have to the operator or annotation that makes them. Shape (rows,)."""
        held = self.holder >= 0
        return np.bincount(self.holder[held], weights=values[held].astype(np.float64), minlength=self.height).astype(
            np.int64
        )

    @cached_property
    def own_ns(self) -> Ints:
        """Self time of each operator with the host calls that it makes directly (ns); 0 for calls."""
        return self.by_holder(self.self_ns)

    @cached_property
    def steps(self) -> Ints:
        """Rows of the profiler's steps, in time order."""
        steps = self.role == Role.STEP
        annotated = steps & (self.cat == Cat.ANNOTATION)
        # Old Kineto files have them as operators.
        rows = np.nonzero(annotated if annotated.any() else steps & (self.cat == Cat.OP))[0]
        return rows[np.argsort(self.start[rows], kind="stable")]

    @cached_property
    def process(self) -> Ints:
        """Of each thread its process, as a small number: what one does, it does for itself alone."""
        return self.threads["pid"].rank("dense").cast(int).to_numpy()

    @cached_property
    def engine(self) -> Mask:
        """Threads of the autograd engine: what they run at the top is nearly all its own. Shape (threads,)."""
        top = (self.parent < 0) & ~self.is_call
        own = self.names.str.contains(vocabulary.ENGINE).to_numpy()[self.name]
        own |= (self.frame["fwd_thread"].fill_null(0) > 0).to_numpy()
        count = self.threads.height
        theirs = np.bincount(self.thread[top & own], minlength=count)
        every = np.bincount(self.thread[top & (self.cat == Cat.OP)], minlength=count)
        steps = np.bincount(self.thread[self.steps], minlength=count)
        return np.asarray((theirs > 0) & (theirs >= ENGINE_SHARE * every) & (steps == 0))

    @cached_property
    def launch_calls(self) -> Mask:
        """Calls that launch a kernel or a graph by their name."""
        return np.isin(self.call, (Call.LAUNCH, Call.GRAPH))

    @cached_property
    def regions(self) -> pl.DataFrame:
        """Calls of compiled regions, nested ones too; see `regions.SCHEMA`."""
        dynamo = self.names.str.contains(regions.REGION).to_numpy()[self.name]
        return regions.find(self, self.role, dynamo)

    def ancestors(self, row: int) -> list[int]:
        """Rows from a row up to the top, itself first; [] for -1."""
        rows: list[int] = []
        while row >= 0:
            rows.append(row)
            row = int(self.parent[row])
        return rows


def build(events: pl.DataFrame, names: pl.Series, threads: pl.DataFrame) -> Host:
    """events: rows of `schema.HOST` but Python frames and the overhead lane."""
    return Host(**vars(tree.build(events)), names=names, threads=threads)
