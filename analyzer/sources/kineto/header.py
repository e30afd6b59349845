"""What stands beside the events, as a `Header`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from analyzer.events.builder import NULL
from analyzer.events.schema import Header
from analyzer.sources.kineto.numbers import to_id

_TAKEN = ("baseTimeNanoseconds", "deviceProperties", "distributedInfo")
_MAX_DEPTH = 4


def make_header(values: Mapping[str, Any], hints: Collection[str] = ()) -> Header:
    """values: members of the top object. hints: what the events say of who wrote them (see `producer`)."""
    base = to_id(values.get("baseTimeNanoseconds"))
    devices = values.get("deviceProperties")
    distributed = values.get("distributedInfo")
    return Header(
        producer=producer(values, hints),
        base_time_ns=0 if base == NULL else base,
        devices=tuple(
            {k: v for k, v in device.items() if _is_scalar(v)}
            for device in (devices if isinstance(devices, list) else ())
            if isinstance(device, dict)
        ),
        distributed=distributed if isinstance(distributed, dict) else {},
        extra={k: v for k, v in values.items() if k not in _TAKEN},
    )


def producer(values: Mapping[str, Any], hints: Collection[str]) -> str:
    """Who wrote the file. hints: "legacy", "ascend", "jax", "hip", "xpu", "mtia", "cuda", as found among
    the events."""
    if "legacy" in hints:
        return "legacy autograd profiler"
    if "ascend" in hints:
        return "torch_npu (Ascend)"
    if "jax" in hints:
        return "XLA profiler (JAX)"
    if "viztracer_metadata" in values:
        return "viztracer"
    if "systemTraceEvents" in values:
        return "Perfetto trace processor export"
    for key, name in (
        ("roctracer_version", "ROCm"),
        ("hip_runtime_version", "ROCm"),
        ("cupti_version", "CUDA"),
    ):
        if key in values:
            return f"Kineto ({name})"
    for hint, name in (("xpu", "XPU"), ("mtia", "MTIA"), ("hip", "ROCm"), ("cuda", "CUDA")):
        if hint in hints and "schemaVersion" in values:
            return f"Kineto ({name})"
    if "schemaVersion" in values:
        return "Kineto"
    return "unknown"


def _is_scalar(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, str | int | float)
        or (isinstance(value, Sequence) and all(isinstance(v, str | int | float) for v in value))
    )
