"""A whole report: results of one kind of document, and how its first screen is told from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from analyzer.report import codec
from analyzer.report.blocks import Section, Strip
from analyzer.report.columns import Name, Row, Text, column
from analyzer.report.findings import Finding, Warning
from analyzer.report.results import Result, Results

#: Of the JSON contract: keys may be added, never renamed, within one version.
SCHEMA_VERSION = 2


class ToolRow(Row, frozen=True, kw_only=True):
    """Who wrote the report."""

    name: Annotated[Name, column("", "tracecli")]
    version: Annotated[Text, column("", "of the tool that wrote the report")]


class Tool(Result, frozen=True, kw_only=True):
    tool: ToolRow


class Warnings(Result, frozen=True, kw_only=True):
    warnings: tuple[Warning, ...]


class Findings(Result, frozen=True, kw_only=True):
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Headline:
    """What a reader sees first, and the trust line that closes the report.

    source  parts of the first line: file, steps and window, device, events.
    bound   of the verdict; `reason` is its sentence with the figures.
    trust   sentences on what the figures rest on.
    path    of the trace, as given; "": there is no one trace to go on with.
    """

    source: tuple[str, ...]
    bound: str
    reason: str
    strips: tuple[Strip, ...] = ()
    trust: tuple[str, ...] = ()
    path: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of report: run, file, comparison, check.

    results   what it consists of, in the order of the JSON object's keys and of the sections.
    headline  how its first screen is told from them.
    """

    name: str
    title: str
    results: tuple[type[Result], ...]
    headline: Callable[[Results], Headline]

    def schema(self) -> dict[str, Any]:
        """The JSON schema (draft 2020-12) of such a report."""
        body, definitions = codec.schema(self.results)
        head = {"schema_version": {"const": SCHEMA_VERSION}, "kind": {"const": self.name}}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.title,
            **body,
            "properties": {**head, **body["properties"]},
            "required": [*head, *body["required"]],
            "$defs": definitions,
        }


@dataclass(frozen=True)
class Report:
    """One document, ready for every renderer. `results` may hold less than its kind has, never more."""

    kind: Kind
    results: Results

    @cached_property
    def headline(self) -> Headline:
        return self.kind.headline(self.results)

    @cached_property
    def contract(self) -> Mapping[str, Any]:
        """The JSON object, as plain values."""
        out: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "kind": self.kind.name}
        for result in self.results:
            for key, value in codec.dump(result).items():
                if key in out:
                    raise ValueError(f"declared twice: {key}")
                out[key] = value
        return out

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections that have something to say, those of detail included."""
        return tuple(section for result in self.results if (section := result.section()) is not None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.results[Findings].findings if Findings in self.results else ()

    @property
    def warnings(self) -> tuple[Warning, ...]:
        return self.results[Warnings].warnings if Warnings in self.results else ()
