"""A check as JUnit XML: a test suite with a test case for each limit."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from analyzer.budget.outcome import Checked, Outcome
from analyzer.render import Options
from analyzer.report.document import Report
from analyzer.units import clean

SUFFIXES = (".xml",)
KINDS = ("check",)

#: Characters that XML 1.0 has no way to write, and that `clean` lets pass.
_NOT_XML = re.compile("[\ufffe\uffff]")


def render(report: Report, options: Options) -> bytes:
    """UTF-8, indented, with a newline at the end."""
    checked = report.results[Checked]
    counts = {
        "tests": str(len(checked.limits)),
        "failures": str(len(checked.broken)),
        "errors": "0",
        "skipped": str(sum(line.verdict is Outcome.SKIPPED for line in checked.limits)),
    }
    root = ET.Element("testsuites", {"name": "tracecli check", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": _text(checked.trace or "trace"), **counts})
    for line in checked.limits:
        name = _text(f"{line.name} {line.limit}")
        case = ET.SubElement(suite, "testcase", {"classname": _text(checked.budget), "name": name})
        if not line.holds:
            message = _text(f"{line.shown}, limit {line.limit}: {line.reason}")
            failure = ET.SubElement(case, "failure", {"message": message})
            failure.text = "\n".join(_text(part) for part in line.told.split("\n"))
        elif line.verdict is Outcome.SKIPPED:
            ET.SubElement(case, "skipped", {"message": _text(line.reason or "")})
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _text(value: str) -> str:
    return _NOT_XML.sub("?", clean(value))
