"""Which part of a trace a command speaks of: the same words for every command."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from analyzer.events.select import Selection

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def part(verb: str) -> Decorator:
    """The options, as `part`: a Selection, None where nothing is said. verb: what the command does with it."""
    options = (
        click.option(
            "--engines", metavar="FILE", help="A table (TOML) of how your own engine names its steps, before the known."
        ),
        click.option("--phase", metavar="NAME", help=f"{verb} the steps of a phase, as the report names it."),
        click.option(
            "--annotation", metavar="NAME[:N]", help=f"{verb} the calls of an annotation, or its Nth (0 is the first)."
        ),
        click.option(
            "--time", "time_us", metavar="FROM:TO", help=f"{verb} what ran between two times of the report, in µs."
        ),
        click.option("--steps", metavar="A:B", help=f"{verb} profiler steps A to B, both included."),
        click.option("--step", metavar="NAME|N", help=f"{verb} one profiler step: its name, number or position."),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_part(
            *,
            step: str | None,
            steps: str | None,
            time_us: str | None,
            annotation: str | None,
            phase: str | None,
            engines: str | None,
            **others: Any,
        ) -> Any:
            part = selection(step, steps, time_us, annotation, phase)
            if engines is not None:
                from analyzer.events.select import Selection

                part = replace(part or Selection(), engines=engines)
            return command(part=part, **others)

        wrapped: Callable[..., Any] = with_part
        for option in options:
            wrapped = option(wrapped)
        return wrapped

    return decorate


def selection(
    step: str | None = None,
    steps: str | None = None,
    time_us: str | None = None,
    annotation: str | None = None,
    phase: str | None = None,
) -> Selection | None:
    """Raises UsageError for more than one of them, or one that is none."""
    given = sum(option is not None for option in (step, steps, time_us, annotation, phase))
    if not given:
        return None
    if given > 1:
        raise click.UsageError("one of --step, --steps, --time, --annotation and --phase")
    from analyzer.events.select import Selection

    if step is not None:
        return Selection(steps=(step, step))
    if steps is not None:
        first, colon, last = steps.partition(":")
        if not (colon and first and last):
            raise click.UsageError(f"--steps {steps}: write A:B, such as 15:17")
        return Selection(steps=(first, last))
    if time_us is not None:
        return Selection(time_us=_stretch(time_us))
    if annotation is not None:
        name, _, number = annotation.rpartition(":")
        if name and re.fullmatch(r"-?\d{1,9}", number):
            return Selection(annotation=(name, int(number)))
        return Selection(annotation=(annotation, None))
    return Selection(phase=phase)


def _stretch(text: str) -> tuple[float | None, float | None]:
    try:
        low, high = (float(part) if part else None for part in text.split(":"))
    except ValueError:
        raise click.UsageError(f"--time {text}: write FROM:TO in µs, such as 1500:2500 or 1500:") from None
    if any(part is not None and not abs(part) < 1e15 for part in (low, high)):
        raise click.UsageError(f"--time {text}: no trace is that long")
    return low, high
