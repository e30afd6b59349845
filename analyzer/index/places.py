"""Where in the program a host row is: its path of names, with what merely repeats as one place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from analyzer.index import paths

if TYPE_CHECKING:
    from analyzer.index.host import Host
    from analyzer.index.tree import Ints


@dataclass(frozen=True)
class Places:
    """folded: the trace's names, alike annotations as one; see `folding.fold`."""

    host: Host
    folded: pl.Series

    @cached_property
    def names(self) -> pl.Series:
        """Names as places: all profiler steps are one, all instances of a module's class, and annotations that
        differ in numbers only where they launch the same work.

        What happens in each of them adds up.
        """
        steps = self.folded.str.replace(r"^(ProfilerStep)#\d+$", "$1")
        return steps.str.replace(r"^(nn\.Module: .+?)_\d+$", "$1")

    @cached_property
    def path_id(self) -> Ints:
        """Of each host row, a number that is equal for equal paths of places."""
        place = self.names.rank("dense").cast(pl.Int64).to_numpy()
        return paths.number(self.host, place[self.host.name])

    def path(self, row: int) -> tuple[str, ...]:
        """Places from the top down to a host row; () for -1."""
        rows = self.host.ancestors(row)
        return tuple(self.names.gather(self.host.frame["name"].gather(rows[::-1])).to_list())
