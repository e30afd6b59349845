"""What changed between two runs, and whether it is more than the spread of the calls themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from analyzer.compare.runs import Item, Run
from analyzer.report.columns import MeanCount, MeanNs, Name, Ratio, Row, Text, column

#: A difference counts beyond the larger robust deviation of the two, and beyond this share: clocks alone
#: move a kernel by that much from run to run.
LEAST = 0.02

RULE = (
    f"a change counts where the medians differ by more than the larger spread of the two runs "
    f"(1.4826 MAD over the calls) and by more than {LEAST:.0%}"
)


class Change(Row, frozen=True, kw_only=True):
    """One operator or kernel in two runs."""

    name: Annotated[Name, column("name", "of the operator or kernel")]
    kind: Annotated[Text, column("", "operator, or what the kernel computes")]
    status: Annotated[
        Literal["added", "removed", "changed", "alike"], column("", "changed: beyond the spread, or calls differ")
    ]
    calls_per_unit: Annotated[tuple[MeanCount, MeanCount], column("", "before and after")]
    ns_per_unit: Annotated[tuple[MeanNs, MeanNs], column("", "before and after: self tax or device time")]
    difference_ns: Annotated[MeanNs, column("difference", "after less before")]
    ratio: Annotated[Ratio | None, column("ratio", "after by before; null: nothing before")]


class Difference(Row, frozen=True, kw_only=True):
    """What is other in one run than in the first."""

    IDENTITY: ClassVar[str] = "to"

    from_: Annotated[Name, column("", "the first run")] = msgspec.field(name="from")
    to: Annotated[Name, column("", "the run that is compared with it")]
    operators: tuple[Change, ...]  # of CPU tax, the largest difference first
    kernels: tuple[Change, ...]  # of device time, the largest difference first
    findings_came: Annotated[tuple[str, ...], column("", "findings that the first run does not have")]
    findings_went: Annotated[tuple[str, ...], column("", "findings that only the first run has")]
    findings_stayed: Annotated[tuple[str, ...], column("", "findings of both")]


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
    status: Literal["added", "removed", "changed", "alike"]
    if a is None or b is None:
        status = "added" if a is None else "removed"
    else:
        moved = beyond(a.median_ns, b.median_ns, max(a.spread_ns, b.spread_ns))
        status = "changed" if moved or a.calls != b.calls else "alike"
    before, after = a.total_ns if a else 0.0, b.total_ns if b else 0.0
    return Change(
        name=name,
        kind=one.kind,
        status=status,
        calls_per_unit=(a.calls if a else 0.0, b.calls if b else 0.0),
        ns_per_unit=(before, after),
        difference_ns=after - before,
        ratio=after / before if before else None,
    )


def findings(before: Run, after: Run) -> dict[str, tuple[str, ...]]:
    """Findings that came, that went, and that stayed, by the field of `Difference`."""
    return {
        "findings_came": tuple(name for name in after.findings if name not in before.findings),
        "findings_went": tuple(name for name in before.findings if name not in after.findings),
        "findings_stayed": tuple(name for name in before.findings if name in after.findings),
    }
