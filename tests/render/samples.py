"""Reports to render: one of a micro-trace, one of everything that is hard to show."""

from __future__ import annotations

from dataclasses import replace

from analyzer.model import (
    Column,
    Finding,
    Headline,
    Metric,
    Report,
    Section,
    Severity,
    Strip,
    Table,
    Unit,
    Warning,
)
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
    Finding("input-starvation", Severity.ERROR, "the GPU waits while the host prepares input",
            ("4 gaps of 122 to 126 ms", "CPU at the time: aten::to > aten::_to_copy > aten::copy_"),
            "Move preprocess() to a DataLoader worker, or pre-compute it; pin the copy.", 493_000_000, 0.41),
    Finding("dominant-kernel", Severity.WARNING, "48% of kernel time", ("2.17 ms each",), "Unfused attention.",
            262_000_000),
    Finding("blocking-sync", Severity.NOTE, "80 waits hold the CPU", (), "All under aten::copy_."),
)  # fmt: skip


def of_micro_trace(tmp_path, **changes) -> Report:
    """The report of a micro-trace, with a path and findings that do not change."""
    report = micro.report_of(
        tmp_path / "run.json", micro.everything(),
        tracecli_capture={"torch": "2.9.0", "scenario": "demo", "unprofiled_step_us": 10.0, "profiled_step_us": 12.5},
    )  # fmt: skip
    return replace(report, headline=replace(report.headline, path="run.json"), findings=FINDINGS, **changes)


def hard() -> Report:
    """Long, wide, hostile and missing values in every place that shows text or figures."""
    columns = (
        Column("name", Unit.NAME), Column("kind", Unit.TEXT), Column("calls", Unit.COUNT),
        Column("time", Unit.NS, bar=True),
        Column("share", Unit.SHARE), Column("bytes", Unit.BYTES), Column("rate", Unit.RATE),
        Column("ratio", Unit.RATIO),
        Column("a column with quite a long title", Unit.COUNT), Column("another name", Unit.NAME),
    )  # fmt: skip
    names = (*HOSTILE, LONG, "模型前向传播" * 20, "x" * 300, "")
    rows = tuple(
        (name, "模型" if i % 2 else name, 10**i, 10**i, i / 20, 10**i, 1e12, 1.5, None, LONG if i % 3 else None)
        for i, name in enumerate(names)
    )
    return Report(
        contract={"names": list(names)},
        headline=Headline(
            source=(HOSTILE[0], LONG, *HOSTILE[1:]), bound="overhead-bound", reason=" ".join((*HOSTILE, LONG)),
            strips=(Strip("GPU 0", (0.0, 0.2, 0.6, 1.0) * 60, 10**12, 10**15, 10**15),
                    Strip("GPU 123456", (1.0,) * 240, 0, 0, 0)),
            trust=(*HOSTILE, "模型" * 60), path="some folder/[/foo]\x1b[31m.json",
        ),
        sections=(
            Section("a", HOSTILE[0], metrics=(
                Metric("a metric", 10**18, Unit.NS, "a note that goes on and on " * 8),
                Metric("hostile", HOSTILE[1], Unit.TEXT, HOSTILE[3]),
                Metric("a metric with a title that is far longer than its column", None, Unit.COUNT),
                Metric("long text", "y" * 250, Unit.TEXT),
            )),
            Section("b", "tables", tables=(
                Table("A table", columns, rows, hidden=12_345, note=" ".join(HOSTILE)),
                Table("A table whose own title is far longer than its one narrow column",
                      (Column("n", Unit.COUNT),), ((1,),)),
                Table("Nothing", columns, ()),
                Table("By time", (Column("at", Unit.NS), Column("name", Unit.NAME)), ((10**9, LONG),)),
            )),
            Section("c", "notes", notes=(*HOSTILE, "z" * 300)),
        ),
        findings=(
            *FINDINGS,
            Finding("a-finding-with-a-very-long-name-of-its-own", Severity.ERROR, " ".join(HOSTILE), HOSTILE, LONG,
                    10**15, 0.5),
            Finding("exposed-communication", Severity.NOTE, "模型" * 40, ("模型" * 60,), "w" * 300, 1, 0.0001),
        ),
        warnings=(Warning("truncated", HOSTILE[2] + LONG, 12345, 3),
                  *(Warning(f"w{i}", h) for i, h in enumerate(HOSTILE))),
    )  # fmt: skip
