"""`python -m capture train.py`: record a program without changing it."""

import argparse
from pathlib import Path

import torch

from capture import program
from capture.messages import say
from capture.recorder import Recorder
from capture.recording import record
from capture.schedule import Schedule
from capture.steps import StepHooks
from capture.window import Window

_ABOUT = """\
Run a program and record a few of its steps with PyTorch's profiler.

The program runs as it would under plain Python: same arguments, same output, same exit code. A step is an
optimizer step; in a program without one, a call of its outermost module. The first steps run without the
profiler and are timed, so that the trace knows what the profiler itself costs. Messages go to standard error.
"""

_EXAMPLES = """\
examples:
  python -m capture train.py --epochs 1            steps found by themselves, written to trace.json.gz
  python -m capture --wait 50 -o run.json.gz train.py
  python -m capture --after 30 --for 2 serve.py    two seconds of it, after thirty
  python -m capture --steps none script.py         all of it, from start to end
  torchrun --nproc-per-node 2 -m capture train.py  one file a rank
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    defaults = Schedule()
    p = argparse.ArgumentParser(
        prog="python -m capture",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        usage="%(prog)s [options] (train.py | -m module) [arguments of the program]",
    )
    p.add_argument(
        "-o",
        "--output",
        default="trace.json.gz",
        metavar="FILE",
        help="the trace, NAME.json or NAME.json.gz (default: %(default)s)",
    )
    p.add_argument(
        "--steps",
        choices=("auto", "optimizer", "forward", "none"),
        default="auto",
        help="what a step is: an optimizer step, a call of the outermost module, whichever of the "
        "two the program shows (auto, the default); none: record all of the program",
    )
    when = p.add_argument_group("when to record, in steps")
    when.add_argument(
        "--wait",
        type=int,
        default=defaults.wait,
        metavar="N",
        help="steps to let pass, without profiler; the later ones are timed (default: %(default)s)",
    )
    when.add_argument(
        "--warmup",
        type=int,
        default=defaults.warmup,
        metavar="N",
        help="steps for the profiler to start up, not recorded (default: %(default)s)",
    )
    when.add_argument(
        "--active",
        type=int,
        default=defaults.active,
        metavar="N",
        help="steps to record (default: %(default)s)",
    )
    when.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="do all that N times, one file each (default: 1)"
    )
    window = p.add_argument_group("or in seconds, for programs whose steps cannot be seen")
    window.add_argument("--after", type=float, metavar="SEC", help="start recording so long after the start")
    window.add_argument("--for", type=float, dest="length", metavar="SEC", help="record for so long")
    what = p.add_argument_group("what to record beside operators and device work (each makes CPU times longer)")
    what.add_argument("--shapes", action="store_true", help="shapes of the operators' inputs")
    what.add_argument("--stacks", action="store_true", help="Python call stacks")
    what.add_argument("--memory", action="store_true", help="allocations")
    what.add_argument("--modules", action="store_true", help="module hierarchy of TorchScript models")
    p.add_argument("--cpu-only", action="store_true", help="leave the device out, even if there is one")
    p.add_argument(
        "--no-sync",
        action="store_true",
        help="do not wait for the device before the timed and before the recorded steps",
    )
    p.add_argument("--scenario", metavar="NAME", help="a name to note in the trace (default: the program's)")
    p.add_argument("-q", "--quiet", action="store_true", help="say only what went wrong")
    p.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="run a module, as python -m does; what follows is the program's",
    )
    p.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return p


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Leaves with the program's exit code, or 2 for a wrong command line."""
    p = parser()
    options = p.parse_args(arguments)
    command: list[str] = options.module or options.program
    if options.module is None and command[:1] == ["--"]:
        command = command[1:]
    if not command:
        p.error("which program? python -m capture train.py, or -m module")
    if (options.after is None) != (options.length is None):
        p.error("--after and --for belong together")
    if options.after is not None and (options.after < 0 or options.length <= 0):
        p.error("--after must not be negative, and --for more than nothing")
    name = command[0] if options.module else Path(command[0]).name
    try:
        recorder = record(
            options.output,
            wait=max(1, options.wait) if options.after is not None else options.wait,
            warmup=options.warmup,
            active=options.active,
            repeat=options.repeat,
            whole=options.steps == "none" and options.after is None,
            shapes=options.shapes,
            stacks=options.stacks,
            memory=options.memory,
            modules=options.modules,
            gpu=not options.cpu_only,
            sync=not options.no_sync,
            scenario=options.scenario or name,
            quiet=options.quiet,
        )
    except ValueError as error:
        p.error(str(error))
    if not options.module and not Path(command[0]).exists():
        p.error(f"no such file: {command[0]}")
    with recorder:
        _watch(recorder, options)
        if options.module:
            program.run_module(command[0], command[1:])
        else:
            program.run_script(command[0], command[1:])


def _watch(recorder: Recorder, options: argparse.Namespace) -> None:
    """See to it that the recording begins and ends, and that nothing stays behind when it has ended."""
    recorder.hint = "record all of the program with --steps none, or a part with --after and --for"
    if options.after is not None:
        # The profiler loads this when it starts; the second that takes would fall into the window.
        getattr(torch, "_inductor", None)
        window = Window(options.after, options.length, recorder.begin, recorder.close)
        recorder.on_done = window.stop
        window.start()
    elif options.steps != "none":
        hooks = StepHooks(recorder, options.steps)
        recorder.on_done = hooks.remove
        hooks.install()
    elif not recorder.config.quiet:
        say("recording all of the program")


if __name__ == "__main__":
    main()
