"""An outcome as text, JSON, annotations of GitHub, JUnit XML or Markdown. Names are never markup."""

from __future__ import annotations

import json as jsonlib
import re
from typing import Any
from xml.sax.saxutils import escape as xml_escape
from xml.sax.saxutils import quoteattr

from analyzer.budget.check import Line, Outcome, Verdict
from analyzer.budget.load import number
from analyzer.units import clean

FORMATS = ("text", "json", "github", "junit", "markdown")
_SCHEMA_VERSION = 1
_MOST_NAME = 72
_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$&@:])")
#: Characters that XML 1.0 has no way to write, and that `clean` lets pass.
_NOT_XML = re.compile("[\ufffe\uffff]")


def render(outcome: Outcome, form: str) -> str:
    """The outcome in one of FORMATS, with a newline at its end."""
    return {"text": text, "json": json, "github": github, "junit": junit, "markdown": markdown}[form](outcome)


def _value(value: Any) -> str:
    return "n/a" if value is None else clean(value) if isinstance(value, str) else number(value)


def _summary(outcome: Outcome) -> str:
    total, broken = len(outcome.lines), len(outcome.broken)
    limits = f"{total} limit{'s' * (total != 1)}"
    skipped = sum(line.verdict is Verdict.SKIPPED for line in outcome.lines)
    aside = f", {skipped} skipped" if skipped else ""
    return f"{broken} of {limits} broken{aside}" if broken else f"all of {limits} hold{aside}"


def text(outcome: Outcome) -> str:
    """One line a limit; under each that does not hold the reason and the next command."""
    rows = [(line, clean(line.name), _value(line.value)) for line in outcome.lines]
    name = min(_MOST_NAME, max((len(n) for _, n, _ in rows), default=0))
    value = max((len(v) for _, _, v in rows), default=0)
    marks = {Verdict.OK: "ok", Verdict.BROKEN: "BROKEN", Verdict.MISSING: "n/a", Verdict.SKIPPED: "skipped"}
    out = []
    for line, shown, figure in rows:
        aside = f"  ({clean(line.reason)})" if line.reason and line.verdict.holds else ""
        out.append(f"{marks[line.verdict]:<8}{shown:<{name}}  {figure:>{value}}  {line.limit}{aside}")
        if not line.verdict.holds:
            out += [f"        {clean(part)}" for part in (line.reason, line.why) if part]
            if line.next:
                out.append(f"        → {clean(line.next)}")
    return "\n".join([*out, _summary(outcome)]) + "\n"


def json(outcome: Outcome) -> str:
    return (
        jsonlib.dumps(
            {
                "schema_version": _SCHEMA_VERSION,
                "trace": outcome.trace,
                "budget": outcome.budget,
                "holds": outcome.holds,
                "limits": [
                    {
                        "name": line.name,
                        "limit": line.limit,
                        "value": line.value,
                        "baseline": line.baseline,
                        "verdict": line.verdict.value,
                        "reason": line.reason or None,
                        "why": line.why,
                        "next": line.next,
                    }
                    for line in outcome.lines
                ],
            },
            indent=2,
        )
        + "\n"
    )


def github(outcome: Outcome) -> str:
    """Workflow commands: an error at the budget file for each limit that does not hold, then a summary."""
    place = f"::error file={_property(outcome.budget)},title={_property('tracecli check: ')}"
    out = [f"{place}{_property(line.name)}::{_data(_told(line))}" for line in outcome.broken]
    kind = "notice" if outcome.holds else "error"
    out.append(f"::{kind} title=tracecli check::{_data(clean(f'{outcome.trace}: {_summary(outcome)}'))}")
    return "\n".join(out) + "\n"


def _told(line: Line) -> str:
    """A limit that does not hold, in a few lines."""
    first = f"{line.name} is {_value(line.value)}, limit {line.limit}: {line.reason}"
    return "\n".join(clean(part) for part in (first, line.why, line.next) if part)


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(clean(value)).replace(":", "%3A").replace(",", "%2C")


def junit(outcome: Outcome) -> str:
    """A test suite with a test case for each limit."""
    failures = sum(line.verdict in (Verdict.BROKEN, Verdict.MISSING) for line in outcome.lines)
    skipped = sum(line.verdict is Verdict.SKIPPED for line in outcome.lines)
    counts = f'tests="{len(outcome.lines)}" failures="{failures}" errors="0" skipped="{skipped}"'
    out = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="tracecli check" {counts}>',
        f"  <testsuite name={_attribute(outcome.trace or 'trace')} {counts}>",
    ]
    for line in outcome.lines:
        case = f"    <testcase classname={_attribute(outcome.budget)} name={_attribute(f'{line.name} {line.limit}')}"
        if line.verdict is Verdict.OK:
            out.append(f"{case}/>")
        elif line.verdict is Verdict.SKIPPED:
            out.append(f"{case}><skipped message={_attribute(line.reason)}/></testcase>")
        else:
            message = f"{_value(line.value)}, limit {line.limit}: {line.reason}"
            body = xml_escape(_xml(_told(line), keep="\n"))
            out.append(f"{case}><failure message={_attribute(message)}>{body}</failure></testcase>")
    out += ["  </testsuite>", "</testsuites>"]
    return "\n".join(out) + "\n"


def _xml(value: str, keep: str = "") -> str:
    lines = value.split(keep) if keep else [value]
    return keep.join(_NOT_XML.sub("?", clean(line)) for line in lines)


def _attribute(value: str) -> str:
    return quoteattr(_xml(value))


def markdown(outcome: Outcome) -> str:
    """A table for a pull request: what does not hold first."""
    mark = {Verdict.OK: "ok", Verdict.BROKEN: "**broken**", Verdict.MISSING: "**n/a**", Verdict.SKIPPED: "skipped"}
    out = [
        f"### tracecli check: {_escape(_summary(outcome))}",
        "",
        f"{_escape(outcome.trace)} against {_escape(outcome.budget)}",
        "",
        "| figure | value | limit | verdict | why |",
        "|---|---:|---|---|---|",
    ]
    for line in sorted(outcome.lines, key=lambda line: line.verdict.holds):
        why = "; ".join(filter(None, [line.reason, line.why]))
        cells = (_escape(line.name), _escape(_value(line.value)), _escape(line.limit), mark[line.verdict], _escape(why))
        out.append("| " + " | ".join(cells) + " |")
    commands = list(dict.fromkeys(line.next for line in outcome.broken if line.next))
    if commands:
        out += ["", "Next:", "", *(f"- {_escape(command)}" for command in commands)]
    return "\n".join(out) + "\n"


def _escape(value: str) -> str:
    """Text that Markdown and the HTML inside it show as it is."""
    escaped = _MARKUP.sub(r"\\\1", clean(value))
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
