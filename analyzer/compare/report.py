"""The comparison as a report of its own kind, so that every renderer shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from analyzer import units
from analyzer.compare import changes as ch
from analyzer.compare.lesson import best, lesson
from analyzer.compare.runs import Run, UnitOfWork, figures, kernels, operators, unit_of, unprofiled
from analyzer.report import codec
from analyzer.report.blocks import Block, Cells, Note, Quantity, Table, Value, cells, table
from analyzer.report.columns import Name, Text, Unit, column, columns_of
from analyzer.report.document import Headline, Kind, Report, Warnings
from analyzer.report.findings import Warning
from analyzer.report.results import Result, Results

_TIMES = ("pace_ns", "cpu_ns", "tax_ns", "device_ns", "idle_ns")
_COUNTS = ("kernels_and_copies", "copies", "memsets", "launches")
#: A figure -> its spread over the calls.
_SPREADS = {"cpu_ns": "cpu_ns_spread", "tax_ns": "cpu_ns_spread", "device_ns": "device_ns_spread"}
#: A column that is a run has a title of this many characters at most.
_LABEL = 16


class Runs(Result, frozen=True, kw_only=True):
    SECTION = "runs"
    TITLE = "Runs"

    unit: UnitOfWork
    rule: Annotated[Text, column("", "when a change counts")]
    lesson: Annotated[Text, column("", "which run to take, and why")]
    best: Annotated[Name | None, column("", "the run of the best pace; null: all alike, or not told")]
    pace_from: Annotated[
        Literal["unprofiled", "profiled"], column("", "steps timed without the profiler, where all runs have such")
    ]
    runs: tuple[Run, ...]

    def blocks(self) -> Iterator[Block]:
        if len(self.runs) == 2:
            yield from self._pair(*self.runs)
        else:
            yield self._variants()
        parts = dict.fromkeys(name for run in self.runs for name in run.parts_ns)
        yield from _grid(
            "Where the window went",
            "part",
            {name.replace("_", " "): [r.parts_ns.get(name, 0.0) for r in self.runs] for name in parts},
            [r.name for r in self.runs],
        )

    def _pair(self, a: Run, b: Run) -> Iterator[Block]:
        lines = [_line(a, b, field) for field in (*_TIMES, *_COUNTS)]
        lines.append(_words("verdict", a.verdict, b.verdict))
        if a.unprofiled_step_ns and b.unprofiled_step_ns:
            lines.append(_line(a, b, "unprofiled_step_ns"))
        if a.attention or b.attention:
            lines.append(_words("attention", ", ".join(a.attention) or "none", ", ".join(b.attention) or "none"))
        before, after = _labels([a.name, b.name])
        columns = (
            cells(self.unit.title, Unit.TEXT, lambda line: line.title),
            cells(before, Unit.OWN, lambda line: line.before),
            cells(after, Unit.OWN, lambda line: line.after),
            cells("difference", Unit.OWN, lambda line: line.difference),
            cells("ratio", Unit.RATIO, lambda line: line.ratio),
            cells("", Unit.TEXT, lambda line: line.mark),
        )
        yield Table(self.unit.title, columns, lines, whole=True)

    def _variants(self) -> Table:
        note = "pace: the slower of host and device" + ("; ★ the best" if self.best is not None else "")
        attention = any(r.attention for r in self.runs)
        return table(
            self.unit.title,
            Run,
            self.runs,
            cells("run", Unit.TEXT, lambda r: f"{'★' if r.name == self.best else ' '} {r.name}"),
            *_TIMES,
            *_COUNTS,
            *([cells("attention", Unit.TEXT, lambda r: ", ".join(r.attention))] if attention else []),
            "verdict",
            note=note,
            whole=True,
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of the comparison of two runs, ready to be shown."""

    title: str
    before: Value
    after: Value
    difference: Value
    ratio: Value
    mark: str


