"""Spellings of categories and lanes beyond those of today's Kineto.

Most producers say in `cat` what an event is. Those that do not are told by where the event stands:

- the legacy autograd profiler: no `cat`, pids "CPU functions" and "CUDA functions";
- nsys exporters: category "cuda" on pid "Device 0";
- MTIA and the device lanes of other tracers (`gpu_op`, `hpu_op`): one category for work, copies and waits, told
  apart by name;
- JAX/XLA and Ascend: no `cat` on device lanes; the metadata names the process and the thread.

The first three are decided on the event alone (`code_of`); the last on the whole file (`Lanes`).
"""

from __future__ import annotations

import re

from analyzer.events.schema import CATEGORIES, Cat

#: Codes beside those of `Cat` that `columns` uses while it reads.
UNDECIDED = 254  # no category: judged by its lane once the metadata is known
DROPPED = 255  # known, and no work: counted only
UNKNOWN = 253  # a category that nobody here has heard of: counted, and reported
BY_NAME = 252  # one category for all that a device does: judged by name
BY_PID = 251  # nsys: judged by pid

#: Categories that are understood and deliberately not kept.
_NOT_KEPT = (
    "gpu_user_annotation",
    "cuda_sync",
    "cuda_event",
    "external_correlation",
    "gpu_pm_counter",
    "xpu_sync",
    "mtia_sync",
    "Trace",
    "cuda_profiler_range",
    "ac2g",
    "fwdbwd",
    "async_cpu_to_gpu",
    "async_gpu",
    "cpu_instant_event",
    "mtia_insight",
    "mtia_counters",
    "hardware_counters",
    "__metadata",
)

CODES: dict[str, int] = {
    **{name: int(cat) for name, cat in CATEGORIES.items()},
    **dict.fromkeys(_NOT_KEPT, DROPPED),
    "mtia_ccp_events": BY_NAME,
    "gpu_op": BY_NAME,
    "hpu_op": BY_NAME,
    "collective_comm": BY_NAME,
    "glow_runtime": int(Cat.RUNTIME),
    "cuda": BY_PID,
    "nvtx": int(Cat.ANNOTATION),
    "fee": int(Cat.PYTHON),  # viztracer, its C writer
    "FEE": int(Cat.PYTHON),  # and its Python one
}

#: MTIA's control processor: work and copies occupy the device, records and waits of events do not.
_MTIA = {
    "dma_request": Cat.MEMCPY,
    "event_record": None,
    "event_wait": None,
}

_DEVICE_PID = re.compile(r"(?i)^(?:device|gpu)\s*\d+$")
_LEGACY_DEVICE = re.compile(r"(?i)^(?:cuda|hip|xpu|privateuse1) functions$")
_JAX_DEVICE = re.compile(r"/device:(?:GPU|TPU|CUSTOM)[^/]*:(\d+)")
_LAST_NUMBER = re.compile(r"(-?\d+)\D*$")
#: Runtime and driver calls that JAX puts on its host lanes.
_HOST_CALL = re.compile(r"^(?:cu|hip)(?:da)?[A-Z]\w+$")


def device_work_by_name(name: str) -> Cat:
    """What a piece of device work without a category is: copies and memsets say so in their names."""
    lower = name[:24].lower()
    if lower.startswith(("memcpy", "memcpyd2", "memcpyh2", "memcpyp2", "memcpy_async", "hcclmemcpy")):
        return Cat.MEMCPY
    if lower.startswith("memset"):
        return Cat.MEMSET
    return Cat.KERNEL


def code_by_name(name: str) -> int:
    """Device events of one category; anything that is no copy, record or wait runs on the processing elements."""
    cat = _MTIA[name] if name in _MTIA else device_work_by_name(name)
    return DROPPED if cat is None else int(cat)


def code_by_pid(pid: object, name: str) -> int:
    """nsys exporters put device work on the pid "Device 0"; their host calls on the process."""
    if isinstance(pid, str) and _DEVICE_PID.match(pid):
        return int(device_work_by_name(name))
    return int(Cat.RUNTIME) if _HOST_CALL.match(name) else UNKNOWN


def code_without_category(pid: object, name: str) -> int:
    """Legacy autograd is told by its pids; everything else has to wait for the metadata."""
    if isinstance(pid, str):
        if pid == "CPU functions":
            return int(Cat.OP)
        if _LEGACY_DEVICE.match(pid):
            return int(device_work_by_name(name))
    return UNDECIDED


def code_of(cat: str | None, pid: object, name: str) -> int:
    """What an event is, as far as it says itself."""
    return settled(CODES.get(cat, UNKNOWN), pid, name) if cat else code_without_category(pid, name)


def settled(code: int, pid: object, name: str) -> int:
    """A code whose meaning hangs on the name or the pid, decided; any other as it is."""
    if code == BY_NAME:
        return code_by_name(name)
    return code_by_pid(pid, name) if code == BY_PID else code


def is_legacy_pid(pid: str) -> bool:
    return pid == "CPU functions" or _LEGACY_DEVICE.match(pid) is not None


class Lanes:
    """What the lanes of a file say of events without a category.

    process  pid -> process name; thread: (pid, tid) -> thread name. All as text.
    """

    def __init__(self, process: dict[str, str], thread: dict[tuple[str, str], str]) -> None:
        self._process = process
        self._thread = thread
        # A JAX device shows each kernel on its stream and again on derived lanes (modules, scopes).
        self._with_streams = {pid for (pid, _), name in thread.items() if name.startswith("Stream #")}

    def device_lane(self, pid: str, tid: str) -> bool | None:
        """True: device work. False: the host. None: a derived lane, or nothing is known of it."""
        process = self._process.get(pid)
        if process is None:
            return None
        thread = self._thread.get((pid, tid), "")
        if _JAX_DEVICE.search(process):
            if pid in self._with_streams:
                return True if thread.startswith("Stream #") else None
            return True if thread == "XLA Ops" else None
        if process == "Ascend Hardware":
            return True
        if process in ("CANN", "Python", "/host:CPU") or process.startswith("/host:CPU"):
            return False
        return None

    def knows(self, pid: str) -> bool:
        """Is the process one of a producer whose lanes are understood?"""
        process = self._process.get(pid, "")
        return bool(_JAX_DEVICE.search(process)) or process in (
            "Communication",
            "Overlap Analysis",
            "AI Core Freq",
        )

    def code(self, pid: str, tid: str, name: str) -> int:
        """Category of an event without one; DROPPED or UNDECIDED where its lane is not one that counts."""
        on_device = self.device_lane(pid, tid)
        if on_device is None:
            return DROPPED if self.knows(pid) else UNDECIDED
        return int(device_work_by_name(name)) if on_device else self.host_code(pid, name)

    def host_code(self, pid: str, name: str) -> int:
        """Category of an event on a host lane without one."""
        if self._process.get(pid) == "CANN" or _HOST_CALL.match(name):
            return int(Cat.RUNTIME)
        return int(Cat.PYTHON) if name.startswith("$") else int(Cat.OP)

    def device_index(self, pid: str) -> int | None:
        """The device that a lane's process stands for, where its name says so."""
        found = _JAX_DEVICE.search(self._process.get(pid, ""))
        return int(found[1]) if found else None


def last_number(text: str) -> int | None:
    """7 of "stream 7", 0 of "GPU 0", None of "Spans"; None of numbers that fit no stream id."""
    found = _LAST_NUMBER.search(text[-40:])
    if not found:
        return None
    value = int(found[1])
    return value if -(1 << 63) <= value < 1 << 63 else None
