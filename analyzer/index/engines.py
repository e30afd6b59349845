"""What engines' names say of a step: its phase, its batch, its tokens. The table is `engines.toml`.

A user's file of the same form comes before it, so that what it says counts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

import polars as pl

from analyzer.errors import TraceError

#: What the named groups of a pattern may say, as numbers.
NUMBERS = ("context", "generation", "context_tokens", "generation_tokens", "batch", "tokens")

#: One row a name: engine (null: no row matches), phase (null: the name does not say), batch, tokens (null likewise).
SAID = {"engine": pl.String, "phase": pl.String, "batch": pl.Int64, "tokens": pl.Int64}


@dataclass(frozen=True, slots=True)
class Engine:
    """One row of the table; exactly one of annotation, frame and inside is given."""

    engine: str
    annotation: str | None = None
    frame: str | None = None
    inside: str | None = None
    step: str | None = None
    phase: str | None = None
    example: str = ""

    @property
    def pattern(self) -> str:
        return self.annotation or self.frame or self.inside or ""


@dataclass(frozen=True)
class Engines:
    """The table."""

    rows: tuple[Engine, ...] = ()
    modes: Mapping[str, str] = field(default_factory=dict)

    def said(self, names: pl.Series, what: str) -> pl.DataFrame:
        """What the rows with a pattern of the kind `what` say of each name. Columns: SAID.

        what  "annotation" or "frame".
        """
        rows = [row for row in self.rows if getattr(row, what)]
        frame = pl.DataFrame({"name": names.cast(pl.String)})
        columns = {key: pl.lit(None, dtype=kind) for key, kind in SAID.items()}
        for row in reversed(rows):
            hit = pl.col("name").str.contains(row.pattern)
            values = self._values(row)
            columns = {key: pl.when(hit).then(values[key]).otherwise(columns[key]) for key in SAID}
        return frame.select(**columns)

    def _values(self, row: Engine) -> dict[str, pl.Expr]:
        groups = re.findall(r"\(\?P<(\w+)>", row.pattern)
        got = pl.col("name").str.extract_groups(row.pattern)
        null = pl.lit(None, dtype=pl.Int64)
        number = {key: got.struct.field(key).cast(pl.Int64, strict=False) if key in groups else null for key in NUMBERS}
        context, generation = number["context"], number["generation"]
        phase: pl.Expr = pl.lit(row.phase, dtype=pl.String)
        if "mode" in groups:
            mode = got.struct.field("mode")
            word = mode.str.to_uppercase()
            phase = word.replace_strict(list(self.modes), list(self.modes.values()), default=mode.str.to_lowercase())
        elif "context" in groups and "generation" in groups:
            phase = (
                pl.when((context > 0) & (generation > 0))
                .then(pl.lit("mixed"))
                .when(context > 0)
                .then(pl.lit("prefill"))
                .when(generation > 0)
                .then(pl.lit("decode"))
                .otherwise(pl.lit("idle"))
            )
        return {
            "engine": pl.lit(row.engine),
            "phase": phase,
            "batch": pl.coalesce(number["batch"], context + generation),
            "tokens": pl.coalesce(number["tokens"], number["context_tokens"] + number["generation_tokens"]),
        }

    def inside(self) -> tuple[Engine, ...]:
        """Rows that only name the steps inside a frame, the most particular first."""
        return tuple(row for row in self.rows if row.inside)


def parse(text: str, path: str, before: Engines | None = None) -> Engines:
    """A table from its text. Raises TraceError where it is none, with the row.

    before  the table whose rows follow those of the text.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TraceError(f"no table of engines: {error}", path) from error
    known = {f.name for f in fields(Engine)}
    rows = []
    for number, raw in enumerate(data.get("engine", []), 1):
        given = [key for key in ("annotation", "frame", "inside") if raw.get(key)]
        if not isinstance(raw, dict) or set(raw) - known or "engine" not in raw or len(given) != 1:
            hint = "a row has engine, one of annotation, frame and inside, and phase, step, example"
            raise TraceError(f"row {number} of the table of engines is not one", path, hint)
        row = Engine(**raw)
        for pattern in (row.pattern, row.step or ""):
            try:
                pl.Series([""]).str.contains(pattern)
            except pl.exceptions.ComputeError as error:
                raise TraceError(f"row {number} of the table of engines: {error}", path) from error
        rows.append(row)
    rest = before or Engines()
    modes = {str(key).upper(): str(value) for key, value in data.get("modes", {}).items()}
    return Engines((*rows, *rest.rows), {**rest.modes, **modes})


@cache
def known() -> Engines:
    """The table that the package holds."""
    path = Path(__file__).with_name("engines.toml")
    return parse(path.read_text(encoding="utf-8"), str(path))


def load(path: str) -> Engines:
    """A user's table, before the known one. Raises TraceError where the file is none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"no table of engines: {error}", path) from error
    return parse(text, path, known())