def _line(a: Run, b: Run, field: str) -> _Line:
    """A figure of two runs; "alike" where they differ by no more than its spread."""
    column = columns_of(Run)[field]
    before, after = getattr(a, field), getattr(b, field)
    shown = (Quantity(before, column.unit), Quantity(after, column.unit))
    if before is None or after is None:
        return _Line(column.title, *shown, "", "", "")
    spread = max(getattr(r, _SPREADS[field]) for r in (a, b)) if field in _SPREADS else 0.0
    difference = Quantity(after - before, column.unit, signed=True)
    alike = "" if ch.beyond(before, after, spread) else "alike"
    return _Line(column.title, *shown, difference, after / before if before else "", alike)


def _words(title: str, before: str, after: str) -> _Line:
    shown = (Quantity(before, Unit.TEXT), Quantity(after, Unit.TEXT))
    return _Line(title, *shown, "", "", "" if before == after else "changed")


class Differences(Result, frozen=True, kw_only=True):
    SECTION = "differences"
    TITLE = "Differences"

    differences: tuple[ch.Difference, ...]

    def blocks(self) -> Iterator[Block]:
        if len(self.differences) == 1:
            (difference,) = self.differences
            for how in ("came", "went", "stayed"):
                if names := getattr(difference, f"findings_{how}"):
                    yield Note(f"findings that {how}: {', '.join(names)}")
            if _strangers(difference.kernels):
                names = [difference.from_, difference.to]
                yield from _grid("Device time by kind", "kind", _totals(self.differences, "kernels", "kind"), names)
            yield _changed("CPU tax by operator", difference.operators, difference)
            yield _changed("Device time by kernel", difference.kernels, difference)
        elif self.differences:
            yield from self._variants(self.differences)

    def _variants(self, differences: tuple[ch.Difference, ...]) -> Iterator[Block]:
        names = [differences[0].from_, *(d.to for d in differences)]
        found = [
            {*differences[0].findings_went, *differences[0].findings_stayed},
            *({*d.findings_came, *d.findings_stayed} for d in differences),
        ]
        if all_found := sorted(set().union(*found), key=lambda name: (-sum(name in f for f in found), name)):
            yield Table(
                "Findings",
                (cells("finding", Unit.TEXT, lambda name: name), *_columns(names, Unit.TEXT, _mark_in(found))),
                all_found,
            )
        yield from _grid("Device time by kind", "kind", _totals(differences, "kernels", "kind"), names)
        yield from _grid("CPU tax by operator", "operator", _totals(differences, "operators", "name"), names)


def _strangers(kernels: Sequence[ch.Change]) -> bool:
    """Whether most device time of a run is in kernels that the other has not: other libraries, other names."""
    for i in (0, 1):
        whole = sum(c.ns_per_unit[i] for c in kernels)
        if 2 * sum(c.ns_per_unit[i] for c in kernels if c.status in ("added", "removed")) > whole:
            return True
    return False


def _mark_in(found: Sequence[set[str]]) -> Callable[[Any, int], Value]:
    return lambda name, i: "×" if name in found[i] else ""


def _totals(differences: Sequence[ch.Difference], what: str, key: str) -> dict[str, list[float]]:
    """Time per unit of each run, the first one's from the first difference: a row for each name or kind."""
    out: dict[str, list[float]] = {}
    for i, difference in enumerate(differences):
        for change in getattr(difference, what):
            row = out.setdefault(getattr(change, key), [0.0] * (len(differences) + 1))
            row[0] += change.ns_per_unit[0] if i == 0 else 0.0
            row[i + 1] += change.ns_per_unit[1]
    return out


def _changed(title: str, rows: Sequence[ch.Change], difference: ch.Difference) -> Block:
    moved = [c for c in rows if c.status != "alike"]
    if not moved:
        return Note(f"{title}: nothing changed beyond the spread of its calls")
    before, after = _labels([difference.from_, difference.to])
    return table(
        title,
        ch.Change,
        moved,
        "name",
        "status",
        cells("calls", Unit.COUNT, lambda c: c.calls_per_unit[0]),
        cells("after", Unit.COUNT, lambda c: c.calls_per_unit[1]),
        cells(before, Unit.NS, lambda c: c.ns_per_unit[0]),
        cells(after, Unit.NS, lambda c: c.ns_per_unit[1]),
        "difference_ns",
        cells("ratio", Unit.RATIO, lambda c: c.ratio if c.status == "changed" else ""),
    )


