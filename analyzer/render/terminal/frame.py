"""What stands round the sections: headline, findings, trust, next step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from analyzer import units
from analyzer.render.terminal.blocks import draw_strip
from analyzer.render.terminal.page import LEAST_TEXT, Page, fit, title_line, wrap
from analyzer.report.document import Report
from analyzer.report.findings import Finding, Severity, Warning

_MARK = {
    Severity.ERROR: ("✗", "bold red"),
    Severity.WARNING: ("!", "bold yellow"),
    Severity.NOTE: ("·", "bold blue"),
}

#: Lines of evidence in a first look.
BRIEF = 2


def draw_headline(page: Page, report: Report) -> None:
    head = report.headline
    page.wrapped("  ·  ".join(units.clean(part) for part in head.source), 0, "dim")
    page.line()
    good = report.kind.name in ("file", "comparison") or head.bound in ("compute-bound", "cpu-only", "holds")
    style = "bold green" if good else "bold yellow" if head.bound in ("mixed", "nothing-to-judge") else "bold red"
    label = head.bound.upper()
    rows = wrap(units.clean(head.reason), page.width - len(label) - 2)
    page.line((label, style), "  ", rows[0] if rows else "")
    for row in rows[1:]:
        page.line(" " * (len(label) + 2), row)
    if head.strips:
        page.line()
    for strip in head.strips:
        draw_strip(page, strip)


def findings_title(page: Page, findings: Sequence[Finding]) -> None:
    counts = [(s, sum(f.severity is s for f in findings)) for s in Severity]
    title_line(page, "Findings", " · ".join(f"{n} {s.value}{'s' * (n > 1)}" for s, n in counts if n))


def draw_findings(page: Page, findings: Sequence[Finding]) -> None:
    if findings:
        findings_title(page, findings)
    for f in findings:
        draw_finding(page, f)


def draw_finding(page: Page, f: Finding, *, brief: bool = False) -> None:
    """A finding with its evidence and advice; brief: of the evidence the first piece, and of that two lines."""
    _first_lines(page, f, units.clean(f.title), share=True)
    for evidence in f.evidence[: 1 if brief else None]:
        rows = wrap(units.clean(evidence), max(page.width - 8, 20))
        if brief and len(rows) > BRIEF:
            rows = [*rows[: BRIEF - 1], fit_words(" ".join(rows[BRIEF - 1 :]), page.width - 8)]
        for row in rows:
            page.line(" " * 8, (row, "dim"))
    page.wrapped(units.clean(f.advice), 10, first="        →")


def draw_finding_line(page: Page, f: Finding) -> None:
    """A finding in one line, cut to it."""
    gain = "" if f.up_to_ns is None else f"up to {units.duration(f.up_to_ns)}"
    room = page.width - cell_len(f"x {f.name}  {gain}") - 2
    _first_lines(page, f, fit_words(units.clean(f.title), room), share=False)


def fit_words(text: str, room: int) -> str:
    """The words of a text that fit, with a mark where there were more."""
    rows = wrap(text, max(room, 10))
    return rows[0] if len(rows) == 1 else fit(f"{wrap(rows[0], max(room - 2, 8))[0]} …", room)


def _first_lines(page: Page, f: Finding, words: str, *, share: bool) -> None:
    """Mark, name and title, and on the right what could be won; share: of the window, too."""
    mark, style = _MARK[f.severity]
    gain = "" if f.up_to_ns is None else f"up to {units.duration(f.up_to_ns)}"
    if gain and f.share is not None and share:
        gain += f", {units.share(f.share)}"
    lead = f"{mark} {f.name}  "
    room = page.width - cell_len(lead) - cell_len(gain) - 2
    if room >= LEAST_TEXT:
        rows = wrap(words, room)
        pad = " " * (page.width - cell_len(lead) - cell_len(rows[0]) - cell_len(gain))
        page.line((f"{mark} ", style), (f.name, style), "  ", rows[0], pad, (gain, "bold"))
        for row in rows[1:]:
            page.line(" " * cell_len(lead), row)
    else:
        page.line((f"{mark} ", style), (f.name, style))
        page.wrapped(words, 8)
        if gain:
            page.wrapped(gain, 8, "bold")


def draw_close(page: Page, report: Report, *, left: Sequence[str] = ()) -> None:
    """left: sections that were left out."""
    page.line()
    if report.headline.trust:
        page.wrapped("; ".join(units.clean(t) for t in report.headline.trust), 10, first="Trust")
    for warning in _worth_saying(report.warnings):
        at = f" (byte {warning.byte:,})" if warning.byte is not None else ""
        page.wrapped(units.clean(f"{warning.code}: {warning.message}{at}"), 10, "yellow", first="Warning")
    page.line()
    for i, step in enumerate(_next(report)):
        page.line(("Next" if i == 0 else "").ljust(10), step)
    if left:
        page.wrapped(
            f"{units.plural(len(left), 'more section')} with --all, or --only NAME: {', '.join(left)}", 10, "dim"
        )


def _worth_saying(warnings: Iterable[Warning]) -> list[Warning]:
    """Each code once: the same fault in many places is one thing to know."""
    seen: dict[str, Warning] = {}
    for w in warnings:
        seen.setdefault(w.code, w)
    return list(seen.values())


def _next(report: Report) -> list[str]:
    if not report.headline.path:
        return []
    path = units.shell_path(report.headline.path)
    steps = []
    if report.findings:
        steps.append(f"tracecli explain {report.findings[0].name}")
    steps.append(f"tracecli analyze {path} --all")
    steps.append(f"tracecli analyze {path} -o report.json")
    return steps
