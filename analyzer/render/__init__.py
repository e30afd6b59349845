"""Renderers, one file a format, found by themselves.

A format is a module here with

    SUFFIXES  of files that it is written to, such as (".md",); () for none.
    KINDS     kinds of report that it can show; None: every kind.
    render    (report, options) -> bytes, UTF-8.

Its name is the module's. Which rows and sections are shown is decided here, when a report is rendered.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Protocol, cast

from analyzer.errors import TraceError
from analyzer.report.blocks import Section
from analyzer.report.document import Report

#: The name by which `--only` selects what is not a section.
FINDINGS = "findings"
#: Rows of a table where nobody asked for more.
TOP = 10


@dataclass(frozen=True, slots=True)
class Options:
    """How a report is shown.

    width       cells of a line, where the format has lines.
    color       escape sequences for colour; ascii_only: for terminals without UTF-8.
    top         rows of a table; None: TOP, or as many as a first look has room for.
    only        sections by key, "all" for all; None: the first look, or those that are not of detail.
    """

    width: int = 110
    color: bool = False
    ascii_only: bool = False
    top: int | None = None
    only: tuple[str, ...] | None = None


class Format(Protocol):
    SUFFIXES: tuple[str, ...]
    KINDS: tuple[str, ...] | None

    @staticmethod
    def render(report: Report, options: Options) -> bytes: ...


def names() -> tuple[str, ...]:
    """Names of all formats, without importing one."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__)))


def load(name: str) -> Format:
    return cast("Format", importlib.import_module(f"{__name__}.{name}"))


def suffixes() -> dict[str, str]:
    """Suffix of a file -> the format that it asks for."""
    return {suffix: name for name in names() for suffix in load(name).SUFFIXES}


def render(report: Report, name: str, options: Options) -> bytes:
    """A report in one format. Raises TraceError where the format cannot show its kind, or lacks a section."""
    form = load(name)
    if form.KINDS is not None and report.kind.name not in form.KINDS:
        raise TraceError(f"{name} shows {', '.join(form.KINDS)} only, and this is a report of kind {report.kind.name}")
    chosen(report, options)
    return form.render(report, options)


def chosen(report: Report, options: Options) -> tuple[tuple[Section, ...], bool]:
    """The sections to show, in order, and whether the findings are. Raises TraceError for unknown names."""
    sections = report.sections
    if options.only is None:
        return tuple(s for s in sections if not s.detail), True
    if options.only == ("all",):
        return sections, True
    known = [*(s.key for s in sections), FINDINGS]
    if unknown := [name for name in options.only if name not in known]:
        raise TraceError(f"no section {', '.join(unknown)} in this report", None, f"it has: {', '.join(known)}")
    return tuple(s for s in sections if s.key in options.only), FINDINGS in options.only
