"""The report as the JSON object of the contract. Always whole: a reader of JSON selects by key."""

from __future__ import annotations

import re

from analyzer.render import Options
from analyzer.report.document import Report

SUFFIXES = (".json",)
KINDS = None

#: UTF-8 of what a terminal obeys or hides, and JSON lets stand as it is: delete, C1, bidirectional, invisible.
_OBEYED = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xa9]|\xef\xbb\xbf")


def render(report: Report, options: Options) -> bytes:
    """UTF-8, indented, with a newline at the end. Text that is no valid Unicode is escaped before."""
    import orjson

    text = orjson.dumps(report.contract, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n"
    return _OBEYED.sub(lambda m: b"\\u%04x" % ord(m[0].decode()), text)
