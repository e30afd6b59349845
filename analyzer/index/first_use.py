"""First use: what the first call of anything costs more than its later ones.

Operators, collectives, regions, annotations, and host calls outside them. A nest of equal names (an operator that
is recorded twice) is one call: wherever in it the excess lies, it counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyzer.index.tree import Ints, Mask, Rows, Tree

#: A first call counts where it took this many times the median of the later ones, and this much longer: less is
#: warm-up of caches, and within the noise of a CPU. One later call alone is a weak median, and is asked for more.
RATIO, RATIO_OF_TWO, EXCESS_NS = 3, 10, 100_000


def share(tree: Tree, calls: Mask, unit: Rows, own: Ints, device_ns: Ints, launching: Mask) -> npt.NDArray[np.float64]:
    """Per row, the share of its own time that is first use; 0 for all but first calls.

    calls      rows that are a call of something: operators, annotations, regions, bare host calls.
    unit       the call that each row's own time belongs to, -1: none.
    own        of each row, time that is neither a wait nor anything else that has a cause of its own (ns).
    device_ns  device time that each row's subtree launched; launching: whether it launched anything.
    """
    out = np.zeros(tree.height)
    held = unit >= 0
    own_of: npt.NDArray[np.float64] = np.bincount(
        unit[held], weights=own[held].astype(np.float64), minlength=tree.height
    ).astype(np.float64)
    rows = np.nonzero(calls)[0].astype(np.int32)
    first = (
        pl.DataFrame({"name": tree.name[rows], "ts": tree.start[rows], "row": rows})
        .group_by("name")
        .agg(pl.col("row").get(pl.col("ts").arg_min()))
    )
    for name, row in first.iter_rows():
        inside = np.arange(row, tree.last[row])
        nest = inside[calls[inside] & (tree.name[inside] == name)]
        took = int(own_of[nest].sum())
        # Few first calls are this slow: only of these are all calls looked at.
        if took >= EXCESS_NS:
            usual = _usual(tree, np.nonzero(calls & (tree.name == name))[0], row, took, own_of, device_ns, launching)
            if usual is not None:
                out[nest] = 1 - usual / took
    return out


def _usual(
    tree: Tree,
    rows: Ints,
    first: int,
    took: int,
    own_of: npt.NDArray[np.float64],
    device_ns: Ints,
    launching: Mask,
) -> float | None:
    """What the first of some calls of one name usually takes (ns); None where it is no first use."""
    reach = np.maximum.accumulate(tree.last[rows])
    outer = np.append(True, rows[1:] >= reach[:-1])
    top, own = rows[outer], np.add.reduceat(own_of[rows], np.nonzero(outer)[0])
    later = top != first
    # The like of a first call are calls with its input shapes, where these were recorded.
    shapes = tree.frame["shapes"].gather(top).to_numpy()
    recorded = int(shapes[~later][0])
    like = later & (shapes == recorded)
    if recorded >= 0 and like.any():
        later = like
    elif later.any():
        # A larger input explains the time of what computes on the host, or has as much more to do on the device.
        if recorded >= 0 and not launching[first]:
            return None
        if device_ns[first] > RATIO * np.median(device_ns[top[later]]) > 0:
            return None
    if not later.any():
        return None
    usual = float(np.median(own[later]))
    ratio = RATIO if later.sum() > 1 else RATIO_OF_TWO
    return usual if took > ratio * usual and took - usual >= EXCESS_NS else None
