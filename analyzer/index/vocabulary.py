"""What names mean: which host call waits, allocates or launches; which operator is what.

Every rule looks at the name alone and is applied once to each distinct name, never to each event.
Patterns, not lists: a driver version adds suffixes (`_v2`, `ExC`, `_ptsz`) and vendors add prefixes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl


class Call(IntEnum):
    """Class of a runtime or driver call."""

    OTHER = 0
    WAIT = 1  # the host waits for the device
    ALLOCATE = 2  # talks to the driver's memory manager, often with an implicit synchronize
    LOAD = 3  # module, library or function loading: a first use
    LAUNCH = 4  # of one kernel
    GRAPH = 5  # launch of a graph
    COPY = 6
    FILL = 7
    OCCUPANCY = 8  # asks how many blocks or clusters fit
    ATTRIBUTE = 9  # asks for or sets an attribute of a function, device or pointer
    BEGIN_CAPTURE = 10  # from here to END_CAPTURE launches are captured into a graph
    END_CAPTURE = 11
    INSTANTIATE = 12  # makes a graph that can be launched


class Role(IntEnum):
    """Class of an operator, annotation or Python frame. DISPATCH is a plain operator."""

    DISPATCH = 0
    REGION = 1  # a compiled region: `Torch-Compiled Region`, `CompiledFunction`
    REGION_PART = 2  # inside a region: the call of the generated code, its wrappers
    GUARDS = 3  # `TorchDynamo Cache Lookup`
    PROLOGUE = 4
    COMPILE = 5  # Dynamo, AOTAutograd or Inductor at work
    INPUT = 6  # loads, decodes or collates data
    COLLECTIVE = 7
    STEP = 8  # `ProfilerStep#N`


CALLS: tuple[tuple[str, Call], ...] = (
    (r"(?i)^(?:cuda|cu|hip|musa)(?:Device|Stream|Event|Ctx|Context)Synchronize", Call.WAIT),
    (
        r"(?i)^(?:zeEventHostSynchronize|zeCommandQueueSynchronize|zeFenceHostSynchronize|zeCommandListHostSynchronize|zeHostSynchronize|"
        r"urQueueFinish|urEventWait|piQueueFinish|piEventsWait|aclrtSynchronize\w*|synchronize(?:Stream|Event|Device)?$)",
        Call.WAIT,
    ),
    (r"(?i)^(?:cuda|cu|hip|musa)(?:GraphLaunch)", Call.GRAPH),
    (r"(?i)^(?:cuda|cu|hip|musa)StreamBeginCapture", Call.BEGIN_CAPTURE),
    (r"(?i)^(?:cuda|cu|hip|musa)StreamEndCapture", Call.END_CAPTURE),
    (r"(?i)^(?:cuda|cu|hip|musa)GraphInstantiate", Call.INSTANTIATE),
    (r"(?i)^(?:cuda|cu|hip|musa)(?:Ext)?(?:Module)?Launch(?:Kernel|Coop|Grid|ByPtr|$)", Call.LAUNCH),
    (
        r"(?i)^(?:zeCommandListAppendLaunch|urEnqueueKernelLaunch|piEnqueueKernelLaunch|runFunction)",
        Call.LAUNCH,
    ),
    (r"(?i)^(?:cuda|cu|hip|musa)(?:Module)?Occupancy", Call.OCCUPANCY),
    (
        r"(?i)^(?:cuda|hip|musa)(?:Malloc|Free|HostAlloc|HostRegister|HostUnregister|FreeHost|HostMalloc|HostFree|MemPool)",
        Call.ALLOCATE,
    ),
    (
        r"(?i)^cu(?:MemAlloc|MemFree|MemCreate|MemMap|MemUnmap|MemRelease|MemHost|MemAddress|MemSetAccess|MemPool)",
        Call.ALLOCATE,
    ),
    (r"(?i)^(?:urUSM|zeMem)(?:Alloc|Free|HostAlloc|DeviceAlloc|SharedAlloc)", Call.ALLOCATE),
    (r"(?i)^(?:cuda|cu|hip|musa)(?:Module|Library|Kernel)(?:Load|GetFunction|Unload|GetKernel)", Call.LOAD),
    (r"(?i)^(?:cuda|cu|hip)(?:GetFuncBySymbol|FuncLoad|Init$|LinkC)", Call.LOAD),
    (
        r"(?i)^(?:cuda|cu|hip|musa)Memcpy|^(?:urEnqueueUSMMemcpy|zeCommandListAppendMemoryCopy)|memcpy[HD]to[HD]Async",
        Call.COPY,
    ),
    (r"(?i)^(?:cuda|cu|hip|musa)Memset|^(?:urEnqueueUSMFill|zeCommandListAppendMemoryFill)", Call.FILL),
    (r"(?i)(?:Get|Set)(?:\w*)(?:Attribute|Attributes|Properties\w*|Priority\w*|Device)$", Call.ATTRIBUTE),
)

ROLES: tuple[tuple[str, Role], ...] = (
    (r"^ProfilerStep", Role.STEP),
    (r"^Torch-Compiled Region|^CompiledFunction(?:Backward)?$", Role.REGION),
    (r"^TorchDynamo Cache Lookup|^Dynamo Cache Lookup", Role.GUARDS),
    (r"Runtime Wrapper Prologue|^Pregraph bytecode", Role.PROLOGUE),
    (
        r"^## Call CompiledFxGraph|^CompiledFxGraph|^inductor::|^autograd::engine::evaluate_function: CompiledFunctionBackward",
        Role.REGION_PART,
    ),
    (
        r"\(dynamo_timed\)|compile_id=|^dynamo$|^compile_attempt_\d|^inductor_compile$|^_compile\.|^compile_fx|^entire_frame_compile|^backend_compile|^async_compile",
        Role.COMPILE,
    ),
    (
        r"(?i)enumerate\(DataLoader\)|dataloader|enumerate\(DataPipe|(?:^|[^a-z])pre_?process|"
        r"(?:^|[^a-z])(?:load|fetch|read|get|wait(?:_for)?|next|prepare)[_ ](?:next_)?(?:batch|data|inputs?|samples?)(?:$|[^a-z_])|"
        r"(?:^|[^a-z])(?:data|input|batch)[_ ]?(?:load\w*|fetch\w*|prep|pipeline|wait|iter)(?:$|[^a-z_])|"
        r"(?:^|[^a-z])(?:tokeni[sz](?:e|er|ation)|collate(?:_fn)?|(?:decode|resize|load|read)_(?:image|video|audio|frame)s?|image_processor|feature_extractor)(?:$|[^a-z_])|__getitem__",
        Role.INPUT,
    ),
    # The host itself waits in these; issuing a collective to a device's queue is dispatch.
    (
        r"^gloo:|^mpi:|^ucc:|^c10d::(?:monitored_)?barrier|wait_tensor$|^(?:c10d|torch\.distributed|dist)\S*(?:::|\.)(?:_?wait|Work\.wait)$|^Work\.wait$",
        Role.COLLECTIVE,
    ),
)

#: Python frames say where they are by file; the functions' names are the user's, and say what for by convention.
FRAMES: tuple[tuple[str, Role], ...] = (
    # Run-time wrappers around compiled code: nothing compiles here.
    (
        r"(?:^|/)torch/(?:_functorch/(?:aot_autograd\.py\(\d+\): (?:forward|backward|boxed_\w+)$|_aot_autograd/(?:runtime_wrappers|utils|functional_utils)\.py|utils\.py)|"
        r"_inductor/(?:output_code|utils|cudagraph_trees|cudagraph_utils|runtime/(?:static_\w+|runtime_utils))\.py|"
        r"_inductor/(?:codecache|compile_fx)\.py\(\d+\): (?:__call__|run|forward|\w+_run|inner)$|_inductor/runtime/triton_heuristics\.py\(\d+\): (?:run|launcher|get_profiler_kwargs|<genexpr>)$|"
        r"_dynamo/(?:eval_frame|guards|utils|external_utils|decorators)\.py)|/torchinductor_\w+/",
        Role.REGION_PART,
    ),
    (r"(?:^|/)torch/(?:nn|fx|distributed|_\w+|optim)/\S+: __getitem__$", Role.DISPATCH),
    # Of Triton's compiler, what every launch asks anew.
    (
        r"(?:^|/)triton/(?:backends/(?:\w+/)?compiler\.py\(\d+\): (?:is_within_2gb|get_\w*specialization|parse_attr|get_module_map)$|"
        r"compiler/compiler\.py\(\d+\): (?:launch_metadata|run|__getattribute__|_init_handles)$)",
        Role.DISPATCH,
    ),
    (
        r"(?:^|/)torch/utils/data/|(?:^|/)(?:torchvision|torchaudio)/(?:transforms|io|datasets)/|(?:^|/)(?:PIL|cv2|decord|av|librosa|albumentations|webdataset|datasets|tokenizers|tiktoken|sentencepiece|streaming)/|"
        r"(?:^|/)transformers/(?:\S*/)?(?:(?:image|video|audio)_(?:processing|transforms|utils)\w*|feature_extraction\w*|tokenization\w*|processing_\w+)\.py|"
        r"\.py\(\d+\): (?:__getitem__|__getitems__|collate(?:_fn)?|pre_?process\w*|tokeni[sz]e\w*|(?:load|decode|read|fetch|get|next|prepare)_(?:next_)?(?:image|video|audio|frame|sample|batch|inputs?)(?:s|es)?)$",
        Role.INPUT,
    ),
    (
        r"(?:^|/)torch/(?:_dynamo/(?:convert_frame|symbolic_convert|output_graph)|_inductor/(?:compile_fx|graph|scheduler|select_algorithm|"
        r"codecache|async_compile|codegen/|runtime/triton_heuristics\.py\(\d+\): (?:precompile|_precompile\w*|bench|benchmark_\w+|autotune_\w+|coordinate_descent\w*|make_launcher\w*))|"
        r"_functorch/(?:aot_autograd|_aot_autograd/(?:graph_compile|jit_compile_runtime|collect_metadata\w*|dispatch_and_compile\w*)))|"
        r"(?:^|/)triton/(?:compiler/|backends/\w+/compiler|testing\.py\(\d+\): do_bench|runtime/autotuner\.py\(\d+\): (?:_bench|benchmark|do_bench)|runtime/jit\.py\(\d+\): (?:_do_compile|compile))",
        Role.COMPILE,
    ),
    (r"(?:^|/)torch/distributed/\S+\.py\(\d+\): (?:wait|barrier|monitored_barrier)$|<built-in method wait of \S*Work", Role.COLLECTIVE),
)  # fmt: skip

#: The launch queue was full: CUPTI notes it, but the host waits and the profiler does nothing.
QUEUE_FULL = r"^Command Buffer Full$"
PROFILER_OVERHEAD = r"(?i)Activity Buffer|Buffer Flush|Instrumentation|Resource|Profiler"
PAGEABLE = r"(?i)pageable"
#: A copy to the host, as CUPTI, roctracer and others write it.
TO_HOST = r"(?i)DtoH|DeviceToHost|D2H|device -> (?:pageable|pinned|host)"
#: `cudaMemcpy`, `cudaMemcpy2D`, `cuMemcpyDtoH_v2`, `hipMemcpyWithStream`: no `Async` in the name.
SYNCHRONOUS_COPY = (
    r"^(?:cuda|cu|hip|musa)Memcpy(?:[23]D|[HDA]to[HDA]|ToSymbol|FromSymbol|WithStream|Peer)?(?:_v\d|_ptds)?$"
)
#: A call that makes one stream wait for another's event.
STREAM_WAIT = r"(?i)^(?:cuda|cu|hip|musa)StreamWait(?:Event|Value)"
#: Calls of the runtimes that have such a call.
HAS_STREAM_WAIT = r"^(?:cuda|cu|hip|musa)[A-Z]"
#: Functions that the autograd engine runs, each at the top of one of its threads.
ENGINE = r"^autograd::engine::"
#: Frames that wait for the autograd engine: what it does is done for whoever called them.
BACKWARD_FRAME = r"run_backward|torch/autograd/(?:__init__|graph)\.py\(\d+\): (?:backward|grad|_engine_run_backward)$|torch/_tensor\.py\(\d+\): backward$"


def classify(names: pl.Series, rules: tuple[tuple[str, int], ...]) -> npt.NDArray[np.int8]:
    """First rule that matches each name, as its number; 0 where none does. Shape: (names,)."""
    import polars as pl

    frame = pl.DataFrame({"name": names})
    expression = pl.lit(0, dtype=pl.Int8)
    for pattern, value in reversed(rules):
        expression = (
            pl.when(pl.col("name").str.contains(pattern)).then(pl.lit(int(value), dtype=pl.Int8)).otherwise(expression)
        )
    return frame.select(expression).to_series().to_numpy()


def matches(names: pl.Series, pattern: str) -> npt.NDArray[np.bool_]:
    """Which names match the pattern. Shape: (names,)."""
    return names.str.contains(pattern).to_numpy()
