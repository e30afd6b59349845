"""Runs a command in a process of its own, and takes its wall time and the memory of all its processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

_EVERY_S = 0.02


@dataclass(frozen=True, slots=True)
class Run:
    """seconds: wall time that the command itself reports, else of the whole process.
    peak_bytes: the largest sum over all its processes of memory in proportion to what they share."""

    seconds: float
    peak_bytes: int
    output: str


def run(command: list[str]) -> Run:
    """Run to the end. Raises CalledProcessError."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak = _Peak(process.pid)
    peak.start()
    out, err = process.communicate()
    seconds = time.perf_counter() - started
    peak.stop()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, out, err)
    reported = out.rpartition("seconds=")[2].split()
    return Run(float(reported[0]) if "seconds=" in out else seconds, peak.bytes, out)


def python(code: str, *arguments: str) -> list[str]:
    """A command that times `code`, after its imports; they stand before a line `# timed`."""
    before, _, timed = code.partition("# timed\n")
    program = (
        f"import gc, sys, time\n{before}t = time.perf_counter()\n{timed}print(f'seconds={{time.perf_counter() - t}}')"
    )
    return [sys.executable, "-c", program, *arguments]


class _Peak(threading.Thread):
    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self._pid = pid
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(_EVERY_S):
            self.bytes = max(self.bytes, _together(self._pid))

    def stop(self) -> None:
        self._done.set()
        self.join()


def _together(pid: int) -> int:
    """Proportional memory of a process and all below it; 0 once it has ended."""
    try:
        parent = psutil.Process(pid)
        processes = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    return sum(map(_proportional, processes))


def _proportional(process: psutil.Process) -> int:
    try:
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
