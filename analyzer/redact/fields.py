"""What profilers write, key by key: which arguments are numbers, which are words of a known few.

What is missing here is left out of a shared trace, which costs a detail in a viewer; what is wrongly
here may give something away. A new key belongs here once somebody has seen what stands in it.
"""

from __future__ import annotations

import re
from typing import Any

# -- values ------------------------------------------------------------------------------------------

_NUMBER = r"[-+]?(?:0x[0-9a-fA-F]{1,16}|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|inf|nan)|true|false|True|False|\.\.\."
#: A number, or a list of them, as text: `0x7f00`, `[0, 1, ..., 7]`, `grid(100,)`, `1024 bytes`.
NUMERIC = re.compile(rf"(?:grid)?[\[(]?\s*(?:(?:{_NUMBER})(?:\s*,\s*(?:{_NUMBER}))*\s*,?)?\s*[\])]?(?: bytes)?")
#: A time as text; `#` is put in front by whoever keeps the digits of a number.
TIME = re.compile(r"\s*#?[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?\s*")
VERSION = re.compile(r"v?\d+(?:\.\d+){0,3}(?:[-+.]?(?:rc|a|b|dev|post)?\d*)?")
#: A release as `torch.__version__` or `platform` says it.
RELEASE = re.compile(
    r"\d+(?:\.\d+){1,3}(?:(?:a|b|rc|dev|post)\d+)?(?:\+(?:cpu|cu\d+|rocm[\d.]+|xpu|git[0-9a-f]{6,40}))?|cuda|cpu|xpu|hip"
)
TYPE = re.compile(
    r"|(?:(?:unsigned|signed|long|short) ){0,3}(?:char|int|long|short|float|double|bool|half)"
    r"|(?:c10|at)::[\w:<>, ]+|__torch__\.torch\.classes\.[\w.]+"
    r"|(?:Optional)?(?:Scalar|Tensor|Generic|Int|Double|Float|Bool|String|Sym)(?:List|Tuple)?|OptionalTensorList"
    r"|(?:Sym)?(?:Int|Float|Bool)|Device|Generator|Stream|Layout|ScalarType|MemoryFormat|Tuple|Dict|Object|None|NoneType|str"
)
METRIC = re.compile(r"\w+__[\w.]+")

# -- arguments of events -----------------------------------------------------------------------------

NUMBERS = (
    "External id", "external id", "Record function id", "Ev Idx", "Sequence number", "Fwd thread id", "correlation",
    "correlation_id", "connection_id", "device", "stream", "stream_id", "context", "queued", "bytes", "size", "cbid", "cid",
    "src", "dst", "registers per thread", "shared memory", "blocks per SM", "warps per SM", "grid", "block",
    "est. achieved occupancy %", "memory bandwidth (GB/s)", "priority", "graph id", "graph node id",
    "wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id", "Op count", "Trace iteration",
    "Profiler Event Index", "finished", "Total Reserved", "Total Allocated", "Bytes", "Device Id", "Device Type", "Addr",
    "Python parent id", "Python id", "Python module id", "external ts", "num_warps", "num_stages", "flops", "Rank",
    "Group size", "In msg nelems", "Out msg nelems", "In split size", "Out split size", "Global rank start",
    "Global rank stride", "Process Group Ranks", "Src Rank", "Dst Rank", "Seq", "P2P Seq", "mem size", "seq_num", "sqid",
    "host_ctx", "column", "row", "packet_ptr", "k_work_ptr", "overhead cost", "overhead occupancy", "sort_index",
    "Context", "Stream", "Correlation", "Block Size", "Grid Size", "level zero id",
)  # fmt: skip
SHAPES = ("Input Dims", "Input Strides", "Output Dims", "input_dims")
TYPES = ("Input type", "Output type")
INPUTS = ("Concrete Inputs", "Kwargs", "kwinputs", "Scalar Inputs")
#: Texts -> what they name.
NAMES = {"Module Hierarchy": "module", "Process Group Name": "group", "Process Group Description": "group",
         "kernel_name": "kernel", "kernel": "kernel"}  # fmt: skip
WORDS = {
    "dtype": re.compile(
        r"|B?Float\d*(?:_e\dm\d\w{0,4})?|Half|Double|Long|Short|Char|Byte|Bool|U?Int\d*|Complex(?:Half|Float|Double)"
        r"|QU?Int\d+x?\d*|Undefined|torch\.\w+"
    ),
    "Collective name": re.compile(
        r"|_?(?:all_?reduce|all_?gather|reduce_?scatter|reduce|broadcast|barrier|send|recv|gather|scatter|all_?to_?all|"
        r"wait|init|destroy|allocate)(?:_(?:base|tensor|into|coalesced|async|single|sparse|v|out))*"
    ),
    "kind": re.compile(
        r"|[HDAP]to[HDAP]|Device|Host|Pageable|Pinned|Array|Managed|Unknown|Dispatch Kernel|CopyDeviceToHost|"
        rf"CopyHostToDevice|CopyDeviceToDevice|FillBuffer|{_NUMBER}"
    ),
    "cuda_sync_kind": re.compile(
        r"|(?:Stream|Event|Context|Device)(?: Wait)?(?: Event)? ?(?:Sync(?:hronize)?)?|Unknown"
    ),
    "direction": re.compile(r"|(?:HOST|DEVICE|PEER)_TO_(?:HOST|DEVICE|PEER)"),
    "kernel_hash": re.compile(r"|c[a-z2-7]{40,60}|[0-9a-f]{32,64}"),
    "kernel_backend": re.compile(r"|triton|cpp|cuda|cutlass|halide|pallas|rocm"),
    "kernel_kwargs": re.compile(r"|(?:[A-Z][A-Z0-9_]{0,30}=\d+)(?:\s*,\s*[A-Z][A-Z0-9_]{0,30}=\d+)*"),
    "Trace name": re.compile(r"|PyTorch Profiler"),
}

