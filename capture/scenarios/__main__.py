"""`python -m capture.scenarios`: record systems that show one effect each."""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from capture.scenarios import catalogue, overhead, suite
from capture.scenarios.base import Scenario, Variant
from capture.scenarios.run import run

_ABOUT = """\
Record small systems that show one effect each: trace, torch's own table, and key_averages() as JSON.

  python -m capture.scenarios --list                        what there is
  python -m capture.scenarios all -o fixtures               every recording, each in its turn
  python -m capture.scenarios attention mlp -o out          every recording of these scenarios
  python -m capture.scenarios matmul-add --size 64 -o out   one recording with options of your own
  python -m capture.scenarios --overhead -o out             what the hooks cost while nothing is recorded
  torchrun --standalone --nproc-per-node 2 -m capture.scenarios ddp -o out
"""


def parser(scenario: Scenario | None) -> argparse.ArgumentParser:
    """The options, with those of one scenario."""
    p = argparse.ArgumentParser(
        prog="python -m capture.scenarios",
        usage="%(prog)s [NAME ...|all] [-o DIR] [options]",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("traces"),
        metavar="DIR",
        help="folder for what is recorded (default: %(default)s)",
    )
    p.add_argument("--list", action="store_true", help="say what scenarios and recordings there are")
    p.add_argument(
        "--seconds-each",
        type=float,
        default=suite.SECONDS_EACH,
        metavar="SEC",
        help="give up on a recording that takes longer (default: %(default)g)",
    )
    p.add_argument(
        "--overhead",
        action="store_true",
        help="measure step times with the hooks of `python -m capture` installed and without",
    )
    p.add_argument("--pairs", type=int, default=60, metavar="N", help="with --overhead: pairs of blocks to compare")
    p.add_argument("--small", action="store_true", help="small operands and few steps, to try it out on a CPU")
    p.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    p.add_argument("--files", help=argparse.SUPPRESS)
    if scenario is not None:
        group = p.add_argument_group(f"options of {scenario.name}: {scenario.about}")
        for option in scenario.options:
            text = f"{option.help} (default: {option.default})"
            flag = f"--{option.name.replace('_', '-')}"
            if isinstance(option.default, bool):
                group.add_argument(flag, dest=f"value_{option.name}", action="store_true", default=None, help=text)
            else:
                group.add_argument(
                    flag,
                    dest=f"value_{option.name}",
                    type=type(option.default),
                    choices=option.choices,
                    help=text,
                )
        timing = p.add_argument_group("what to record of it")
        for name, meaning in (
            ("wait", "steps before the profiler, timed"),
            ("warmup", "steps of warm-up"),
            ("active", "steps to record"),
        ):
            timing.add_argument(f"--{name}", type=int, metavar="N", help=meaning)
        for name in ("shapes", "stacks", "memory", "modules"):
            timing.add_argument(f"--{name}", action="store_true", help=f"record {name} too")
    return p


def show() -> None:
    """Print all scenarios and their recordings."""
    for scenario in catalogue().values():
        needs = {0: "", 1: "  [GPU]"}.get(scenario.gpus, f"  [{scenario.gpus} GPUs]")
        print(f"{scenario.name:18} {scenario.about}{needs}")
        for variant in scenario.variants:
            print(f"    {variant.file:36} {variant.why}")


def chosen(scenario: Scenario, options: argparse.Namespace) -> Variant | None:
    """The one recording that the options ask for, or None where they ask for nothing in particular."""
    values: dict[str, Any] = {}
    for option in scenario.options:
        value = getattr(options, f"value_{option.name}")
        if value is not None:
            values[option.name] = value
    changes: dict[str, Any] = {n: getattr(options, n) for n in ("wait", "warmup", "active")}
    changes = {n: v for n, v in changes.items() if v is not None}
    changes |= {n: True for n in ("shapes", "stacks", "memory", "modules") if getattr(options, n)}
    if not values and not changes:
        return None
    full = scenario.values(values)
    for variant in scenario.variants:
        if scenario.values(variant.values) == full:
            return replace(variant, **changes)
    name = "_".join([scenario.name.replace("-", "_"), *(f"{k}-{v}" for k, v in values.items())])
    cold = bool(values.get("cold"))
    return replace(Variant(name, "asked for by hand", values, whole=cold), **changes)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Returns 0, 1 if a recording failed, 2 for a wrong command line."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    names: list[str] = []
    while arguments and not arguments[0].startswith("-"):
        names.append(arguments.pop(0))
    known = catalogue()
    scenario = known.get(names[0]) if len(names) == 1 else None
    p = parser(scenario)
    options = p.parse_args(arguments)
    unknown = [n for n in names if n != "all" and n not in known]
    if unknown:
        p.error(f"no scenario {', '.join(unknown)}; there are: all, {', '.join(known)}")
    folder: Path = options.output
    if options.list:
        show()
        return 0
    if options.overhead:
        overhead.main(folder, options.pairs, small=options.small)
        return 0
    if options.worker:
        return suite.work_through(folder, options.files.split(","), options.worker, small=options.small)
    if not names:
        p.error("which scenario? --list says what there is")
    if scenario is None:
        return _several(None if "all" in names else names, folder, options)
    folder.mkdir(parents=True, exist_ok=True)
    variant = chosen(scenario, options)
    # Started by torchrun, this process is one of the ranks already.
    if variant is None and (scenario.gpus < 2 or "RANK" not in os.environ):
        return _several(names, folder, options)
    variant = variant or scenario.variants[0]
    run(scenario, scenario.shrunk(variant) if options.small else variant, folder)
    return 0


def _several(names: list[str] | None, folder: Path, options: argparse.Namespace) -> int:
    work = suite.items(names, small=options.small)
    failed = suite.record_all(folder, work, options.seconds_each, small=options.small)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
