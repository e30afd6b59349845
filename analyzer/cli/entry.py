"""`main`: calls a command, and maps whatever comes of it to an exit code, in this one place."""

from __future__ import annotations

import importlib.util
import io
import os
import pkgutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from analyzer.cli import commands
from analyzer.cli.exits import Exit
from analyzer.cli.options import epilog
from analyzer.cli.output import say
from analyzer.errors import TraceError


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the console script. Never shows a traceback unless TRACECLI_DEBUG is set."""
    with _stoppable():
        code = _run(arguments)
    sys.exit(_flushed(code))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(arguments, prog_name="tracecli", standalone_mode=False)
        return code if isinstance(code, int) else Exit.FINE
    except click.exceptions.Exit as e:
        return e.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return Exit.INTERRUPT
    except _Stopped as e:
        return e.code
    except (BrokenPipeError, _ReaderGone):
        return Exit.PIPE
    except click.ClickException as e:
        text = io.StringIO()
        e.show(text)
        say(text.getvalue().rstrip("\n"))
    except TraceError as e:
        say(f"tracecli: {e.where}: {e.what}" if e.where else f"tracecli: {e.what}")
        if e.hint:
            say(f"  {e.hint}")
    except OSError as e:  # a full disk, too few files, a folder that is gone: nothing that we did
        say(f"tracecli: {f'{e.filename}: ' if e.filename else ''}{e.strerror or e}")
    except MemoryError:
        say("tracecli: out of memory; a step range or fewer events would fit")
    except SystemExit:
        raise
    except BaseException as e:  # the last resort: a bug of ours is said, not dumped; a panic of Rust is no Exception
        if os.environ.get("TRACECLI_DEBUG"):
            raise
        say(
            f"tracecli: internal error, a bug of ours: {type(e).__name__}: {e}\n"
            "Set TRACECLI_DEBUG=1 for the traceback, and please report it."
        )
        return Exit.BUG
    return Exit.INPUT


def _flushed(code: int) -> int:
    """The exit code, once what was printed has arrived or is given up."""
    if sys.stdout is None:
        return code
    try:
        sys.stdout.flush()
    except OSError as e:
        # Python would try again, and complain, when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(e, BrokenPipeError):
            return Exit.PIPE
        if code in (Exit.FINE, Exit.BROKEN):
            say(f"tracecli: standard output: cannot write: {e.strerror or e}")
            return Exit.INPUT
    return code


class _ReaderGone(Exception):
    """The reader of our output went away."""


class _Stopped(BaseException):
    """Somebody asked us to end: unwinds like an interrupt, so that nothing is left behind."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


@contextmanager
def _stoppable() -> Iterator[None]:
    """A request to end becomes an exception; what the caller ignores, as `nohup` does, stays ignored.

    Signals belong to the main thread: in others nothing is changed. Python itself ignores SIGPIPE, so that
    a closed pipe is an error with an exit code of its own.
    """

    def stop(number: int, _: object) -> None:
        raise _Stopped(number)

    before = {}
    try:
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, stop)
    except ValueError:
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Commands(click.Group):
    """The commands are the files of a folder.

    Keeps a closed pipe from click, which would exit with 1: here that says that a limit is broken.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = cmd_name.replace("-", "_")
        module = f"{commands.__name__}.{name}"
        if "_" in cmd_name or not name.isidentifier() or importlib.util.find_spec(module) is None:
            return None
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _pipe():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _pipe():
            return super().invoke(ctx)


@contextmanager
def _pipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as e:
        raise _ReaderGone from e


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=epilog("tracecli analyze run.json.gz", "tracecli explain overhead-bound", "tracecli COMMAND --help")
    + '\n\nCompletion: eval "$(_TRACECLI_COMPLETE=bash_source tracecli)" (or zsh_source, fish_source).',
)
@click.version_option(package_name="torch-tracecli", prog_name="tracecli")
def cli() -> None:
    """Why did the GPU wait? Reads PyTorch profiler traces; needs no GPU and no torch."""
