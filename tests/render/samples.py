"""Reports to render: one of a micro-trace, one of everything that is hard to show."""

from __future__ import annotations

from typing import Any

from analyzer.report.blocks import Metric, Note, Section, Strip, Table, cells
from analyzer.report.columns import Unit
from analyzer.report.document import Findings, Headline, Kind, Report, Warnings
from analyzer.report.findings import Finding, Severity, Warning
from analyzer.report.results import Results
from tests import micro

#: Markup of all kinds, terminal commands, and characters that hide or reorder text.
HOSTILE = (
    "[/foo] [bold red]x[/]",
    "\x1b[31mred\x1b[0m",
    "\x9b2J",
    "<script>alert(1)</script>",
    "a|b||c",
    "`code` ``` fence",
    "abc\u202edcba",
    "two\nlines\r\n# title",
    "bell\x07null\x00",
    "**bold** _it_ [link](http://x) ![i](u) <!-- c -->",
    ":smile: @someone #1 ~~x~~ $y$ &lt;",
)

LONG = (
    "void at::native::kernel<"
    + ", ".join(f"at::native::Functor{i}<c10::BFloat16>" for i in range(12))
    + ">(int, float)"
)

FINDINGS = (
    Finding(name="input-starvation", severity=Severity.ERROR, title="the GPU waits while the host prepares input",
            evidence=("4 gaps of 122 to 126 ms", "CPU at the time: aten::to > aten::_to_copy > aten::copy_"),
            advice="Move preprocess() to a DataLoader worker, or pre-compute it; pin the copy.",
            up_to_ns=493_000_000, share=0.41),
    Finding(name="dominant-kernel", severity=Severity.WARNING, title="48% of kernel time", evidence=("2.17 ms each",),
            advice="Unfused attention.", up_to_ns=262_000_000),
    Finding(name="blocking-sync", severity=Severity.NOTE, title="80 waits hold the CPU", evidence=(),
            advice="All under aten::copy_."),
)  # fmt: skip


def column(title: str, unit: Unit, place: int, **how: Any):
    """A column of rows that are plain tuples."""
    return cells(title, unit, lambda row: row[place], **how)


def columns(*titles: tuple[str, Unit]):
    return tuple(column(title, unit, place) for place, (title, unit) in enumerate(titles))


def shaped(report: Report, **parts: Any) -> Report:
    """The report with other sections, another headline or another contract than its results give."""
    out = Report(report.kind, report.results)
    for part, value in parts.items():
        out.__dict__[part] = value
    return out


def of_micro_trace(tmp_path, **parts) -> Report:
    """The report of a micro-trace, with a path and findings that do not change."""
    report = micro.report_of(
        tmp_path / "run.json", micro.everything(),
        tracecli_capture={"torch": "2.9.0", "scenario": "demo", "unprofiled_step_us": 10.0, "profiled_step_us": 12.5},
    )  # fmt: skip
    some = Results([*(r for r in report.results if not isinstance(r, Findings)), Findings(findings=FINDINGS)])
    head = report.headline
    named = Headline(("run.json", *head.source[1:]), head.bound, head.reason, head.strips, head.trust, "run.json")
    return shaped(Report(report.kind, some), headline=named, **parts)


def hard() -> Report:
    """Long, wide, hostile and missing values in every place that shows text or figures."""
    shown = (
        column("name", Unit.NAME, 0), column("kind", Unit.TEXT, 1), column("calls", Unit.COUNT, 2),
        column("time", Unit.NS, 3, bar=True), column("share", Unit.SHARE, 4), column("bytes", Unit.BYTES, 5),
        column("rate", Unit.RATE, 6), column("ratio", Unit.RATIO, 7),
        column("a column with quite a long title", Unit.COUNT, 8), column("another name", Unit.NAME, 9),
    )  # fmt: skip
    names = (*HOSTILE, LONG, "模型前向传播" * 20, "x" * 300, "")
    rows = tuple(
        (name, "模型" if i % 2 else name, 10**i, 10**i, i / 20, 10**i, 1e12, 1.5, None, LONG if i % 3 else None)
        for i, name in enumerate(names)
    )
    head = Headline(
        source=(HOSTILE[0], LONG, *HOSTILE[1:]), bound="overhead-bound", reason=" ".join((*HOSTILE, LONG)),
        strips=(Strip("GPU 0", (0.0, 0.2, 0.6, 1.0) * 60, 10**12, 10**15, 10**15, (1.0,) * 60 + (0.0,) * 180),
                Strip("GPU 123456", (1.0,) * 240, 0, 0, 0)),
        trust=(*HOSTILE, "模型" * 60), path="some folder/[/foo]\x1b[31m.json",
    )  # fmt: skip
    sections = (
        Section("a", HOSTILE[0], (
            Metric("a metric", 10**18, Unit.NS, "a note that goes on and on " * 8),
            Metric("hostile", HOSTILE[1], Unit.TEXT, HOSTILE[3]),
            Metric("a metric with a title that is far longer than its column", None, Unit.COUNT),
            Metric("long text", "y" * 250, Unit.TEXT),
        )),
        Section("b", "tables", (
            Table("A table", shown, rows, note=" ".join(HOSTILE), most=8),
            Table("A table whose own title is far longer than its one narrow column", columns(("n", Unit.COUNT)),
                  ((1,),)),
            Table("Nothing", shown, ()),
            Table("By time", columns(("at", Unit.NS), ("name", Unit.NAME)), ((10**9, LONG),)),
        )),
        Section("c", "notes", tuple(Note(text) for text in (*HOSTILE, "z" * 300))),
    )  # fmt: skip
    findings = (
        *FINDINGS,
        Finding(name="a-finding-with-a-very-long-name-of-its-own", severity=Severity.ERROR, title=" ".join(HOSTILE),
                evidence=HOSTILE, advice=LONG, up_to_ns=10**15, share=0.5),
        Finding(name="exposed-communication", severity=Severity.NOTE, title="模型" * 40, evidence=("模型" * 60,),
                advice="w" * 300, up_to_ns=1, share=0.0001),
    )  # fmt: skip
    warnings = (
        Warning("truncated", HOSTILE[2] + LONG, 12345, 3),
        *(Warning(f"w{i}", h) for i, h in enumerate(HOSTILE)),
    )
    kind = Kind("run", "A report", (Warnings, Findings), lambda _: head)
    report = Report(kind, Results([Warnings(warnings=warnings), Findings(findings=findings)]))
    return shaped(report, sections=sections, contract={"names": list(names)})