def _grid(title: str, what: str, rows: Mapping[str, Sequence[float]], names: Sequence[str]) -> Iterator[Table]:
    """Times of all runs, a row for each thing that took some, the largest first."""
    ranked = sorted((r for r in rows.items() if any(r[1])), key=lambda item: (-max(item[1]), item[0]))
    if ranked:
        columns = _columns(names, Unit.NS, lambda row, i: row[1][i] or "")
        if len(names) == 2:
            moved = cells("difference", Unit.OWN, lambda row: Quantity(row[1][1] - row[1][0], Unit.NS, signed=True))
            columns = [*columns, moved]
        yield Table(title, (cells(what, Unit.NAME, lambda row: row[0]), *columns), ranked)


def _columns(names: Sequence[str], unit: Unit, get: Callable[[Any, int], Value]) -> list[Cells]:
    """A column for each run. get: the value of a row in the run of that position."""
    return [cells(label, unit, partial(_at, get, i)) for i, label in enumerate(_labels(names))]


def _at(get: Callable[[Any, int], Value], position: int, row: Any) -> Value:
    return get(row, position)


def _labels(names: Sequence[str]) -> list[str]:
    short = units.short_names(names, _LABEL)
    return [short[name] for name in names]


def compare(reports: Sequence[Results], labels: Sequence[str]) -> Report:
    """Compare two or more runs by the results of their reports. labels: a name for each, all different."""
    unit = unit_of(reports)
    plain = all(unprofiled(report, unit) for report in reports)
    runs = [
        figures(one, units.path_text(label), unit, profiled=not plain)
        for one, label in zip(reports, labels, strict=True)
    ]
    winner = best(runs, profiled=not plain)
    base = runs[0]
    differences = tuple(
        ch.Difference(
            from_=base.name,
            to=run.name,
            operators=ch.changes(operators(reports[0], base.units), operators(report, run.units)),
            kernels=ch.changes(kernels(reports[0], base.units), kernels(report, run.units)),
            **ch.findings(base, run),
        )
        for run, report in zip(runs[1:], reports[1:], strict=True)
    )
    compared = Runs(
        unit=unit,
        rule=ch.RULE,
        lesson=lesson(runs, unit.title if unit.kind != "trace" else "in all", profiled=not plain),
        best=winner.name if winner else None,
        pace_from="unprofiled" if plain else "profiled",
        runs=tuple(runs),
    )
    warnings = Warnings(warnings=tuple(_warnings(runs, unit)))
    parts = (compared, warnings, Differences(differences=differences))
    return Report(COMPARISON, Results(codec.as_read(part) for part in parts))


def _warnings(runs: Sequence[Run], unit: UnitOfWork) -> Iterator[Warning]:
    devices = sorted({r.device or "" for r in runs})
    if len(devices) > 1:
        named = ", ".join(d or "no device" for d in devices)
        yield Warning("different-devices", f"the runs were recorded on different devices: {named}")
    few = [r.name for r in runs if r.units < 3 and unit.kind != "trace"]
    if few:
        said = f"fewer than three {unit.plural} recorded, so no spread is known: {', '.join(few)}"
        yield Warning("few-units", said)


def _headline(results: Results) -> Headline:
    compared = results[Runs]
    devices = sorted({r.device for r in compared.runs if r.device})
    return Headline(
        source=(f"{len(compared.runs)} runs", compared.unit.title, ", ".join(devices) or "CPU"),
        bound="compared",
        reason=compared.lesson,
        trust=(
            compared.rule,
            _units(compared.runs, compared.unit),
            "pace rests on steps timed without the profiler"
            if compared.pace_from == "unprofiled"
            else "pace rests on profiled times, which the profiler stretches unevenly",
        ),
    )


def _units(runs: Sequence[Run], unit: UnitOfWork) -> str:
    if unit.kind == "trace":
        return "the runs have no step or annotation in common: totals are compared as they are"
    noun = "calls" if unit.kind == "annotation" else "steps"
    return f"{noun}: " + ", ".join(f"{r.units:,} ({r.name})" for r in runs)


COMPARISON = Kind("comparison", "Report of tracecli compare", (Runs, Warnings, Differences), _headline)
