"""What an analysis returns, and the collection that findings and renderers ask by type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, TypeVar

from analyzer.report.blocks import Block, Section, Table
from analyzer.report.columns import Row


class Result(Row, frozen=True, kw_only=True):
    """One part of a report: its fields are keys of the JSON object's top level.

    SECTION  key for `--only`; None: the part is never shown by itself. TITLE over the part.
    DETAIL   shown only when asked for.
    """

    SECTION: ClassVar[str | None] = None
    TITLE: ClassVar[str] = ""
    DETAIL: ClassVar[bool] = False

    def blocks(self) -> Iterable[Block]:
        """What is shown, in this order; nothing where there is nothing to say."""
        return ()

    def first(self) -> Table | None:
        """What of it the first look shows."""
        return None

    def section(self) -> Section | None:
        shown = tuple(self.blocks())
        if self.SECTION is None or not shown:
            return None
        return Section(self.SECTION, self.TITLE, shown, self.DETAIL, self.first())


R = TypeVar("R", bound=Result)


class Results:
    """Results by their type: `results[Kernels].kernels`. Raises KeyError for what the report lacks."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._by_type: dict[type[Result], Result] = {}
        for result in results:
            if type(result) in self._by_type:
                raise ValueError(f"two results of {type(result).__name__}")
            self._by_type[type(result)] = result

    def __getitem__(self, kind: type[R]) -> R:
        found = self._by_type[kind]
        assert isinstance(found, kind)
        return found

    def __contains__(self, kind: type[Result]) -> bool:
        return kind in self._by_type

    def __iter__(self) -> Iterator[Result]:
        return iter(self._by_type.values())

    def with_(self, *more: Result) -> Results:
        """These and some more."""
        return Results([*self, *more])
