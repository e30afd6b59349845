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

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.copy_causes import CopyCauses
from analyzer.findings import SEEN, finding, grade, share_of, spread
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "addmm-bias-copy"
#: Half of the calls: then it is how this run computes, not an exception.
USUAL = 0.5


def find(results: Results) -> Iterable[Finding]:
    bias = results[CopyCauses].copy_causes.bias
    if bias is None:
        return
    total = bias.device_ns + bias.waited_ns
    share = share_of(results, total)
    if share < SEEN and bias.seeded < USUAL * bias.calls:
        return
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"a copy of the bias precedes the product in {bias.seeded:,} of {plural(bias.calls, 'addmm call')}",
        (
            f"copy {spread(bias.copies)}, product {spread(bias.products)}; in {_place(bias.path)}",
            f"launching the copies took {spread(bias.launches)} of host time",
            f"of which the device waited for {units.duration(bias.waited_ns)}" if bias.waited_ns else None,
        ),
        "A vector as bias goes into the product's epilogue (torch.nn.functional.linear); for a full matrix try "
        'mode="max-autotune", or leave `a @ b + c` eager.',
        total,
    )


def _place(path: tuple[str, ...]) -> str:
    return " > ".join(units.short_name(part, 40) for part in path[-3:])
