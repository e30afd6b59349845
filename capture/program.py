"""Run somebody else's program as Python would: arguments, module search path, `__main__`, exit and all."""

import importlib.machinery
import os
import runpy
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HERE = str(Path(__file__).parent) + os.sep


def run_script(script: str, arguments: list[str]) -> None:
    """As `python script arguments`. Raises what the program raises; FileNotFoundError if there is none."""
    _hide_our_frames()
    sys.argv = [script, *arguments]
    path = Path(script)
    if not path.is_file() or path.suffix in (".zip", ".pyz"):
        if not path.exists():
            raise FileNotFoundError(script)
        # A folder or archive with a __main__.py in it; it becomes the search path itself.
        sys.path.pop(0)
        runpy.run_path(script, run_name="__main__")
        return
    sys.path[0] = str(path.resolve().parent)
    file = os.path.abspath(script)
    code = compile(path.read_bytes(), file, "exec", dont_inherit=True)
    module = types.ModuleType("__main__")
    namespace: dict[str, Any] = module.__dict__
    namespace.update(
        __file__=file,
        __builtins__=__builtins__,
        __loader__=importlib.machinery.SourceFileLoader("__main__", file),
        __cached__=None,
    )
    # Pickle and new worker processes look here for what the program defines.
    sys.modules["__main__"] = module
    exec(code, namespace)


def run_module(name: str, arguments: list[str]) -> None:
    """As `python -m name arguments`. Raises what the program raises; ImportError for an unknown module."""
    _hide_our_frames()
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _hide_our_frames() -> None:
    """Let a traceback of the program begin in the program, whichever hook prints it."""
    original: Callable[..., Any] = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        sys.excepthook = original
        inner = trace
        while inner is not None and _is_ours(inner.tb_frame.f_code.co_filename):
            inner = inner.tb_next
        shown = inner or trace
        original(kind, error.with_traceback(shown), shown)

    sys.excepthook = hook


def _is_ours(filename: str) -> bool:
    return filename.startswith((_HERE, "<frozen runpy>")) or filename == runpy.__file__
