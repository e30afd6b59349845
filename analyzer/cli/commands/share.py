"""`tracecli share`: a trace to hand on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from analyzer.cli import options as shared
from analyzer.cli import parts
from analyzer.cli.output import say
from analyzer.cli.progress import Progress
from analyzer.output import Output

if TYPE_CHECKING:
    from analyzer.events.select import Selection


@click.command(
    epilog=shared.epilog(
        "tracecli share run.json -o small.json.gz --step 16",
        "tracecli share run.json -o small.json.gz --time 1500:2500 --map names.json",
    )
)
@shared.trace
@shared.output("FILE to write; .gz packs it.", required=True)
@parts.part("Keep")
@click.option("--keep", metavar="KIND,..", help="Leave these kinds of identity in; an unknown one lists them.")
@click.option("--map", "mapping", type=click.Path(path_type=Path), help="Write what stands for what, for you alone.")
@click.option(
    "--same-as",
    metavar="MAP",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Go on with the words of another trace's map: for traces that belong together, such as ranks.",
)
def share(
    trace: str,
    output: Path,
    force: bool,
    part: Selection | None,
    keep: str | None,
    mapping: Path | None,
    same_as: Path | None,
) -> None:
    """Write a trace to hand on: a part of it, if you like, and without what says whose it is.

    What is known to be public stays: operators, kernels, calls and files of frameworks, shapes and times, so
    that the figures do. Everything else becomes a stable word (fn_3, module_2, host_1) or is left out.
    """
    from analyzer.redact import share as sharing

    target = Output(output, force=force, inputs=[trace])
    # The map undoes the sharing: only its owner may read it.
    map_target = None if mapping is None else Output(mapping, force=force, private=True, inputs=[trace, output])
    kinds = _kinds(keep)
    with Progress() as progress:
        done = sharing.share(
            trace, target, part, keep=kinds, mapping=_mapping(same_as), progress=progress
        )  # fmt: skip
    if map_target is not None:
        import json

        with map_target.open() as file:
            file.write(json.dumps(done.mapping, indent=2).encode() + b"\n")
    for line in sharing.summary(done, output):
        say(line)


def _mapping(path: Path | None) -> dict[str, dict[str, str]] | None:
    """A map that an earlier run wrote."""
    import json

    if path is None:
        return None
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as e:
        raise click.UsageError(f"--same-as {path}: {e}") from None
    words = [found, *found.values()] if isinstance(found, dict) else [found]
    texts = [text for known in words[1:] if isinstance(known, dict) for text in known.values()]
    if not all(isinstance(known, dict) for known in words) or not all(isinstance(text, str) for text in texts):
        raise click.UsageError(f"--same-as {path}: no map of share")
    return {kind: dict(known) for kind, known in found.items()}


def _kinds(keep: str | None) -> tuple[str, ...]:
    from analyzer.redact.scrub import KINDS

    kinds = tuple(kind.strip() for kind in (keep or "").split(",") if kind.strip())
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        known = "\n".join(f"  {kind:<10} {what}" for kind, what in KINDS.items())
        raise click.UsageError(f"--keep: no kind is called {', '.join(unknown)}; there is\n{known}")
    return kinds
