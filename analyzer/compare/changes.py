"""What changed between two runs, and whether it is more than the spread of the calls themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analyzer.compare.runs import Item, Run

#: A difference counts beyond the larger robust deviation of the two, and beyond this share: clocks alone
#: move a kernel by that much from run to run.
LEAST = 0.02

RULE = (
    f"a change counts where the medians differ by more than the larger spread of the two runs "
    f"(1.4826 MAD over the calls) and by more than {LEAST:.0%}"
)


@dataclass(frozen=True, slots=True)
class Change:
    """One operator or kernel in two runs. status: added, removed, changed, alike.

    before, after  total per unit (ns); calls likewise. `counts`: beyond the spread, or calls differ.
    """

    name: str
    kind: str
    status: str
    calls_before: float
    calls_after: float
    before_ns: float
    after_ns: float

    @property
    def difference_ns(self) -> float:
        return self.after_ns - self.before_ns

    @property
    def ratio(self) -> float | None:
        return self.after_ns / self.before_ns if self.before_ns else None


def beyond(before: float, after: float, spread: float) -> bool:
    """Whether a difference of two medians is more than their spread, by RULE."""
    difference = abs(after - before)
    return difference > spread and difference > LEAST * max(abs(before), abs(after))


def changes(before: Mapping[str, Item], after: Mapping[str, Item]) -> tuple[Change, ...]:
    """All items of both runs, the largest difference first."""
    rows = [_change(name, before.get(name), after.get(name)) for name in {**before, **after}]
    return tuple(sorted(rows, key=lambda c: (-abs(c.difference_ns), c.name)))


def _change(name: str, a: Item | None, b: Item | None) -> Change:
    one = a or b
    assert one is not None
    if a is None or b is None:
        status = "added" if a is None else "removed"
    else:
        moved = beyond(a.median_ns, b.median_ns, max(a.spread_ns, b.spread_ns))
        status = "changed" if moved or a.calls != b.calls else "alike"
    return Change(
        name,
        one.kind,
        status,
        a.calls if a else 0.0,
        b.calls if b else 0.0,
        a.total_ns if a else 0.0,
        b.total_ns if b else 0.0,
    )


def findings(before: Run, after: Run) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Findings that came, and that went."""
    came = tuple(name for name in after.findings if name not in before.findings)
    went = tuple(name for name in before.findings if name not in after.findings)
    return came, went
