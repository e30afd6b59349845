"""A judgement, and a warning: the two kinds of sentence that a report holds beside its figures."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar

from analyzer.report.columns import Count, Name, Ns, Row, Share, Text, column


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Warning(Row, frozen=True, omit_defaults=True):
    """Something that the reader or an analysis repaired, left out or does not trust."""

    IDENTITY: ClassVar[str] = "code"

    code: Annotated[Name, column("code", "stable, kebab-case: tests and users match on it")]
    message: Annotated[Text, column("message", "a sentence")]
    byte: Annotated[
        int | None, column("byte", "0-based offset in the uncompressed text of the first occurrence, if it has a place")
    ] = None
    count: Annotated[Count | None, column("count", "how many times it happened, if countable")] = None


class Finding(Row, frozen=True, kw_only=True):
    """What is wrong, by what evidence, what to try, and what it could win."""

    name: Annotated[Name, column("finding", "stable, kebab-case; `tracecli explain NAME`")]
    severity: Annotated[Severity, column("severity", "error: holds the run back; warning: worth a day; note: know it")]
    title: Annotated[Text, column("title", "one sentence with its figure")]
    evidence: Annotated[tuple[str, ...], column("evidence", "figures that it rests on, a line each")]
    advice: Annotated[Text, column("advice", "what to try")]
    up_to_ns: Annotated[Ns | None, column("up to", "time that would be gone at best; null: cannot be told")] = None
    share: Annotated[Share | None, column("share", "`up_to_us` of the window")] = None
    docs: Annotated[Text, column("docs", "the command that explains it")] = ""
