"""The report as the JSON object of the contract."""

from __future__ import annotations

from analyzer.model import Report


def render(report: Report) -> bytes:
    """UTF-8, indented, with a newline at the end. Text that is no valid Unicode is escaped before."""
    import orjson

    return orjson.dumps(report.contract, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n"
