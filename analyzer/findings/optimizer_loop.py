"""The optimizer walks through the parameters one by one, with several launches for each.

What it means
    A step that updates each tensor by itself launches a handful of kernels of a microsecond or two for every
    parameter, and the same again for `zero_grad`. Torch's optimizers can take all parameters at once: `foreach` with
    a few launches for lists of tensors, `fused` with one kernel that reads and writes everything once.

How it is computed
    Inside `Optimizer.step#...` and `Optimizer.zero_grad#...`, launches that no foreach, fused or compiled operator
    makes. It fires where there are 32 a call or more, and one operator makes eight of them: a loop over parameters, and
    not the few scalars that any optimizer has. "Up to" is the idle time of the device in the gaps that these launches
    ended, as far as dispatch, Python or the launch itself is its cause; a note where that is below a twentieth of the
    window: behind a busy device the launches are hidden.

What to try
        torch.optim.AdamW(model.parameters(), fused=True)       # Adam, AdamW, SGD, Adagrad
        torch.optim.SGD(model.parameters(), lr, foreach=True)   # all others
        optimizer.zero_grad(set_to_none=True)                   # the default: no fills at all
    An optimizer of your own: torch._foreach_mul_, torch._foreach_addcdiv_ and their kin, or torch.compile its step.
    Parameters on the CPU, sparse gradients or `foreach=False` put torch back to the loop: look for them.

When it is wrong
    foreach needs temporary memory of the size of the parameters; fused wants floating-point parameters on one kind of
    device. A handful of huge tensors is bound by memory, not by launches.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.optimizers import OptimizerWork
from analyzer.findings import SEEN, finding, grade, optimizer_loops, share_of
from analyzer.report.findings import Finding
from analyzer.report.results import Results

NAME = "optimizer-loop"


def find(results: Results) -> Iterable[Finding]:
    loops = optimizer_loops(results)
    idle, device = sum(o.idle_ns for o in loops), sum(o.device_ns for o in loops)
    if max(share_of(results, idle), share_of(results, device)) < SEEN:
        return
    steps = [o for o in loops if ".step#" in o.name]
    first = max(steps or loops, key=lambda o: o.single_median)
    yield finding(
        results,
        NAME,
        grade(share_of(results, idle)),
        f"{_short(first)} updates one parameter at a time: {units.count(first.single_median)} launches a call",
        (
            *(_line(o) for o in loops),
            f"the device waits {units.duration(idle)} for these launches, and runs them for {units.duration(device)}",
        ),
        _advice(loops),
        idle,
    )


def _short(o: OptimizerWork) -> str:
    return o.name.partition("#")[2] or o.name


def _line(o: OptimizerWork) -> str:
    listed = ", ".join(f"{units.count(p.per_call)} {p.name.removeprefix('aten::')}" for p in o.operators[:5])
    return (
        f"{_short(o)}: {units.count(o.single_median)} of {units.count(o.launches_median)} launches a call, one tensor "
        f"each: {listed}"
    )


def _advice(loops: list[OptimizerWork]) -> str:
    said = []
    if any(".step#" in o.name for o in loops):
        said.append("pass fused=True (or foreach=True) to the optimizer, on parameters that all lie on the device")
    if any(".zero_grad#" in o.name for o in loops):
        said.append("zero_grad(set_to_none=True) frees the gradients in place of filling them")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."
