"""Theoretical occupancy of a kernel from its registers, shared memory, block and device.

The formula is that of NVIDIA's occupancy calculator (CUDA C++ Programming Guide, "Compute
Capabilities", and the cuda_occupancy.h header): registers are handed out by the warp in units of
256, warps in groups of 4, shared memory in units of 128 bytes with 1 KiB reserved for each block from
compute capability 8.0 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_REGISTER_UNIT = 256
_WARP_GROUP = 4
#: Resident blocks per SM by compute capability, from the same table; the newest known is used beyond.
_BLOCKS_PER_SM = {(7, 0): 32, (7, 2): 32, (7, 5): 16, (8, 0): 32, (8, 6): 16, (8, 7): 16, (8, 9): 24,
                  (9, 0): 32, (10, 0): 32, (10, 3): 32, (11, 0): 24, (12, 0): 24, (12, 1): 24}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Occupancy:
    """share: resident warps / most possible, 0 to 1. limited_by: what stops another block."""

    share: float
    limited_by: str


def theoretical(
    threads: int | None, registers: int | None, shared_memory: int | None, device: Mapping[str, Any]
) -> Occupancy | None:
    """Occupancy of a block of `threads`; None where the trace lacks a figure or the device is not CUDA.

    registers  per thread. shared_memory: bytes a block, static and dynamic.
    device     an entry of the header's `deviceProperties`.
    """
    major, minor = _positive(device, "computeMajor"), _positive(device, "computeMinor")
    threads_per_sm = _positive(device, "maxThreadsPerMultiprocessor")
    registers_per_sm = _positive(device, "regsPerMultiprocessor") or _positive(device, "regsPerBlock")
    memory_per_sm = _positive(device, "sharedMemPerMultiprocessor")
    if not (threads and registers and threads > 0 and registers > 0 and shared_memory is not None):
        return None
    if shared_memory < 0 or not (major and threads_per_sm and registers_per_sm and memory_per_sm):
        return None
    if device.get("warpSize") != 32 or threads_per_sm < 32:
        return None
    warps_per_sm = threads_per_sm // 32
    warps = -(-threads // 32)
    warp_registers = -(-registers * 32 // _REGISTER_UNIT) * _REGISTER_UNIT
    warps_by_registers = registers_per_sm // warp_registers // _WARP_GROUP * _WARP_GROUP
    block_memory = -(-(shared_memory + (1024 if major >= 8 else 0)) // 128) * 128
    limits = {
        "block size": warps_per_sm // warps,
        "blocks per SM": _BLOCKS_PER_SM.get((major, minor), 32),
        "registers": warps_by_registers // warps,
        "shared memory": memory_per_sm // block_memory if block_memory else warps_per_sm,
    }
    limited_by = min(limits, key=lambda k: limits[k])
    return Occupancy(min(1.0, limits[limited_by] * warps / warps_per_sm), limited_by)


def _positive(device: Mapping[str, Any], key: str) -> int:
    """A property that is a number, else 0: traces come from strangers."""
    value = device.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
