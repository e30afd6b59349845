"""A check as annotations of a GitHub workflow: an error at the budget's file for each limit that does not hold."""

from __future__ import annotations

from analyzer.budget.outcome import Checked
from analyzer.render import Options
from analyzer.report.document import Report
from analyzer.units import clean

SUFFIXES = ()
KINDS = ("check",)


def render(report: Report, options: Options) -> bytes:
    """Workflow commands, one a line; the last is the summary."""
    checked = report.results[Checked]
    place = f"::error file={_property(checked.budget)},title={_property('tracecli check: ')}"
    out = [f"{place}{_property(line.name)}::{_data(line.told)}" for line in checked.broken]
    kind = "notice" if checked.holds else "error"
    out.append(f"::{kind} title=tracecli check::{_data(clean(f'{checked.trace}: {checked.summary}'))}")
    return ("\n".join(out) + "\n").encode()


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(clean(value)).replace(":", "%3A").replace(",", "%2C")
