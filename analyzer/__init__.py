"""Why did the GPU wait? Reads PyTorch profiler traces; needs no GPU and no torch.

    from analyzer import analyze
    report = analyze("run.json")

See `analyzer.api`. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.api import Report, TraceError, analyze

__all__ = ["Report", "TraceError", "analyze"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from analyzer import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
