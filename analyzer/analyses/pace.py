"""How fast the host launches, against how long what it launched takes the device."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import polars as pl

from analyzer.index.build import Chains
from analyzer.report.columns import Row, column
from analyzer.report.durations import Durations
from analyzer.report.results import Result

ORDER = 32


class Tempo(Row, frozen=True, kw_only=True):
    """Two tempos: below that of the host, no device work can keep a device busy."""

    device_work: Annotated[Durations | None, column("", "each kernel, copy and fill; null: no device work")]
    between_launches: Annotated[
        Durations | None, column("", "from the start of one launch call to the next, on any thread; null: under three")
    ]


class Pace(Result, frozen=True, kw_only=True):
    pace: Tempo


def analyze(chains: Chains) -> Pace:
    starts = np.sort(chains.host.start[chains.device.launches["launch"].to_numpy()])
    return Pace(
        pace=Tempo(
            device_work=Durations.of(chains.device.frame["dur"]),
            between_launches=Durations.of(pl.Series(np.diff(starts))) if len(starts) >= 3 else None,
        )
    )
