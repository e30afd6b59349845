"""Facts about the device, asked without waking it: a program without CUDA must not start it for us."""

from pathlib import Path
from typing import Any

import torch

_DRIVER = Path("/sys/module/nvidia/version")


def in_use() -> bool:
    """Whether the program has started CUDA in this process."""
    cuda: Any = torch.cuda
    return bool(cuda.is_available() and cuda.is_initialized())


def wait_for_device() -> bool:
    """Wait until the current device has nothing left to do; False where that cannot be asked.

    Never during a graph capture, which a synchronize would break.
    """
    if not in_use() or torch.cuda.is_current_stream_capturing():
        return False
    torch.cuda.synchronize()
    return True


def describe() -> dict[str, Any]:
    """Device and driver, where known. Without CUDA in use: nothing but the versions torch was built for."""
    facts: dict[str, Any] = {"cuda": torch.version.cuda, "driver": None, "device": None}
    hip = getattr(torch.version, "hip", None)
    if hip:
        facts["hip"] = hip
    if in_use():
        facts["device"] = torch.cuda.get_device_name()
        facts["device_count"] = torch.cuda.device_count()
    if _DRIVER.is_file():
        facts["driver"] = _DRIVER.read_text().strip()
    return facts
