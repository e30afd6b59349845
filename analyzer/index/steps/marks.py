"""Steps that annotations mark: an engine's, or the user's that recur."""

from __future__ import annotations

import numpy as np

from analyzer.events.schema import Cat
from analyzer.index.steps.scene import Found, How, Scene, folded, of_rows
from analyzer.index.vocabulary import Role

#: Steps must hold this share of the linked device events to be believed.
HOLD = 0.6
#: Annotations within one another, as deep as anyone nests them.
_DEPTH = 16
#: Annotations that are no steps: libraries' own.
NO_STEP = (
    r"^nccl:|^Optimizer\.|DataLoader|CompiledFxGraph|DistributedDataParallel|(?i:^fsdp|fullyshardeddataparallel)"
    r"|dynamo|^Torch-Compiled|^Compiled(?:Function|Autograd)|^capture_|^autograd::|^PyTorch Profiler"
)
_NO_STEP_ROLES = (
    Role.STEP, Role.REGION, Role.REGION_PART, Role.GUARDS, Role.PROLOGUE, Role.COMPILE, Role.INPUT, Role.COLLECTIVE,
)  # fmt: skip


def engine(scene: Scene) -> Found | None:
    chains = scene.chains
    said = scene.engines.said(chains.trace.names, "annotation")["engine"].is_not_null().to_numpy()
    mine = said[chains.host.name] & (chains.host.cat == Cat.ANNOTATION)
    rows = np.nonzero(mine & (chains.host.enclosing(mine) < 0))[0]
    if not len(rows):
        return None
    found = of_rows(scene, How.ENGINE, chains.host, rows, frames=False)
    found = found.only(scene.events(found) > 0)
    return found if found.count else None


def recurring(scene: Scene) -> Found | None:
    chains, host = scene.chains, scene.chains.host
    no_step = chains.trace.names.str.contains(NO_STEP).to_numpy()[host.name]
    open_ = (chains.host.cat == Cat.ANNOTATION) & ~no_step & ~np.isin(chains.host.role, _NO_STEP_ROLES)
    if not open_.any():
        return None
    fold = folded(chains.trace.names).rank("dense").to_numpy()[host.name]
    holds = host.below(open_.astype(np.int64)) > 1  # another one in it
    for _ in range(_DEPTH):
        top = open_ & (host.enclosing(open_) < 0)
        once = np.bincount(fold[top], minlength=int(fold.max()) + 1) == 1
        opened = top & once[fold] & holds
        if not opened.any():
            break
        open_ &= ~opened
    found = of_rows(scene, How.ANNOTATIONS, host, np.nonzero(top)[0], frames=False)
    found = found.only(scene.events(found) > 0)
    return found if scene.recurring(found) >= HOLD else None
