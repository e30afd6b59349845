"""The first look: one screen, with what decides what to do; all else is named and asked for."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from analyzer.analyses.operators import Operators
from analyzer.render import Options, render
from analyzer.report.document import Findings, Report
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from tests.recorded import NAMES, report_of
from tests.render.samples import of_micro_trace

LINES = 60


def look(report: Report, width: int = 100, **options: object) -> list[str]:
    return render(report, "terminal", Options(width=width, **options)).decode().splitlines()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_the_first_look_at_a_fixture_fits_its_screen(name: str) -> None:
    lines = look(report_of(name))
    assert len(lines) <= LINES
    assert max(cell_len(line) for line in lines if "tracecli analyze" not in line) <= 100


def test_what_the_first_look_leaves_out_is_named_at_its_end(tmp_path):
    report = of_micro_trace(tmp_path)
    text = " ".join("\n".join(look(report)).split())
    left = [s.key for s in report.sections if s.first is None]
    assert left
    assert f"{len(left)} more sections with --all, or --only NAME: {', '.join(left)}" in text


def with_findings(report: Report, *findings: Finding) -> Report:
    return Report(
        report.kind, Results([r for r in report.results if not isinstance(r, Findings)] + [Findings(findings=findings)])
    )


def finding(name: str, severity: Severity, lines: int = 3) -> Finding:
    evidence = tuple(f"{name} evidence {i}" for i in range(lines))
    return Finding(name=name, severity=severity, title=f"{name} title", evidence=evidence, advice=f"{name} advice")


def test_three_findings_bring_evidence_and_advice_and_all_others_a_line(tmp_path):
    grave = [finding(f"grave-{i}", Severity.WARNING) for i in range(5)]
    notes = [finding(f"note-{i}", Severity.NOTE) for i in range(5)]
    text = "\n".join(look(with_findings(of_micro_trace(tmp_path), *grave, *notes)))
    assert [i for i in range(5) if f"grave-{i} advice" in text] == [0, 1, 2]
    assert [i for i in range(5) if f"grave-{i} evidence 0" in text] == [0, 1, 2]
    assert "evidence 1" not in text
    assert [i for i in range(5) if f"grave-{i} title" in text] == [0, 1, 2, 3, 4]
    assert [i for i in range(5) if f"note-{i} title" in text] == [0, 1, 2]
    assert "2 notes more: note-3, note-4" in text


def test_where_there_are_only_notes_the_first_brings_its_advice(tmp_path):
    notes = [finding(f"note-{i}", Severity.NOTE) for i in range(2)]
    text = "\n".join(look(with_findings(of_micro_trace(tmp_path), *notes)))
    assert [i for i in range(2) if f"note-{i} advice" in text] == [0]


def test_many_findings_take_their_lines_from_tables_and_then_from_each_other() -> None:
    long = [finding(f"grave-{i}", Severity.ERROR) for i in range(9)]
    report = with_findings(report_of("train_eager"), *(long[i] for i in range(9)))
    wordy = with_findings(
        report_of("train_eager"),
        *(
            Finding(name=f.name, severity=f.severity, title=f.title, evidence=("word " * 80,), advice="word " * 80)
            for f in long
        ),
    )
    few, many = look(report), look(wordy)
    assert len(few) <= LINES
    assert len(many) <= LINES
    assert sum("word word" in line for line in many) < sum("word word" in line for line in look(wordy, top=1))


def test_rows_that_are_asked_for_are_shown_however_long_it_gets() -> None:
    lines = look(report_of("train_eager"), top=30)
    assert len(lines) > LINES
    first = report_of("train_eager").results[Operators].operators[:30]
    assert sum(line.startswith("aten::") for line in lines) == sum(o.name.startswith("aten::") for o in first) > 10
