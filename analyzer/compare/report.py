"""The comparison as a report: the same model, so that every renderer shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from analyzer import units
from analyzer.compare import changes as ch
from analyzer.compare.lesson import best, lesson
from analyzer.compare.runs import Contract, Run, UnitOfWork, figures, unit_of, unprofiled
from analyzer.model import SCHEMA_VERSION, Column, Headline, Report, Section, Table, Unit, Value, Warning

_FIGURES: tuple[tuple[str, str, Unit, Callable[[Run], Value], Callable[[Run], float]], ...] = (
    ("pace_us", "pace", Unit.NS, lambda r: r.pace_ns, lambda r: 0.0),
    ("cpu_us", "CPU", Unit.NS, lambda r: r.cpu_ns, lambda r: r.cpu_spread_ns),
    ("tax_us", "CPU tax", Unit.NS, lambda r: r.tax_ns, lambda r: r.cpu_spread_ns),
    ("device_us", "device", Unit.NS, lambda r: r.device_ns, lambda r: r.device_spread_ns),
    ("idle_us", "idle", Unit.NS, lambda r: r.idle_ns, lambda r: 0.0),
    ("kernels_and_copies", "kernels+copies", Unit.COUNT, lambda r: r.kernels_and_copies, lambda r: 0.0),
    ("copies", "copies", Unit.COUNT, lambda r: r.copies, lambda r: 0.0),
    ("memsets", "memsets", Unit.COUNT, lambda r: r.fills, lambda r: 0.0),
    ("launches", "launches", Unit.COUNT, lambda r: r.launches, lambda r: 0.0),
)


def compare(contracts: Sequence[Contract], labels: Sequence[str], *, top: int = 10) -> Report:
    """Compare two or more reports (their JSON contracts). top: rows a table shows."""
    unit = unit_of(contracts)
    plain = all(unprofiled(c, unit) for c in contracts)
    runs = [figures(c, label, unit, profiled=not plain) for c, label in zip(contracts, labels, strict=True)]
    said = lesson(runs, unit.title if unit.kind != "trace" else "in all")
    sections = [_runs(runs, unit), *(_pair(runs[0], runs[1], top) if len(runs) == 2 else _many(runs, top))]
    warnings = tuple(_warnings(runs, unit))
    headline = Headline(
        source=(f"{len(runs)} runs", unit.title, ", ".join(sorted({r.device for r in runs if r.device})) or "CPU"),
        bound="compared",
        reason=said,
        strips=(),
        trust=(
            ch.RULE,
            *_units(runs, unit),
            "pace rests on steps timed without the profiler"
            if plain
            else "pace rests on profiled times, which the profiler stretches unevenly",
        ),
        path="",
    )
    return Report(_contract(runs, unit, said, warnings), headline, [s for s in sections if s], (), warnings)


def _units(runs: Sequence[Run], unit: UnitOfWork) -> tuple[str, ...]:
    if unit.kind == "trace":
        return ("the runs have no step or annotation in common: totals are compared as they are",)
    noun = "calls" if unit.kind == "annotation" else "steps"
    return (f"{noun}: " + ", ".join(f"{r.units:,} ({r.label})" for r in runs),)


def _warnings(runs: Sequence[Run], unit: UnitOfWork) -> list[Warning]:
    out = []
    devices = sorted({r.device for r in runs})
    if len(devices) > 1:
        named = ", ".join(d or "no device" for d in devices)
        out.append(Warning("different-devices", f"the runs were recorded on different devices: {named}"))
    few = [r.label for r in runs if r.units < 3 and unit.kind != "trace"]
    if few:
        out.append(
            Warning(
                "few-units", f"fewer than three {unit.title[4:]}s recorded, so no spread is known: {', '.join(few)}"
            )
        )
    return out


def _runs(runs: Sequence[Run], unit: UnitOfWork) -> Section:
    winner = best(runs)
    if len(runs) == 2:
        a, b = runs
        rows: list[tuple[Value, ...]] = []
        for _, title, form, value, spread in _FIGURES:
            before, after = value(a), value(b)
            difference = after - before if isinstance(before, int | float) and isinstance(after, int | float) else None
            rows.append(
                (
                    title,
                    _as_text(before, form),
                    _as_text(after, form),
                    _signed(difference, form),
                    _ratio(before, after),
                    _mark(before, after, max(spread(a), spread(b))),
                )
            )
        rows.append(("verdict", a.verdict, b.verdict, "", "", "" if a.verdict == b.verdict else "changed"))
        if a.unprofiled_ns and b.unprofiled_ns:
            times = (a.unprofiled_ns, b.unprofiled_ns)
            rows.append(
                (
                    "step, unprofiled",
                    *(units.duration(t) for t in times),
                    _signed(times[1] - times[0], Unit.NS),
                    _ratio(*times),
                    "",
                )
            )
        if a.backends or b.backends:
            before, after = ", ".join(a.backends) or "none", ", ".join(b.backends) or "none"
            rows.append(("attention", before, after, "", "", "" if before == after else "changed"))
        columns = (
            Column(unit.title, Unit.TEXT),
            *(Column(_short(r.label), Unit.RATIO) for r in runs),
            Column("difference", Unit.RATIO),
            Column("ratio", Unit.RATIO),
            Column("", Unit.TEXT),
        )
        return Section("runs", "Runs", tables=(Table(unit.title, columns, tuple(rows)),))
    columns = (
        Column("run", Unit.TEXT),
        *(Column(title, form) for _, title, form, _, _ in _FIGURES),
        *((Column("attention", Unit.TEXT),) if any(r.backends for r in runs) else ()),
        Column("verdict", Unit.TEXT),
    )
    table = tuple(
        (
            f"{'★ ' if r is winner else '  '}{r.label}",
            *(value(r) for _, _, _, value, _ in _FIGURES),
            *((", ".join(r.backends),) if any(x.backends for x in runs) else ()),
            r.verdict,
        )
        for r in runs
    )
    note = "pace: the slower of host and device" + ("; ★ the best" if winner else "")
    return Section("runs", "Runs", tables=(Table(unit.title, columns, table, note=note),))


def _pair(a: Run, b: Run, top: int) -> list[Section | None]:
    came, went = ch.findings(a, b)
    notes = []
    if came:
        notes.append(f"came: {', '.join(came)}")
    if went:
        notes.append(f"went: {', '.join(went)}")
    stayed = [name for name in a.findings if name in b.findings]
    if stayed:
        notes.append(f"stayed: {', '.join(stayed)}")
    return [
        Section("findings", "Findings", notes=tuple(notes)) if notes else None,
        _causes([a, b], top),
        _changed("operators", "CPU tax by operator", ch.changes(a.operators, b.operators), a, b, top),
        _changed("kernels", "Device time by kernel", ch.changes(a.work, b.work), a, b, top),
    ]


def _changed(key: str, title: str, rows: Sequence[ch.Change], a: Run, b: Run, top: int) -> Section | None:
    moved = [c for c in rows if c.status != "alike"]
    if not moved:
        return Section(key, title, notes=(f"{title}: nothing changed beyond the spread of its calls",))
    table = Table(
        title,
        (
            Column("name", Unit.NAME),
            Column("", Unit.TEXT),
            Column("calls", Unit.COUNT),
            Column("after", Unit.COUNT),
            Column(_short(a.label), Unit.NS),
            Column(_short(b.label), Unit.NS),
            Column("difference", Unit.RATIO),
            Column("ratio", Unit.RATIO),
        ),
        tuple(
            (
                c.name,
                c.status,
                c.calls_before,
                c.calls_after,
                c.before_ns,
                c.after_ns,
                _signed(c.difference_ns, Unit.NS),
                c.ratio if c.status == "changed" else "",
            )
            for c in moved[:top]
        ),
        hidden=max(0, len(moved) - top),
    )
    return Section(key, title, tables=(table,))


def _many(runs: Sequence[Run], top: int) -> list[Section | None]:
    names = list(dict.fromkeys(name for r in runs for name in r.findings))
    matrix = Table(
        "Findings",
        (Column("finding", Unit.TEXT), *(Column(_short(r.label), Unit.TEXT) for r in runs)),
        tuple((name, *("×" if name in r.findings else "" for r in runs)) for name in names[:top]),
        hidden=max(0, len(names) - top),
    )
    kinds: dict[str, list[float]] = {}
    for i, run in enumerate(runs):
        for item in run.work.values():
            kinds.setdefault(item.kind, [0.0] * len(runs))[i] += item.total_ns
    operators = {
        name: [r.operators[name].total_ns if name in r.operators else 0.0 for r in runs]
        for name in dict.fromkeys(name for r in runs for name in r.operators)
    }
    return [
        Section("findings", "Findings", tables=(matrix,)) if names else None,
        _causes(runs, top),
        _grid("kernels", "Device time by kind", "kind", kinds, runs, top),
        _grid("operators", "CPU tax by operator", "operator", operators, runs, top),
    ]


def _causes(runs: Sequence[Run], top: int) -> Section | None:
    causes = {
        name.replace("_", " "): [r.causes.get(name, 0.0) for r in runs]
        for name in dict.fromkeys(name for r in runs for name in r.causes)
    }
    return _grid("gaps", "Idle time by cause", "cause", causes, runs, top)


def _grid(
    key: str, title: str, what: str, rows: Mapping[str, Sequence[float]], runs: Sequence[Run], top: int
) -> Section | None:
    ranked = sorted(rows.items(), key=lambda item: (-max(item[1]), item[0]))
    if not ranked:
        return None
    table = Table(
        title,
        (Column(what, Unit.NAME), *(Column(_short(r.label), Unit.NS) for r in runs)),
        tuple((name, *(v or "" for v in values)) for name, values in ranked[:top]),
        hidden=max(0, len(ranked) - top),
    )
    return Section(key, title, tables=(table,))


def _short(label: str) -> str:
    return units.short_name(label, 16)


def _as_text(value: Value, form: Unit) -> str:
    if isinstance(value, int | float):
        return units.duration(value) if form is Unit.NS else units.count(value)
    return units.NOT_AVAILABLE


def _signed(value: float | None, form: Unit) -> str:
    if value is None:
        return ""
    text = units.duration(abs(value)) if form is Unit.NS else units.count(abs(value))
    return text if value == 0 else f"{'+' if value > 0 else '-'}{text}"


def _ratio(before: Value, after: Value) -> str:
    both = isinstance(before, int | float) and isinstance(after, int | float) and before
    return units.ratio(after / before) if both else ""  # type: ignore[operator]


def _mark(before: Value, after: Value, spread: float) -> str:
    if not isinstance(before, int | float) or not isinstance(after, int | float):
        return ""
    return "" if ch.beyond(before, after, spread) else "alike"


def _contract(runs: Sequence[Run], unit: UnitOfWork, said: str, warnings: Sequence[Warning]) -> dict[str, Any]:
    winner = best(runs)
    base = runs[0]
    return {
        "schema_version": SCHEMA_VERSION,
        "unit": {"kind": unit.kind, "name": unit.name},
        "rule": ch.RULE,
        "lesson": said,
        "best": winner.label if winner else None,
        "warnings": [{"code": w.code, "message": w.message} for w in warnings],
        "runs": [
            {
                "name": r.label,
                "path": r.path,
                "units": r.units,
                "device": r.device or None,
                "verdict": r.verdict,
                **{key: units.us(v) if form is Unit.NS else v for key, _, form, f, _ in _FIGURES for v in (f(r),)},  # type: ignore[arg-type]
                "attention": list(r.backends),
                "findings": list(r.findings),
                "inflation": r.inflation,
                "unprofiled_step_us": units.us(r.unprofiled_ns),
                "idle_by_cause_us": {name: units.us(ns) for name, ns in r.causes.items()},
            }
            for r in runs
        ],
        "differences": [
            {
                "from": base.label,
                "to": r.label,
                "operators": [_row(c) for c in ch.changes(base.operators, r.operators)],
                "kernels": [_row(c) for c in ch.changes(base.work, r.work)],
                "findings_came": list(ch.findings(base, r)[0]),
                "findings_went": list(ch.findings(base, r)[1]),
            }
            for r in runs[1:]
        ],
    }


def _row(c: ch.Change) -> dict[str, Any]:
    return {
        "name": c.name,
        "kind": c.kind,
        "status": c.status,
        "calls_per_unit": [c.calls_before, c.calls_after],
        "us_per_unit": [units.us(c.before_ns), units.us(c.after_ns)],
        "difference_us": units.us(c.difference_ns),
        "ratio": c.ratio,
    }
