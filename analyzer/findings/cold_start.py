"""The recording holds first-use costs: loading, library start-up, first calls.

What it means
    The first call of an operator loads its kernels, starts a library (cuBLAS, cuDNN), asks the driver for
    occupancies and attributes, allocates workspaces, and may try several algorithms. It happens once a
    process, and says nothing about the steady state.

How it is computed
    An operator's first call counts where it took three times the median of its later ones and 100 µs more
    (less is the warm-up of CPU caches); so does module and function loading that the profiler marks. "Up to"
    is the device's idle time while that went on. It fires from a twentieth of the window on, where it
    bends every figure of the report. The profiler's own buffer requests inside a call are told apart; where it
    requested some, and nothing was loaded or allocated, the first call is most likely its start, and a note.

What to try
    When measuring: run a few steps before recording,
        schedule(wait=1, warmup=3, active=5)
    When the start itself matters: keep the process alive, warm up before traffic, CUDA_MODULE_LOADING=EAGER
    moves loading to the start, torch.backends.cudnn.benchmark = False avoids trying algorithms.

When it is wrong
    A first call with larger shapes than the later ones looks like a cold one. An operator that is called
    once or twice has no median to compare with, and stays silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from analyzer import units
from analyzer.findings import WORTH, finding, grade, share_of
from analyzer.index import exposure
from analyzer.index.activity import Cause
from analyzer.index.build import Call, Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

if TYPE_CHECKING:
    from analyzer.index.tree import Rows

NAME = "cold-start"
CAUSES = (Cause.FIRST_USE,)
#: First calls that are explained one by one, the longest first.
EXPLAINED = 3
_WORDS = {
    Call.LAUNCH: "launch calls",
    Call.ALLOCATE: "allocation",
    Call.OCCUPANCY: "occupancy queries",
    Call.ATTRIBUTE: "attribute queries",
    Call.LOAD: "module loading calls",
    Call.WAIT: "waits",
}


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    ns = exposure.idle_ns(chains, CAUSES)
    share = share_of(chains, ns)
    if share < WORTH:
        return
    rows = np.nonzero(chains.threads.first_use > 0)[0].astype(np.int32)
    rows = rows[np.argsort(-(chains.threads.first_use * chains.own_ns)[rows])]
    # An operator around another first call only passes that one's time on.
    rows = rows[chains.own_ns[rows] * 2 > (chains.host.end - chains.host.start)[rows]]
    started = _profiler_started(chains, rows)
    yield finding(
        NAME,
        Severity.NOTE if started else grade(share),
        f"first calls take {units.share(share)} of the window, most likely the profiler's own start"
        if started
        else f"first-use costs take {units.share(share)} of the window",
        [*(_explain(chains, int(row)) for row in rows[:EXPLAINED]), _loading(chains)],
        "Warm up before recording: schedule(wait=1, warmup=3, active=5), or a few steps before the profiler starts. "
        "If the start is what you measure: CUDA_MODULE_LOADING=EAGER, and keep the process alive.",
        ns,
        chains,
    )


def _profiler_started(chains: Chains, rows: Rows) -> bool:
    """The profiler requested buffers, and nothing was loaded or allocated: the run itself was warm."""
    loads = np.isin(chains.call, (Call.ALLOCATE, Call.LOAD)).astype(np.int64)
    warm = not (chains.host.below(loads)[rows] > 0).any() and not (~chains.overhead["profiler"]).any()
    return warm and bool(chains.overhead["profiler"].any())


def _explain(chains: Chains, row: int) -> str:
    """One first call against the later ones, and what was inside it: host calls by class, profiler, the rest."""
    host = chains.host
    inside = slice(row, int(host.last[row]))
    later = np.nonzero((host.name == host.name[row]) & ~chains.is_call)[0]
    later = later[later != row]
    took = int(host.end[row] - host.start[row])
    usual = float(np.median((host.end - host.start)[later])) if len(later) else None
    parts = []
    call, own, is_call = chains.call[inside], host.self_ns[inside], chains.is_call[inside]
    spent = 0
    for kind, word in _WORDS.items():
        mine = is_call & (call == kind)
        if mine.any():
            ns = int(own[mine].sum())
            spent += ns
            parts.append((ns, f"{word} ({mine.sum():,}) {units.duration(ns)}"))
    profiler = int(chains.profiler_ns[inside].sum())
    if profiler:
        parts.append((profiler, f"the profiler's buffer request {units.duration(profiler)}"))
    loading = chains.overhead.filter(~pl.col("profiler") & (pl.col("host") >= row) & (pl.col("host") < host.last[row]))
    if loading.height:
        ns = int((loading["end"] - loading["ts"]).sum())
        parts.append((ns, f"module and function loading {units.duration(ns)}"))
    rest = took - spent - profiler
    parts.append((rest, f"inside the operator and its libraries, unrecorded, {units.duration(rest)}"))
    name = chains.trace.names[int(host.name[row])]
    told = "; ".join(text for _, text in sorted(parts, key=lambda p: -p[0]))
    return f"first {name}: {units.duration(took)}, later ones median {units.duration(usual)}: {told}"


def _loading(chains: Chains) -> str | None:
    rows = chains.overhead.filter(~pl.col("profiler"))
    if not rows.height:
        return None
    return f"{plural(rows.height, 'loading event')} in all, {units.duration(int((rows['end'] - rows['ts']).sum()))}"
