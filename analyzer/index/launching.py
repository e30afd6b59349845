"""Launch calls, and whether what they launched was recorded, captured or lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from analyzer.index import capture

if TYPE_CHECKING:
    from analyzer.index.device import Device
    from analyzer.index.host import Host
    from analyzer.index.tree import Ints, Mask


@dataclass(frozen=True)
class Launching:
    """Masks by host row."""

    host: Host
    device: Device

    @cached_property
    def recorded(self) -> Mask:
        """Calls that launched device work that was recorded."""
        return self.device.launched_events > 0

    @cached_property
    def all(self) -> Mask:
        """Calls that launched device work, by a record or by their name."""
        return self.recorded | self.host.launch_calls

    @cached_property
    def captures(self) -> capture.Captures:
        """Graph captures, and the launches that they captured."""
        host = self.host
        return capture.find(host, host.call, host.launch_calls & ~self.recorded, self.recorded, host.process)

    @cached_property
    def lost(self) -> Mask:
        """Launch calls of kernels or graphs without any device record, on a trace that has device work.

        Calls after the last launch that was recorded are left out: there the recording just ended. Captured ones
        run nothing.
        """
        recorded = self.host.start[self.recorded]
        if not len(recorded):
            return np.zeros(self.host.height, bool)
        lost = self.host.launch_calls & ~self.recorded & ~self.captures.captured
        return np.asarray(lost & (self.host.start < recorded.max()))

    @cached_property
    def lost_at(self) -> Ints:
        """When they were called, sorted (ns)."""
        return np.sort(self.host.start[self.lost])
