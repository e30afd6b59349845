"""What a check says: a report of its own kind, one row a limit."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Annotated

from analyzer import units
from analyzer.budget.load import number
from analyzer.report.blocks import Block, Note, cells, table
from analyzer.report.columns import Name, Row, Text, Unit, column
from analyzer.report.document import Headline, Kind
from analyzer.report.results import Result, Results

#: A figure as the report has it: its unit is that of its name. None: n/a.
Value = int | float | str | bool | None


class Outcome(Enum):
    """What became of a limit."""

    OK = "ok"
    BROKEN = "broken"
    MISSING = "n/a"  # the figure cannot be told in this run: counts as broken
    SKIPPED = "skipped"  # the same, and the budget allows it

    @property
    def holds(self) -> bool:
        return self in (Outcome.OK, Outcome.SKIPPED)


class CheckedLimit(Row, frozen=True, kw_only=True):
    """A limit, what became of it, and why."""

    name: Annotated[Name, column("figure", "its dotted name; of several that it means, the one that is told of")]
    limit: Annotated[Text, column("limit", "max, min or equals, with the figure that is allowed")]
    value: Annotated[Value, column("value", "in this run, in the unit of its name; null: n/a")]
    baseline: Annotated[Value, column("", "in the baseline; null: n/a, or the limit is not relative")] = None
    verdict: Annotated[Outcome, column("", "n/a counts as broken; skipped: n/a, and the budget allows it")]
    reason: Annotated[Text | None, column("reason", "by how much, or why; null: there is nothing to say")] = None
    why: Annotated[Text | None, column("", "why there is such a limit, as the budget says; null: it does not")] = None
    next: Annotated[Text | None, column("", "the command that shows more; null: the limit holds")] = None

    @property
    def holds(self) -> bool:
        return self.verdict.holds

    @property
    def shown(self) -> str:
        """The value as it can be written into a budget."""
        return shown(self.value)

    @property
    def told(self) -> str:
        """What does not hold, in a few lines: the figure, why there is a limit, what to run next."""
        first = f"{self.name} is {self.shown}, limit {self.limit}: {self.reason}"
        return "\n".join(units.clean(part) for part in (first, self.why, self.next) if part)


def shown(value: Value) -> str:
    if value is None:
        return units.NOT_AVAILABLE
    return units.clean(value) if isinstance(value, str) else number(value)


class Checked(Result, frozen=True, kw_only=True):
    """All limits of a budget, in its order."""

    SECTION = "limits"
    TITLE = "Limits"

    trace: Annotated[Text, column("", "the trace, as its report names it")]
    budget: Annotated[Text, column("", "the file of the budget")]
    holds: Annotated[bool, column("", "every limit holds")]
    limits: tuple[CheckedLimit, ...]

    @property
    def broken(self) -> tuple[CheckedLimit, ...]:
        return tuple(line for line in self.limits if not line.holds)

    @property
    def summary(self) -> str:
        limits = units.plural(len(self.limits), "limit")
        skipped = sum(line.verdict is Outcome.SKIPPED for line in self.limits)
        aside = f", {skipped} skipped" if skipped else ""
        broken = len(self.broken)
        return f"{broken} of {limits} broken{aside}" if broken else f"all of {limits} hold{aside}"

    def blocks(self) -> Iterator[Block]:
        yield table(
            "Limits",
            CheckedLimit,
            sorted(self.limits, key=lambda line: line.holds),
            cells("", Unit.TEXT, lambda line: line.verdict.value),
            "name",
            cells("value", Unit.TEXT, lambda line: line.shown),
            "limit",
            # What does not hold is told below, in full: a table cuts long texts.
            cells("", Unit.TEXT, lambda line: (line.reason or "") if line.holds else ""),
            whole=True,
        )
        for line in self.broken:
            yield Note(f"{line.name}: {'; '.join(filter(None, [line.reason, line.why]))}")
        for command in dict.fromkeys(line.next for line in self.broken if line.next):
            yield Note(f"→ {command}")


def _headline(results: Results) -> Headline:
    checked = results[Checked]
    name = checked.trace.replace("\\", "/").rpartition("/")[2]
    return Headline((name, checked.budget), "holds" if checked.holds else "broken", checked.summary)


CHECK = Kind("check", "Report of tracecli check", (Checked,), _headline)
