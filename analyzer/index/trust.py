"""What the structure had to repair or cannot know, beside the reader's own warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analyzer.index.vocabulary import Call
from analyzer.report.findings import Warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analyzer.index.build import Chains


def warnings(chains: Chains) -> Iterator[Warning]:
    yield from chains.device.links.warnings
    work = chains.device.frame
    cut = work.filter(pl.col("clipped") > 0)
    if cut.height:
        yield Warning(
            "stream-overrun",
            f"{cut.height:,} device events outlast the end of the next one on their in-order stream, by "
            f"{cut['clipped'].sum() / 1000:,.3f} µs in total; each is cut where the next one starts",
            count=cut.height,
        )
    for forest, what in ((chains.host, "host events"), (chains.frames, "Python frames")):
        if forest.clamped:
            yield Warning(
                "outlived-parent",
                f"{forest.clamped:,} {what} end after the event they are nested in, by "
                f"{forest.clamped_ns / 1000:,.3f} µs in total; each is cut at its parent's end",
                count=forest.clamped,
            )
    by_name = chains.host.launch_calls
    if not work.height and by_name.any():
        yield Warning(
            "device-not-recorded",
            f"{int(by_name.sum()):,} launch calls but no device record: the profiler had no access to the device's "
            "activity (CUPTI or roctracer missing, CUDA activities not asked for, or only counters collected)",
            count=int(by_name.sum()),
        )
    lost = chains.launching.lost
    missing = int(lost.sum())
    if missing:
        total = missing + int((chains.launching.recorded & by_name).sum())
        graphs = int((lost & (chains.host.call == Call.GRAPH)).sum())
        detail = f" ({graphs:,} of them graph launches)" if graphs else ""
        yield Warning(
            "launches-without-work",
            f"{missing:,} of {total:,} launches{detail} without a device record: the device may have worked "
            "in what looks like idle time, so idle time and utilization are not reliable",
            count=missing,
        )
