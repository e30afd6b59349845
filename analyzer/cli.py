"""The commands: the one file that prints, exits and reads the environment.

Exit codes: 0 fine; 1 a limit is broken; 2 usage or unreadable input; 3 a bug of ours; 130 Ctrl-C;
141 the reader of our output went away.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from analyzer.errors import TraceError

if TYPE_CHECKING:
    from analyzer.model import Report

EXIT_BROKEN, EXIT_INPUT, EXIT_BUG, EXIT_INTERRUPT, EXIT_PIPE = 1, 2, 3, 130, 141

FORMS = ("terminal", "json", "markdown")
#: By suffix of -o FILE.
FORMATS = {".json": "json", ".md": "markdown", ".txt": "terminal"}
#: Width where no terminal says one: wide enough for names, narrow enough for a mail.
PIPED_WIDTH = 110


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the console script. Never shows a traceback unless TRACECLI_DEBUG is set."""
    try:
        code = cli.main(arguments, prog_name="tracecli", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as e:
        code = e.exit_code
    except click.UsageError as e:
        e.show()
        code = EXIT_INPUT
    except click.ClickException as e:
        e.show()
        code = EXIT_INPUT
    except TraceError as e:
        _say_error(e)
        code = EXIT_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = EXIT_INTERRUPT
    except (BrokenPipeError, _ReaderGone):
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_PIPE
    except MemoryError:
        click.echo("tracecli: out of memory; a step range or fewer events would fit", err=True)
        code = EXIT_INPUT
    except Exception as e:  # the last resort: a bug of ours is said, not dumped
        if os.environ.get("TRACECLI_DEBUG"):
            raise
        click.echo(
            f"tracecli: internal error, a bug of ours: {type(e).__name__}: {e}\n"
            "Set TRACECLI_DEBUG=1 for the traceback, and please report it.",
            err=True,
        )
        code = EXIT_BUG
    sys.exit(code if isinstance(code, int) else 0)


def _say_error(e: TraceError) -> None:
    from analyzer.units import clean

    where = f"{clean(e.where)}: " if e.where else ""
    click.echo(f"tracecli: {where}{clean(e.what)}", err=True)
    if e.hint:
        click.echo(f"  {clean(e.hint)}", err=True)


class _ReaderGone(Exception):
    """The reader of our output went away."""


class _Commands(click.Group):
    """Keeps a closed pipe from click, which would exit with 1: here that says that a limit is broken."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _pipe():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _pipe():
            return super().invoke(ctx)


@contextmanager
def _pipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as e:
        raise _ReaderGone from e


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="torch-tracecli", prog_name="tracecli")
def cli() -> None:
    """Why did the GPU wait? Reads PyTorch profiler traces; needs no GPU and no torch."""


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What every command that reports has: where to, in which form, and in colour or not."""
    options = (
        click.option("--format", "form", type=click.Choice(FORMS), help="Default: by the suffix of -o, else terminal."),
        click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to FILE; the suffix tells."),
        click.option("--force", is_flag=True, help="Overwrite an existing FILE."),
        click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@cli.command()
@click.argument("trace")
@output_options
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Rows a table shows.")
@click.option("--only", metavar="SECTION,..", help="Show these sections only, or all; an unknown name lists them.")
@click.option("--step", metavar="NAME|N", help="Analyse one profiler step: its name, number or position.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that parse; default: one a core.")
@click.option("--strict", is_flag=True, help="Refuse a file that needs any repair (exit code 2).")
def analyze(
    trace: str,
    form: str | None,
    output: Path | None,
    force: bool,
    color: str,
    top: int,
    only: str | None,
    step: str | None,
    jobs: int | None,
    strict: bool,
) -> None:
    """Say what holds a run back: verdict, idle time by cause, operators, kernels, spikes.

    TRACE is a .json or .json.gz of PyTorch's profiler, or - for standard input.
    """
    from analyzer import pipeline
    from analyzer.sources.kineto.read import read

    form = _form(form, output)
    _refuse_overwrite(output, force)
    with _Progress() as report_progress:
        # Not bound to a name: whoever holds the frames keeps a second copy of all host events alive.
        frames = [read(trace, jobs=jobs, strict=strict, progress=report_progress)]
    report = pipeline.run(frames.pop(), top=top, step=step)
    _write(_rendered(_only(report, only), form, output, color), output)


@cli.command()
@click.argument("trace")
@output_options
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that parse; default: one a core.")
def info(trace: str, form: str | None, output: Path | None, force: bool, color: str, jobs: int | None) -> None:
    """Say what a file is: producer, devices, counts, what was recorded. Judges nothing."""
    from analyzer.info import describe
    from analyzer.sources.kineto.read import read

    form = _form(form, output)
    _refuse_overwrite(output, force)
    with _Progress() as report_progress:
        frames = read(trace, jobs=jobs, progress=report_progress)
    _write(_rendered(describe(frames), form, output, color), output)


@cli.command()
@click.argument("runs", nargs=-1, required=True)
@output_options
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Rows a table shows.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that parse; default: one a core.")
def compare(
    runs: tuple[str, ...], form: str | None, output: Path | None, force: bool, color: str, top: int, jobs: int | None
) -> None:
    """Put runs side by side: per step or call, so that unequal counts compare fairly.

    RUNS are two or more traces, or reports saved with -o report.json. Two runs: the differences; more: a
    table of variants with the best marked.
    """
    from analyzer import pipeline
    from analyzer.compare.report import compare as compare_reports

    if len(runs) < 2:
        raise click.UsageError("compare needs two runs or more")
    form = _form(form, output)
    _refuse_overwrite(output, force)
    contracts = []
    for run in runs:
        with _Progress() as report_progress:
            contracts.append(pipeline.contract_of(run, jobs=jobs, progress=report_progress))
    report = compare_reports(contracts, _labels(runs), top=top)
    _write(_rendered(report, form, output, color), output)


def _labels(paths: Sequence[str]) -> list[str]:
    """Short names for runs: what tells the files apart, without what they all begin and end with."""
    names = [re.sub(r"(\.pt)?(\.trace)?\.json(\.gz)?$", "", path) for path in paths]
    words = [re.split(r"(?<=[/\\_.-])", name) for name in names]
    while len({w[0] for w in words}) == 1 and all(len(w) > 1 for w in words):
        words = [w[1:] for w in words]
    ends = [re.split(r"(?=[_.-])", "".join(w)) for w in words]
    while len({e[-1] for e in ends}) == 1 and all(len(e) > 1 for e in ends):
        ends = [e[:-1] for e in ends]
    labels = ["".join(e) for e in ends]
    return labels if len(set(labels)) == len(labels) else [f"{name} ({i})" for i, name in enumerate(labels, 1)]


def _form(form: str | None, output: Path | None) -> str:
    if form:
        return form
    if output is None:
        return "terminal"
    if output.suffix not in FORMATS:
        raise click.UsageError(f"{output}: no format has this suffix; use {', '.join(FORMATS)}, or --format")
    return FORMATS[output.suffix]


def _refuse_overwrite(output: Path | None, force: bool) -> None:
    if output is not None and output.exists() and not force:
        raise click.UsageError(f"{output} exists; --force overwrites it")


def _only(report: Report, only: str | None) -> Report:
    """The report with some sections. The contract stays whole: a reader of JSON selects by key."""
    from dataclasses import replace

    if only is None:
        return replace(report, sections=[s for s in report.sections if not s.detail])
    if only == "all":
        return report

    wanted = [name.strip() for name in only.split(",") if name.strip()]
    known = [*(s.key for s in report.sections), "findings"]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise click.UsageError(f"no section {', '.join(unknown) or 'named'} in this report; it has: {', '.join(known)}")
    return replace(
        report,
        sections=[s for s in report.sections if s.key in wanted],
        findings=report.findings if "findings" in wanted else (),
    )


def _rendered(report: Report, form: str, output: Path | None, color: str) -> bytes:
    if form == "json":
        from analyzer.render import json

        return json.render(report)
    if form == "markdown":
        from analyzer.render import markdown

        return markdown.render(report).encode()
    from analyzer.render import terminal

    to_file = output is not None
    encoding = "utf-8" if to_file else (sys.stdout.encoding or "ascii")
    text = terminal.render(
        report,
        width=PIPED_WIDTH if to_file else _width(),
        color=color == "always" or (color == "auto" and not to_file and _wants_color()),
        ascii_only=encoding.lower().replace("-", "") not in ("utf8", "utf16", "utf8sig"),
    )
    return text.encode()


def _width() -> int:
    return shutil.get_terminal_size((PIPED_WIDTH, 40)).columns


def _wants_color() -> bool:
    """Colour for a terminal that can; the usual variables overrule (no-color.org, FORCE_COLOR)."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def _write(content: bytes, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(content)
    except OSError as e:
        raise TraceError(f"cannot write: {e.strerror or e}", str(output)) from e
    click.echo(f"wrote {output}", err=True)


class _Progress:
    """Progress on standard error, for a person who watches, after a second."""

    DELAY = 1.0

    def __enter__(self) -> Callable[[int, int | None], None] | None:
        self._bar: Any = None
        if not sys.stderr.isatty():
            return None
        import time

        self._begun = time.monotonic()
        return self._update

    def _update(self, done: int, total: int | None) -> None:
        import time

        if self._bar is None:
            if time.monotonic() - self._begun < self.DELAY:
                return
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task("reading", total=total)
        self._bar.update(self._task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


@cli.command()
@click.argument("name")
def explain(name: str) -> None:
    """Say what a finding means, how it is computed, what to try, and when it is wrong."""
    import inspect
    from difflib import get_close_matches

    from analyzer import findings, pipeline

    known = {module.NAME: module for module in pipeline.modules(findings)}
    if name not in known:
        close = get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(close)}?" if close else "; `tracecli findings` lists all"
        raise click.UsageError(f"no finding is called {name}{hint}")
    click.echo(f"{name}\n\n{inspect.getdoc(known[name])}")


@cli.command("findings")
def list_findings() -> None:
    """List all findings, one line each."""
    from analyzer import findings, pipeline

    known = {module.NAME: (module.__doc__ or "").partition("\n")[0] for module in pipeline.modules(findings)}
    width = max(map(len, known))
    for name in sorted(known):
        click.echo(f"{name:<{width}}  {known[name]}")
    click.echo("\ntracecli explain NAME says what one means, how it is computed, what to try, and when it is wrong.")


@cli.command()
@click.argument("document", type=click.Choice(["report", "events", "host", "device", "memory"]), default="report")
def schema(document: str) -> None:
    """Print the JSON schema of the report that --format json writes, or the columns that export writes."""
    import json

    if document != "report":
        from analyzer.events import export as frames

        click.echo(frames.page(document), nl=False)
        return

    from analyzer.render.schema import REPORT

    click.echo(json.dumps({"report": REPORT}[document], indent=2, ensure_ascii=False))


@cli.command()
@click.argument("trace")
@click.option("--budget", type=click.Path(path_type=Path), help="Limits; default: [tool.tracecli] of pyproject.toml.")
@click.option("--baseline", help="Report that relative limits refer to; default: the one that the budget names.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "junit", "markdown"]),
    default="text",
    show_default=True,
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to FILE.")
@click.option("--force", is_flag=True, help="Overwrite an existing FILE.")
@click.option("--init", is_flag=True, help="Print a budget made from this run, with room; -o writes it.")
@click.option("--step", metavar="NAME|N", help="Judge one profiler step: its name, number or position.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that parse; default: one a core.")
@click.pass_context
def check(
    ctx: click.Context,
    trace: str,
    budget: Path | None,
    baseline: str | None,
    form: str,
    output: Path | None,
    force: bool,
    init: bool,
    step: str | None,
    jobs: int | None,
) -> None:
    """Hold a run to a budget: exit code 0 if every limit holds, 1 if one is broken.

    TRACE is a trace, or a report saved with `tracecli analyze -o report.json`.
    """
    from analyzer.budget import check as budgets
    from analyzer.budget import load, make, render, reports

    _refuse_overwrite(output, force)
    if init:
        if budget or baseline:
            raise click.UsageError("--init makes a budget: it takes neither --budget nor --baseline")
        _write(make.make(_contract(trace, step, jobs)).encode(), output)
        return
    path = budget or load.find(Path.cwd())
    if path is None:
        raise click.UsageError("no --budget, and no pyproject.toml with [tool.tracecli] from here upward; see --init")
    limits = load.read(path)  # before the trace: its mistakes show at once
    if baseline is None and limits.baseline is not None:
        baseline = str(path.parent / limits.baseline)
    before = None if baseline is None else reports.read(baseline)
    outcome = budgets.check(limits, _contract(trace, step, jobs), before)
    _write(render.render(outcome, form).encode("utf-8", "backslashreplace"), output)
    if not outcome.holds:
        ctx.exit(EXIT_BROKEN)


def _contract(trace: str, step: str | None, jobs: int | None) -> Mapping[str, Any]:
    """The report of a trace, or a saved one."""
    from analyzer import pipeline
    from analyzer.sources.kineto.read import read

    # A pipe is read once: only a file can be looked at first.
    if Path(trace).is_file() and (found := pipeline.saved(trace)) is not None:
        if step is not None:
            raise click.UsageError(f"{trace} is a report: --step is for traces")
        return found
    with _Progress() as report_progress:
        frames = read(trace, jobs=jobs, progress=report_progress)
    return pipeline.run(frames, step=step).contract


@cli.command()
@click.argument("trace")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="FILE to write; .gz packs it.")
@click.option("--force", is_flag=True, help="Overwrite an existing FILE.")
@click.option("--step", metavar="NAME|N", help="Keep one profiler step: its name, number or position.")
@click.option("--steps", metavar="A:B", help="Keep profiler steps A to B, both included.")
@click.option("--time", "time_us", metavar="FROM:TO", help="Keep what ran between two times of the report, in µs.")
@click.option("--annotation", metavar="NAME[:N]", help="Keep the calls of an annotation, or its Nth (0 is the first).")
@click.option("--keep", metavar="KIND,..", help="Leave these kinds of identity in; an unknown one lists them.")
@click.option(
    "--hash-names", is_flag=True, help="Replace the names of annotations, modules and your own functions too."
)
@click.option("--map", "mapping", type=click.Path(path_type=Path), help="Write what stands for what, for you alone.")
@click.option("--seed", help="Make the same replacements in every run: for traces that belong together.")
def share(
    trace: str,
    output: Path,
    force: bool,
    step: str | None,
    steps: str | None,
    time_us: str | None,
    annotation: str | None,
    keep: str | None,
    hash_names: bool,
    mapping: Path | None,
    seed: str | None,
) -> None:
    """Write a trace to hand on: a part of it, if you like, and without what says whose it is.

    Host and user names, folders, argument values and unknown fields go; operators, kernels, shapes and
    times stay as they are, so that the figures do.
    """
    from analyzer.redact import share as sharing

    _refuse_overwrite(output, force)
    _refuse_overwrite(mapping, force)
    if mapping is not None and mapping.absolute() == output.absolute():
        raise click.UsageError("--map and -o name the same file")
    selection = _selection(step, steps, time_us, annotation)
    kinds = _kinds(keep)
    with _Progress() as report_progress:
        done = sharing.share(
            trace, output, selection, keep=kinds, hash_names=hash_names, seed=seed,
            remember=mapping is not None, progress=report_progress,
        )  # fmt: skip
    if mapping is not None:
        _write_private(mapping, done.mapping)
    for line in sharing.summary(done, output):
        click.echo(line, err=True)


def _selection(step: str | None, steps: str | None, time_us: str | None, annotation: str | None) -> Any:
    from analyzer.redact.part import Selection

    if sum(option is not None for option in (step, steps, time_us, annotation)) > 1:
        raise click.UsageError("one of --step, --steps, --time and --annotation")
    if step is not None:
        return Selection(steps=(step, step))
    if steps is not None:
        first, colon, last = steps.partition(":")
        if not (colon and first and last):
            raise click.UsageError(f"--steps {steps}: write A:B, such as 15:17")
        return Selection(steps=(first, last))
    if time_us is not None:
        try:
            low, high = (float(part) if part else None for part in time_us.split(":"))
        except ValueError:
            raise click.UsageError(f"--time {time_us}: write FROM:TO in µs, such as 1500:2500 or 1500:") from None
        if any(part is not None and not abs(part) < 1e15 for part in (low, high)):
            raise click.UsageError(f"--time {time_us}: no trace is that long")
        return Selection(time_us=(low, high))
    if annotation is not None:
        name, _, number = annotation.rpartition(":")
        if name and re.fullmatch(r"-?\d{1,9}", number):
            return Selection(annotation=(name, int(number)))
        return Selection(annotation=(annotation, None))
    return None


def _kinds(keep: str | None) -> tuple[str, ...]:
    from analyzer.redact.identity import KINDS

    kinds = tuple(kind.strip() for kind in (keep or "").split(",") if kind.strip())
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        known = "\n".join(f"  {kind:<10} {what}" for kind, what in KINDS.items())
        raise click.UsageError(f"--keep: no kind is called {', '.join(unknown)}; there is\n{known}")
    return kinds


def _write_private(path: Path, mapping: Mapping[str, Mapping[str, str]]) -> None:
    """The map undoes the sharing: only its owner may read it."""
    import json

    try:
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(mapping, file, indent=2, ensure_ascii=True)
            file.write("\n")
    except OSError as e:
        raise TraceError(f"cannot write: {e.strerror or e}", str(path)) from e


@cli.command()
@click.argument("trace")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="FILE to write: .parquet, .arrow, .ipc, .feather or .csv.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing FILE.")
@click.option(
    "--frame",
    type=click.Choice(["events", "host", "device", "memory"]),
    default="events",
    show_default=True,
    help="Which events; `tracecli schema FRAME` prints the columns.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that parse; default: one a core.")
def export(trace: str, output: Path, force: bool, frame: str, jobs: int | None) -> None:
    """Write the events as a table, for DuckDB, Polars, pandas, Spark."""
    from analyzer.events import export as frames
    from analyzer.sources.kineto.read import read

    if output.suffix.lower() not in frames.SUFFIXES:
        raise click.UsageError(f"{output}: no format has this suffix; use {', '.join(frames.SUFFIXES)}")
    _refuse_overwrite(output, force)
    with _Progress() as report_progress:
        events = read(trace, jobs=jobs, progress=report_progress)
    frames.write(events, output, frame)
    click.echo(f"wrote {output}", err=True)


if hasattr(signal, "SIGPIPE"):
    # A closed pipe is an error that we report with its own exit code, not a silent death.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
