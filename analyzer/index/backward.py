"""Which forward operator a function of the backward pass belongs to.

PyTorch numbers autograd's nodes as it makes them (`Sequence number`); an operator carries the number that its
thread will give next. Of the forward operators with one number the last to start is therefore the one that made the
node, and the node's own function carries the number again, with the forward thread's id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from analyzer.index.host import Host
    from analyzer.index.tree import Rows


def functions(host: Host) -> tuple[Rows, Rows]:
    """(rows of the backward's outermost functions, the forward row that each belongs to).

    A number that several threads of a process gave is left out: which of them is meant is not recorded.
    """
    numbered = host.frame.select("seq", "fwd_thread").with_row_index("row").filter(pl.col("seq").is_not_null())
    row = numbered["row"].to_numpy()
    frame = numbered.with_columns(
        process=pl.Series(host.process[host.thread[row]]),
        thread=pl.Series(host.thread[row]),
        start=pl.Series(host.start[row]),
        backward=pl.col("fwd_thread").fill_null(0) > 0,
    )
    nodes = frame.filter("backward")
    if not nodes.height:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    inner = np.zeros(host.height, bool)
    inner[nodes["row"].to_numpy()] = True
    made = (
        frame.filter(~pl.col("backward"))
        .sort("start", "row")
        .group_by("process", "seq", maintain_order=True)
        .agg(forward=pl.col("row").last(), threads=pl.col("thread").n_unique())
        .filter(pl.col("threads") == 1)
    )
    outermost = nodes.filter(pl.Series(host.enclosing(inner)[nodes["row"].to_numpy()] < 0))
    found = outermost.join(made, on=["process", "seq"], maintain_order="left")
    return found["row"].to_numpy().astype(np.int32), found["forward"].to_numpy().astype(np.int32)
