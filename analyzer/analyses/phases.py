"""Kinds of steps, side by side: prefill and decode, accumulate and update, encoder and denoiser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import polars as pl

from analyzer import units
from analyzer.index import exposure, intervals
from analyzer.index.activity import Cause
from analyzer.index.bound import Bound, Verdict
from analyzer.index.build import Chains
from analyzer.index.phases import CUT, How, Phases
from analyzer.report.blocks import Block, Note, Table, cells, table
from analyzer.report.columns import Count, MeanCount, MeanNs, Name, Ns, Row, Share, Text, Unit, column
from analyzer.report.results import Result

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Mask

ORDER = 5

#: Why there are no steps, and what to do.
NOTHING = "Steps: n/a, nothing recorded separates them; record again with an annotation round each step, or stacks"


class PhaseIdle(Row, frozen=True, kw_only=True):
    """One cause of idle time in a phase."""

    IDENTITY: ClassVar[str] = "cause"

    cause: Annotated[Text, column("cause", "what the device waited for, as `gaps.by_cause` has it")]
    ns: Annotated[Ns, column("idle", "in gaps that end with the phase's work, all its steps and devices together")]


class PhaseKernels(Row, frozen=True, kw_only=True):
    """Device work of one kind in a phase."""

    IDENTITY: ClassVar[str] = "kind"

    kind: Annotated[Name, column("kind", "as `kernels[].kind` has it; copies and fills too")]
    ns: Annotated[Ns, column("device", "sum of durations in all its steps")]
    share: Annotated[Share, column("share", "of the phase's device time")]


class Phase(Row, frozen=True, kw_only=True):
    """Steps of one kind, told by what they launch. Medians and the 95th percentile are over its steps.

    Figures of the device are averaged over the devices of the file.
    """

    name: Annotated[Name, column("phase", "the engine's or the user's word; else what the steps were found by")]
    kind: Annotated[Text, column("", "what tells it from the others: an engine's word, update, kind 2; else step")]
    calls: Annotated[Count, column("steps", "of this kind; what the recording cut is left out")]
    wall_ns_median: Annotated[
        MeanNs,
        column("wall", "from its host's start or the end of the last step's device work to the end of both its own"),
    ]
    wall_ns_p95: Annotated[MeanNs, column("p95", "the wall time that 95% of the steps keep to")]
    wall_ns: Annotated[Ns, column("total", "wall time of all its steps", bar=True)]
    device_busy_ns_median: Annotated[MeanNs, column("device busy", "union of the work that the step launched")]
    idle_ns_median: Annotated[MeanNs, column("idle", "wall time without any work on the device")]
    communication_ns_median: Annotated[MeanNs, column("", "union of the step's collectives, overlapped ones too")]
    launches_median: Annotated[MeanCount, column("launches", "calls that launched device work, fills and copies too")]
    graph_launches_median: Annotated[MeanCount, column("of graphs", "of these, launches of graphs", blank=True)]
    launches_outside_graphs_median: Annotated[MeanCount, column("", "of these, all others")]
    batch_median: Annotated[
        MeanCount | None, column("batch", "requests in a step, as its name says; null: it does not", blank=True)
    ]
    tokens_median: Annotated[
        MeanCount | None, column("tokens", "tokens in a step, as its name says; null: it does not", blank=True)
    ]
    verdict: Annotated[Bound | None, column("verdict", "what bounds the work launched in it; null: it launched none")]
    verdict_reason: Annotated[Text | None, column("", "the verdict's sentence, with its figures")]
    idle_by_cause: tuple[PhaseIdle, ...]  # largest first
    kernels: tuple[PhaseKernels, ...]  # most device time first


class StepsFound(Row, frozen=True, kw_only=True):
    """How the steps of the phases were found, and what of the run they are."""

    by: Annotated[Text | None, column("", "what they were found by; null: nothing recorded separates steps")]
    steps: Annotated[Count, column("", "all of them, those that the recording cut included")]
    cut: Annotated[Count, column("", "steps that the recording cut: in no phase")]
    share: Annotated[Share | None, column("", "of the device time of the file, what the steps launched; null: no work")]
    reason: Annotated[Text, column("", "a sentence")]


class PhasesResult(Result, frozen=True, kw_only=True):
    SECTION = "phases"
    TITLE = "Phases"

    phases: tuple[Phase, ...]  # most wall time first
    steps_found: StepsFound

    def blocks(self) -> Iterator[Block]:
        if not self.phases:
            if self.steps_found.share is not None:
                yield Note(self.steps_found.reason)
            return
        yield table(
            "Phases",
            Phase,
            self.phases,
            "name",
            "calls",
            "wall_ns_median",
            "wall_ns_p95",
            "device_busy_ns_median",
            "idle_ns_median",
            "launches_median",
            "graph_launches_median",
            cells("verdict", Unit.TEXT, lambda p: p.verdict or "no device work"),
            note=self.steps_found.reason,
        )

    def first(self) -> Table | None:
        if not self.phases:
            return None
        verdict = cells("verdict", Unit.TEXT, lambda p: p.verdict or "no device work")
        shown = "name", "calls", "wall_ns_median", "wall_ns_p95", "device_busy_ns_median", "launches_median"
        return table("Steps" if len(self.phases) == 1 else "Phases", Phase, self.phases, *shown, verdict)


def analyze(chains: Chains) -> PhasesResult:
    found = chains.phases
    if found.found is None:
        share = 0.0 if chains.device.frame.height else None
        none = StepsFound(by=None, steps=0, cut=0, share=share, reason=NOTHING)
        return PhasesResult(phases=(), steps_found=none)
    rows = _rows(chains, found)
    return PhasesResult(phases=rows, steps_found=_found(chains, found, rows))


def _found(chains: Chains, found: Phases, rows: tuple[Phase, ...]) -> StepsFound:
    assert found.found is not None
    total = int(chains.device.frame["dur"].sum())
    share = int(chains.device.frame["dur"].filter(pl.Series(found.step >= 0)).sum()) / total if total else 0.0
    cut = int((found.phase == CUT).sum())
    how = found.found.how
    held = f"{units.share(share)} of the device time"
    if how is How.PERIOD:
        launches = rows[0].launches_median if rows else 0
        said = (
            f"a sequence of {launches:,.0f} launches repeats {found.count:,} times, {held}; whether these are steps "
            "is not recorded"
        )
    else:
        said = f"{units.plural(found.count, 'step')} found by {how.value}: {held}"
    if cut:
        said += f"; {units.plural(cut, 'step')} cut by the recording, or empty, in no median"
    return StepsFound(by=how.value, steps=found.count, cut=cut, share=share, reason=said)


def _rows(chains: Chains, found: Phases) -> tuple[Phase, ...]:
    devices = max(1, int(chains.device.frame["device"].n_unique()))
    wall = found.end - found.begin
    idle = wall - exposure.busy_during(chains, found.begin, found.end) / devices
    work = chains.device.frame.select("device", "ts", "end", "dur", "kind", "communication")
    work = work.with_columns(step=pl.Series(found.step))
    busy = _per_step(chains, work, found.count) / devices
    talk = _per_step(chains, work.filter("communication"), found.count) / devices
    held = found.slot >= 0
    launches = np.bincount(found.slot[held], minlength=found.count)
    graphs = np.bincount(found.slot[held & found.launched.graph], minlength=found.count)
    phase_of_work = np.append(found.phase, CUT)[found.step]  # step -1 takes the last
    work = work.with_columns(phase=pl.Series(phase_of_work))
    rows = []
    for number, (name, kind) in enumerate(zip(found.names, found.kinds, strict=True)):
        mine = found.phase == number
        verdict, causes = _judged(chains, phase_of_work == number)
        rows.append(
            Phase(
                name=name,
                kind=kind,
                calls=int(mine.sum()),
                wall_ns_median=float(np.median(wall[mine])),
                wall_ns_p95=float(np.quantile(wall[mine], 0.95)),
                wall_ns=int(wall[mine].sum()),
                device_busy_ns_median=float(np.median(busy[mine])),
                idle_ns_median=max(0.0, float(np.median(idle[mine]))),
                communication_ns_median=float(np.median(talk[mine])),
                launches_median=float(np.median(launches[mine])),
                graph_launches_median=float(np.median(graphs[mine])),
                launches_outside_graphs_median=float(np.median((launches - graphs)[mine])),
                batch_median=_known(found.batch[mine]),
                tokens_median=_known(found.tokens[mine]),
                verdict=None if verdict is None else verdict.bound,
                verdict_reason=None if verdict is None else verdict.reason,
                idle_by_cause=causes,
                kernels=_kernels(work.filter(pl.col("phase") == number)),
            )
        )
    return tuple(rows)


def _per_step(chains: Chains, work: pl.DataFrame, count: int) -> Ints:
    """Union of each step's work on each device, summed over devices (ns)."""
    out = np.zeros(count, np.int64)
    union = intervals.union_length(work.filter(pl.col("step") >= 0), ["step", "device"])
    np.add.at(out, union["step"].to_numpy(), union["length"].to_numpy())
    return out


def _known(values: Ints) -> float | None:
    said = values[values >= 0]
    return float(np.median(said)) if len(said) else None


def _judged(chains: Chains, mine: Mask) -> tuple[Verdict | None, tuple[PhaseIdle, ...]]:
    """What bounds some device work with the idle time that it ended, and that idle time by cause."""
    if not mine.any():
        return None, ()
    sums = (
        chains.account.ended(mine)
        .group_by("cause")
        .agg(pl.col("ns").sum())
        .sort(["ns", "cause"], descending=[True, False])
    )
    idle = tuple(PhaseIdle(cause=Cause(cause).key, ns=ns) for cause, ns in sums.iter_rows())
    return chains.account.judge(mine), idle


def _kernels(work: pl.DataFrame) -> tuple[PhaseKernels, ...]:
    sums = work.group_by("kind").agg(pl.col("dur").sum()).sort(["dur", "kind"], descending=[True, False])
    total = max(int(sums["dur"].sum()), 1)
    return tuple(PhaseKernels(kind=kind, ns=ns, share=ns / total) for kind, ns in sums.iter_rows())
