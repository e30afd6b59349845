"""When to measure without the profiler, when to warm it up, and when to record."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """All four are counts.

    wait: steps before the profiler exists at all; the later ones are timed as the unprofiled program.
    warmup: steps with the profiler collecting and throwing away, so that its own start is not recorded.
    active: recorded steps. repeat: how many times the three follow each other, one file each.

    Raises ValueError where a count makes no sense.
    """

    wait: int = 10
    warmup: int = 3
    active: int = 5
    repeat: int = 1

    def __post_init__(self) -> None:
        for name, least in (("wait", 0), ("warmup", 0), ("active", 1), ("repeat", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")

    @property
    def cycle(self) -> int:
        """Steps that one recording needs."""
        return self.wait + self.warmup + self.active

    @property
    def steps(self) -> int:
        """Steps that all recordings need."""
        return self.cycle * self.repeat

    @property
    def timed(self) -> int:
        """How many of the last `wait` steps are timed as the unprofiled program.

        At least as many as are recorded, so that the two medians compare; never the very first step,
        which is cold. None where `wait` is below two.
        """
        return max(0, min(self.wait - 1, max(self.active, self.wait // 2)))
