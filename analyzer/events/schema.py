"""The typed frames that a trace becomes: every column, its type, its unit, its meaning.

All times are integer nanoseconds. `ts` is relative to the first event that is kept (so that it is
never negative and small numbers stay small); `Trace.base_ns` is what to add to be absolute.

Text is interned: a `name` or `shapes` column holds positions in `Trace.names`; `inputs`, `collective`
and `config` hold rows of small frames, in which each combination stands once. The frames keep the
order of the file. Only complete (`X`) events, pairs of `B`/`E` made complete, and memory instants
become rows; all others are counted in `Trace.events` and dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from analyzer.report.findings import Warning


class Cat(IntEnum):
    """Category of an event. Below 16 on the host, from 16 on a device."""

    OP = 0  # an operator of the dispatcher, or a record_function of C++
    ANNOTATION = 1  # a user's record_function, a profiler step, a collective's annotation
    PYTHON = 2  # a Python frame, where stacks were recorded
    RUNTIME = 3  # a call of the runtime API (CUDA, HIP, SYCL, MTIA)
    DRIVER = 4  # a call of the driver API
    OVERHEAD = 5  # the profiler's own work, and module or function loading, on a lane of its own
    KERNEL = 16
    MEMCPY = 17
    MEMSET = 18


HOST_CALLS = (Cat.RUNTIME, Cat.DRIVER)

#: The key beside the events in which `share` says what it did.
SHARED = "tracecli_share"
DEVICE_WORK = (Cat.KERNEL, Cat.MEMCPY, Cat.MEMSET)

#: Spelling in the file -> category. Old Kineto wrote `Operator`, `Runtime`, `Kernel`, `Memcpy`.
CATEGORIES: dict[str, Cat] = {
    "cpu_op": Cat.OP,
    "Operator": Cat.OP,
    "user_annotation": Cat.ANNOTATION,
    "python_function": Cat.PYTHON,
    "cuda_runtime": Cat.RUNTIME,
    "Runtime": Cat.RUNTIME,
    "hip_runtime": Cat.RUNTIME,
    "xpu_runtime": Cat.RUNTIME,
    "mtia_runtime": Cat.RUNTIME,
    "privateuse1_runtime": Cat.RUNTIME,
    "cuda_driver": Cat.DRIVER,
    "hip_driver": Cat.DRIVER,
    "xpu_driver": Cat.DRIVER,
    "privateuse1_driver": Cat.DRIVER,
    "overhead": Cat.OVERHEAD,
    "kernel": Cat.KERNEL,
    "Kernel": Cat.KERNEL,
    "concurrent_kernel": Cat.KERNEL,
    "gpu_memcpy": Cat.MEMCPY,
    "Memcpy": Cat.MEMCPY,
    "gpu_memset": Cat.MEMSET,
    "Memset": Cat.MEMSET,
}

#: Column -> Polars type name, in order. `null` is allowed only where said.
HOST = {
    "cat": "UInt8",  # Cat, below 16
    "name": "Int32",  # position in Trace.names
    "thread": "Int32",  # row of Trace.threads: one (pid, tid)
    "ts": "Int64",  # ns from the first event
    "dur": "Int64",  # ns, never negative
    "correlation": "Int64",  # joins a runtime or driver call to device work; 0: none
    "shapes": "Int32",  # position in Trace.names of the input dims and types as JSON; -1: not recorded
    "inputs": "Int32",  # row of Trace.inputs; -1: not recorded
    "collective": "Int32",  # row of Trace.collectives; -1: none
    "seq": "Int64",  # Sequence number: joins a backward operator to its forward one; null: not recorded
    "fwd_thread": "Int64",  # Fwd thread id: of the thread that ran the forward operator, 0: none; null: not recorded
}
DEVICE = {
    "cat": "UInt8",  # Cat, from 16
    "name": "Int32",
    "thread": "Int32",  # the lane in the file; on Kineto pid is the device and tid the stream
    "device": "Int32",  # `args.device`, else the lane's pid
    "stream": "Int64",  # `args.stream`, else the lane's tid; -1: unknown
    "ts": "Int64",
    "dur": "Int64",
    "correlation": "Int64",
    "config": "Int32",  # row of Trace.configs; -1: none recorded
    "bytes": "Int64",  # of a copy or memset; null: not recorded
    "collective": "Int32",  # row of Trace.collectives; -1: none
}
MEMORY = {
    "ts": "Int64",
    "device_type": "Int32",  # c10::DeviceType: 0 CPU, 1 CUDA, 6 HIP as c10 has it, ...
    "device_id": "Int32",  # -1 for the CPU
    "bytes": "Int64",  # negative: freed
    "allocated": "Int64",  # Total Allocated after the event; null: not recorded
    "reserved": "Int64",  # Total Reserved; null: not recorded
}
THREADS = {
    "pid": "String",  # as the file spells it
    "tid": "String",
    "process_name": "String",  # from metadata events; null: none
    "thread_name": "String",
    "process_labels": "String",
}
CONFIGS = {  # launch configurations, each once; null: not recorded
    "grid_x": "Int64",
    "grid_y": "Int64",
    "grid_z": "Int64",
    "block_x": "Int64",
    "block_y": "Int64",
    "block_z": "Int64",
    "registers": "Int64",  # per thread
    "shared_memory": "Int64",  # bytes a block, static and dynamic
    "blocks_per_sm": "Float64",  # grid blocks / SMs, as reported
    "warps_per_sm": "Float64",
    "occupancy": "Float64",  # "est. achieved occupancy %", 0 to 100, as reported
}
INPUTS = {  # arguments of operators, each combination once; an entry an argument, as JSON; null: not recorded
    "dims": "String",  # of tensors: [[2, 3], [], ...]; of lists of tensors one level deeper
    "types": "String",  # ["float", "", "Scalar", ...]
    "strides": "String",  # as dims
    "concrete": "String",  # values that are no tensors, as text: ["", "1", "[2, 2]", ...]
}
COLLECTIVES = {  # what was said of collectives, each combination once; null: not recorded
    "name": "String",  # allreduce, _allgather_base, ...
    "group": "String",  # Process Group Name: a number, or what the program calls it
    "description": "String",  # Process Group Description
    "group_size": "Int64",
    "ranks": "String",  # Process Group Ranks as recorded: "[0, 1, 2, 3]", shortened with "..." where many
    "rank_start": "Int64",  # Global rank start, of the ranks of a group that is evenly spaced
    "rank_stride": "Int64",
    "rank": "Int64",  # of this process, in the group
    "source": "Int64",  # Src Rank, of a receive
    "destination": "Int64",  # Dst Rank, of a send
    "seq": "Int64",  # the group's count of collectives
    "comms_id": "String",  # the same on all ranks of one collective
    "asynchronous": "Boolean",
    "dtype": "String",  # Float, BFloat16, ...
    "in_elements": "Int64",  # In msg nelems, of this rank
    "out_elements": "Int64",
    "in_split": "String",  # In split size as recorded: "[]", "[1, 2]"
    "out_split": "String",
}


@dataclass(frozen=True, slots=True)
class Header:
    """What stands beside the events at the top level of the file.

    producer     a short text: "Kineto (CUDA)", "Kineto (ROCm)", "legacy autograd profiler", ...
    base_time_ns `baseTimeNanoseconds`, 0 where absent.
    devices      `deviceProperties` as recorded, each a dict of scalars.
    distributed  `distributedInfo` as recorded (rank, world_size, backend, pg_config ...), or empty.
    extra        every other top-level key that is small: scalars, flags, what `capture` stamped.
    asked        flags of the profiler (`with_stack` ..) as the events of an old producer show them: set or not.
    """

    producer: str = "unknown"
    base_time_ns: int = 0
    devices: tuple[Mapping[str, Any], ...] = ()
    distributed: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace in memory. Frames follow HOST, DEVICE, MEMORY, THREADS, CONFIGS, INPUTS and
    COLLECTIVES above.

    bytes              of the uncompressed text. `format`: "json", "json.gz", "json array", ...
    events             elements of the event list, dropped ones included, damaged ones not.
    complete_events    `X` events with a usable time and duration.
    damaged_events     events that could not be recovered.
    window             of a part of a trace, what its figures speak of (ns); None: a whole trace.
    truncated_at_byte  where the text stops, if it stops too early (then `truncated`), else None.
    """

    path: str
    bytes: int
    format: str
    events: int
    complete_events: int
    damaged_events: int
    truncated_at_byte: int | None
    base_ns: int
    header: Header
    names: pl.Series  # String, position = id
    threads: pl.DataFrame
    configs: pl.DataFrame
    inputs: pl.DataFrame
    collectives: pl.DataFrame
    host: pl.DataFrame
    device: pl.DataFrame
    memory: pl.DataFrame
    warnings: tuple[Warning, ...] = ()
    window: tuple[int, int] | None = None

    def text(self, ids: pl.Series) -> pl.Series:
        """Names of ids; null for -1."""
        return self.names.gather(ids.set(ids < 0, None))

    @property
    def truncated(self) -> bool:
        return self.truncated_at_byte is not None
