"""Host time between steps."""

import statistics
import time


class StepClock:
    """Collects laps of host wall time; what happens between `pause` and `resume` is not counted."""

    def __init__(self) -> None:
        self.laps_ns: list[int] = []
        self._last = 0
        self._started = 0

    @property
    def running(self) -> bool:
        """Whether laps are being collected."""
        return self._started > 0

    def start(self) -> None:
        """Forget the laps so far, and begin now."""
        self.laps_ns = []
        self._started = self._last = time.perf_counter_ns()

    def lap(self, now_ns: int) -> None:
        """A step ended at `now_ns` (perf_counter_ns). Ignored while not running."""
        if self._started:
            self.laps_ns.append(now_ns - self._last)
            self._last = now_ns

    def resume(self) -> None:
        """The next lap begins now: leaves out what was done since the last one ended."""
        self._last = time.perf_counter_ns()

    def stop(self) -> None:
        """Keep the laps, collect no more."""
        self._started = 0

    def mean_us(self) -> float | None:
        """Microseconds a step from `start` until now: with the device in step at both ends, its real time."""
        if not self._started or not self.laps_ns:
            return None
        return round((time.perf_counter_ns() - self._started) / len(self.laps_ns) / 1000, 3)

    def median_us(self) -> float | None:
        """The median lap in microseconds, or None where there was none."""
        return round(statistics.median(self.laps_ns) / 1000, 3) if self.laps_ns else None

    def laps_us(self) -> list[float]:
        """All laps in microseconds."""
        return [round(lap / 1000, 3) for lap in self.laps_ns]
