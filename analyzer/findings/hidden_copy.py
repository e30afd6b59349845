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

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from analyzer import units
from analyzer.findings import SEEN, WORTH, finding, grade, host_bound, share_of, spread
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.model import Finding, Result, Severity
from analyzer.units import plural

if TYPE_CHECKING:
    from analyzer.index.tree import Ints, Mask, Rows

NAME = "hidden-copy"


def find(results: Mapping[str, Result], chains: Chains) -> Iterable[Finding]:
    if host_bound(results):
        return
    host = chains.host
    clones = np.nonzero(exposure.operators(chains, r"^aten::clone$") & (host.parent >= 0))[0]
    copied = host.below(chains.direct_device_ns)[clones]
    clones, copied = clones[copied > 0], copied[copied > 0]
    parent = host.parent[clones]
    in_place = _has_in_place_child(chains, np.unique(host.name[parent]))[parent]
    yield from _out_of_place(chains, parent[in_place], copied[in_place])
    layout = exposure.operators(chains, r"^aten::(?:reshape|contiguous)$")[parent]
    yield from _layout(chains, parent[layout], copied[layout])


def _has_in_place_child(chains: Chains, names: Rows) -> Mask:
    """Rows with a direct child that is their own in-place form. names: of the rows in question."""
    host, text = chains.host, chains.trace.names
    found = np.zeros(host.height, bool)
    for name in names.tolist():
        twin = (text == f"{text[name]}_").to_numpy()
        children = np.nonzero(twin[host.name] & (host.parent >= 0))[0]
        found[host.parent[children]] |= host.name[host.parent[children]] == name
    return found


def _by_operator(chains: Chains, rows: Rows, ns: Ints) -> list[tuple[str, Ints, int]]:
    """(operator, durations of its copies, a row of it), the costliest first."""
    out = []
    for name in np.unique(chains.host.name[rows]).tolist():
        mine = chains.host.name[rows] == name
        out.append((str(chains.trace.names[name]), ns[mine], int(rows[mine][0])))
    return sorted(out, key=lambda x: -int(x[1].sum()))


def _out_of_place(chains: Chains, rows: Rows, ns: Ints) -> Iterable[Finding]:
    total = int(ns.sum())
    share = share_of(chains, total)
    if share < SEEN:
        return
    groups = _by_operator(chains, rows, ns)
    first = groups[0][0]
    yield finding(
        NAME,
        grade(share, Severity.WARNING),
        f"{first} copies its whole input first",
        (
            f"{name}: {plural(len(values), 'call')}, each cloned its input: {spread(values.tolist())}; in "
            f"{' > '.join(chains.path(row)[-3:])}"
            for name, values, row in groups[:3]
        ),
        f"Use the in-place form, {first.removeprefix('aten::')}_(), under torch.no_grad() or on a tensor that nothing "
        "else needs; in training torch.where, or torch.compile, which fuses the copy away.",
        total,
        chains,
    )


def _layout(chains: Chains, rows: Rows, ns: Ints) -> Iterable[Finding]:
    total = int(ns.sum())
    share = share_of(chains, total)
    if share < WORTH:
        return
    groups = _by_operator(chains, rows, ns)
    yield finding(
        NAME,
        Severity.WARNING,
        "tensors are copied into another layout",
        (
            f"{name}: {plural(len(values), 'copy', 'copies')}, total {units.duration(int(values.sum()))}, "
            f"{spread(values.tolist())}; e.g. in {' > '.join(chains.path(row)[-3:])}"
            for name, values, row in groups[:3]
        ),
        "Keep one layout: no transpose right before reshape() or contiguous(), channels_last throughout for "
        "convolutions.",
        total,
        chains,
    )
