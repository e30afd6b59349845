"""A copy seeds the output of a matrix product with the bias.

What it means
    `addmm(bias, a, b)` computes bias + a @ b. Where the library cannot add the bias in the product's own
    epilogue (a full matrix as bias in place of a vector), PyTorch copies it into the output first and lets the
    product accumulate: fused for the dispatcher, but not in the kernel. torch.compile turns `a @ b + c` into it.

How it is computed
    A Memcpy DtoD launched by aten::addmm or aten::baddbmm itself, in a call that launched a matrix product as
    well. "Up to" is the device time of these copies and the time that the device waited for their launch. It
    fires from a hundredth of the window on, and as a note for less where every second call has it: it
    explains a copy that nobody wrote.

What to try
    With a vector as bias use torch.nn.functional.linear(x, w, b), which adds it in the epilogue. For a full matrix
        torch.compile(f, mode="max-autotune")
    may choose a Triton product with a fused epilogue; torch._inductor.config.post_grad_fusion_options, or `a @ b`
    in one function and `+ c` fused with what follows it, avoid the addmm.

When it is wrong
    The copy replaces an add kernel that reads and writes the same bytes: it is often cheaper than eager's, only
    not free. Hold both against each other with `tracecli compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from analyzer import units
from analyzer.events.schema import Cat
from analyzer.findings import SEEN, finding, grade, share_of, spread
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

NAME = "addmm-bias-copy"
_OPERATOR = r"^aten::b?addb?mm(?:_|\.out)?$|^aten::_addmm_activation$"
#: Half of the calls: then it is how this run computes, not an exception.
USUAL = 0.5


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    addmm = exposure.operators(chains, _OPERATOR)
    if not addmm.any():
        return
    kind = exposure.kinds(chains)
    work = chains.device.with_columns(kind=kind).filter(pl.col("launch").is_not_null())
    holder = chains.holder[work["launch"].to_numpy()]
    work = work.with_columns(holder=pl.Series(holder)).filter(pl.Series((holder >= 0) & addmm[holder]))
    seeded = work.filter((pl.col("cat") == int(Cat.MEMCPY)) & (pl.col("kind") == "copy")).join(
        work.filter(pl.col("kind") == "gemm").select("holder").unique(), on="holder", how="semi"
    )
    if not seeded.height:
        return
    rows = seeded["launch"].to_numpy()
    call = (chains.host.end - chains.host.start)[rows]
    # At most what a call usually takes: the first one also holds what `cold-start` counts.
    waited = exposure.waited_during(chains, chains.host.start[rows], chains.host.end[rows])
    waited_ns = int(np.minimum(waited, np.median(call.astype(np.float64))).sum())
    total = int(seeded["dur"].sum()) + waited_ns
    share = share_of(chains, total)
    calls = work["holder"].n_unique()
    if share < SEEN and seeded["holder"].n_unique() < USUAL * calls:
        return
    products = work.filter(pl.col("kind") == "gemm")["dur"].to_list()
    path = chains.path(int(seeded["holder"][0]))
    yield finding(
        NAME,
        grade(share, Severity.WARNING),
        f"a copy of the bias precedes the product in {seeded['holder'].n_unique():,} of {plural(calls, 'addmm call')}",
        (
            f"copy {spread(seeded['dur'].to_list())}, product {spread(products)}; in {_place(path)}",
            f"launching the copies took {spread(call.tolist())} of host time",
            f"of which the device waited for {units.duration(waited_ns)}" if waited_ns else None,
        ),
        "A vector as bias goes into the product's epilogue (torch.nn.functional.linear); for a full matrix try "
        'mode="max-autotune", or leave `a @ b + c` eager.',
        total,
        chains,
    )


def _place(path: tuple[str, ...]) -> str:
    return " > ".join(units.short_name(part, 40) for part in path[-3:])