# -- lanes -------------------------------------------------------------------------------------------

METADATA = (
    "process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index",
)  # fmt: skip
LANE = re.compile(
    r"|-?\d+|(?:CPU|CUDA|HIP|XPU|PrivateUse1|privateuse1) functions|(?i:device|gpu|stream|thread) ?#?-?\d+|Spans|Traces|"
    r"PyTorch Profiler(?: \(\d+\))?|Overhead|Communication|Steps"
)
PROCESS = re.compile(
    r"|python(?:\d+(?:\.\d+)*)?|Python|pt_main_thread|CANN|Ascend Hardware|Communication|Overlap Analysis|AI Core Freq|NPU|"
    r"CPU|GPU(?: ?\d+)?|CPU functions|CUDA functions|/host:CPU|/device:(?:GPU|TPU|CUSTOM):\d+|Spans|Traces|PyTorch Profiler"
)
LABEL = re.compile(r"|CPU|(?:GPU|XPU|HPU|MTIA|NPU|TPU|PrivateUse1)(?: ?\d+)?(?:, ?(?:CPU|GPU|NPU)(?: ?\d+)?)*")
THREAD = re.compile(
    r"|python(?:\d+(?:\.\d+)*)?|pt_main_thread|pt_autograd_-?\d+|pt_data_pin|pt_data_worker(?:_\d+)?|pt_nccl_watchdg|"
    r"pt_nccl_heartbt|pt_tcpstore_\w{0,8}|MainThread|Thread-\d+|(?:cuda|nccl)[-_]?\w{0,4}thread|unknown|PyTorch Profiler|"
    r"(?i:stream) ?#?-?\d+ ?|Stream #\d+\((?:Compute|MemcpyH2D|MemcpyD2H|MemcpyD2D|MemcpyP2P|Memset|,)+\)|"
    r"XLA Ops|XLA Modules|XLA TraceMe|Framework Ops|Framework Name Scope|Steps|Source code|Launch Stats|"
    r"thread -?\d+|Overhead|\(?python\)?"
)
NUMBERED_THREAD = re.compile(r"thread (?P<number>-?\d+) \((?P<name>.*)\)", re.DOTALL)
JAX_STREAM = re.compile(r"Stream #\d+")
JAX_LANE = re.compile(r"/device:(?:GPU|TPU|CUSTOM):\d+|^/host:CPU")

# -- beside the events -------------------------------------------------------------------------------

HEADER_NUMBERS = (
    "schemaVersion", "baseTimeNanoseconds", "record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops",
    "with_memory", "cuda_runtime_version", "cuda_driver_version", "hip_runtime_version", "hip_driver_version",
)  # fmt: skip
HEADER_VERSION = re.compile(r"(?:cupti|roctracer|rocprofiler|nccl|cudnn|torch|pytorch|xpu|level_zero|mtia)_version")
IDS = ("trace_id", "group_trace_id", "traceName", "trace_name", "job_id", "run_id")
MARKERS: dict[str, Any] = {"viztracer_metadata": {}, "systemTraceEvents": ""}
DEVICE = (
    "id", "totalGlobalMem", "computeMajor", "computeMinor", "maxThreadsPerBlock", "maxThreadsPerMultiprocessor",
    "regsPerBlock", "regsPerMultiprocessor", "warpSize", "sharedMemPerBlock", "sharedMemPerMultiprocessor", "numSms",
    "sharedMemPerBlockOptin", "maxSharedMemoryPerMultiProcessor", "multiProcessorCount", "clockRate", "memoryClockRate",
    "memoryBusWidth", "l2CacheSize", "maxBlocksPerMultiprocessor", "waveFrontSize",
)  # fmt: skip
BACKEND = re.compile(
    r"(?:(?:cuda|cpu|xpu|hpu|mps|meta|npu|mtia|privateuseone):)?(?:nccl|gloo|mpi|ucc|hccl|xccl|ccl|fake|undefined|custom|rccl)"
    r"(?:,(?:cuda|cpu|xpu|hpu|mps|meta|npu|mtia|privateuseone):(?:nccl|gloo|mpi|ucc|hccl|xccl|ccl|fake|undefined|custom|rccl))*"
)
DISTRIBUTED_NUMBERS = ("rank", "world_size", "pg_count", "pg_size", "ranks", "group_rank", "local_rank")
STAMP = (
    "version", "rank", "world_size", "torch", "python", "system", "scenario", "flags", "cuda", "hip", "driver", "device", "device_count",
    "steps_before", "wait", "warmup", "active", "repeat", "whole", "cut_short", "unprofiled_step_us", "unprofiled_steps",
    "unprofiled_step_us_all", "unprofiled_wall_step_us", "profiled_step_us", "profiled_steps", "profiled_step_us_all",
)  # fmt: skip
