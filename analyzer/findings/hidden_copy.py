"""An out-of-place operator cloned its input before it worked on the copy.

What it means
    `x.masked_fill(...)`, `x.index_put(...)` and their kind are written as clone + in-place operator: the whole
    tensor is copied (a Memcpy DtoD or a copy kernel) and then only a part of it changed. The copy shows under
    another name, and is easily missed. `reshape` and `contiguous` copy where a view would not do.

How it is computed
    An operator `f` that has `aten::clone` and `f_` as direct children: the clone's device time is the cost.
    Of `aten::reshape` and `aten::contiguous` it is the clone inside. It fires from a hundredth of the window on,
    for layout copies from a twentieth (some are needed), and stays silent where the host sets the pace, since a
    shorter queue of kernels would change nothing there. "Up to" is the device time of these clones.

What to try
    Where no gradient needs the input (inference, or a fresh tensor), work in place:
        with torch.no_grad():
            scores.masked_fill_(mask, float("-inf"))
    In training: `torch.where(mask, a, b)` reads once and writes once, and torch.compile fuses the copy away. For
    layout copies: keep the layout that the next operator wants (channels_last, no transpose before reshape).

When it is wrong
    Autograd may need the old value: the in-place form then raises, or makes its own copy. A clone whose result is
    used again is no waste.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.copy_causes import Clone, CopyCauses
from analyzer.findings import SEEN, WORTH, finding, grade, host_bound, share_of, spread, within
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "hidden-copy"


def find(results: Results) -> Iterable[Finding]:
    if host_bound(results):
        return
    clones = results[CopyCauses].copy_causes.clones
    yield from _out_of_place(results, [c for c in clones if c.why == "in_place_form"])
    yield from _layout(results, [c for c in clones if c.why == "layout"])


def _out_of_place(results: Results, clones: list[Clone]) -> Iterable[Finding]:
    total = sum(c.device_ns for c in clones)
    share = share_of(results, total)
    if share < SEEN:
        return
    first = clones[0].operator
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"{first} copies its whole input first",
        (
            f"{c.operator}: {plural(c.clones.count, 'call')}, each cloned its input: {spread(c.clones)}; in "
            f"{within(c.path)}"
            for c in clones[:3]
        ),
        f"Use the in-place form, {first.removeprefix('aten::')}_(), under torch.no_grad() or on a tensor that nothing "
        "else needs; in training torch.where, or torch.compile, which fuses the copy away.",
        total,
    )


def _layout(results: Results, clones: list[Clone]) -> Iterable[Finding]:
    total = sum(c.device_ns for c in clones)
    if share_of(results, total) < WORTH:
        return
    yield finding(
        results,
        NAME,
        Severity.WARNING,
        "tensors are copied into another layout",
        (
            f"{c.operator}: {plural(c.clones.count, 'copy', 'copies')}, total {units.duration(c.clones.total_ns)}, "
            f"{spread(c.clones)}; e.g. in {within(c.path)}"
            for c in clones[:3]
        ),
        "Keep one layout: no transpose right before reshape() or contiguous(), channels_last throughout for "
        "convolutions.",
        total,
    )
