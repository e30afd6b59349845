"""The JSON schema of the report: every key, its type, its unit. `tracecli schema` prints it."""

from __future__ import annotations

from typing import Any

from analyzer.model import SCHEMA_VERSION

Schema = dict[str, Any]

_BOUNDS = (
    "overhead-bound", "sync-bound", "input-bound", "copy-bound", "communication-bound", "compute-bound", "cpu-only",
    "mixed", "nothing-to-judge",
)  # fmt: skip
_CAUSES = (
    "unlinked", "not_recorded", "device_turnaround", "graph_internal", "dependency", "launch_latency",
    "blocking_sync", "pageable_copy", "allocator", "first_use", "compile", "input_pipeline", "collective", "profiler",
    "dispatch", "compiled_overhead", "python", "no_host_event",
)  # fmt: skip
_CALLS = ("other", "wait", "allocate", "load", "launch", "graph", "copy", "fill", "occupancy", "attribute")

_DEFINITIONS: dict[str, Schema] = {
    "us": {"type": "number", "minimum": 0, "description": "microseconds"},
    "us_or_na": {"type": ["number", "null"], "minimum": 0, "description": "microseconds; null: not available"},
    "instant": {"type": "number", "description": "microseconds from the first event of the trace"},
    "count": {"type": "integer", "minimum": 0},
    "count_or_na": {"type": ["integer", "null"], "minimum": 0, "description": "null: not available"},
    "integer": {"type": "integer"},
    "integer_or_na": {"type": ["integer", "null"], "description": "null: not available"},
    "number": {"type": "number"},
    "number_or_na": {"type": ["number", "null"], "minimum": 0, "description": "null: not available"},
    "share": {"type": "number", "minimum": 0, "maximum": 1, "description": "0 to 1"},
    "share_or_na": {
        "type": ["number", "null"], "minimum": 0, "maximum": 1, "description": "0 to 1; null: not available",
    },
    "text": {"type": "string"},
    "text_or_na": {"type": ["string", "null"]},
    "texts": {"type": "array", "items": {"type": "string"}},
    "boolean": {"type": "boolean"},
    "boolean_or_na": {"type": ["boolean", "null"]},
    "axes": {
        "type": ["array", "null"], "items": {"type": "integer"}, "minItems": 3, "maxItems": 3,
        "description": "x, y, z; null: not recorded",
    },
    "bound": {"enum": list(_BOUNDS)},
    "bound_or_na": {"enum": [*_BOUNDS, None]},
    "cause": {"enum": list(_CAUSES)},
}  # fmt: skip


def _is(kind: str, description: str | None = None) -> Schema:
    reference: Schema = {"$ref": f"#/$defs/{kind}"}
    return reference if description is None else {**reference, "description": description}


def _object(_what: str | None = None, *, _optional: tuple[str, ...] = (), **keys: Schema | str) -> Schema:
    """An object that has all of `keys` but the optional ones; a text stands for the definition of that name."""
    out: Schema = {"type": "object"} if _what is None else {"type": "object", "description": _what}
    out["properties"] = {key: _is(value) if isinstance(value, str) else value for key, value in keys.items()}
    out["required"] = [key for key in keys if key not in _optional]
    return out


def _list(_what: str | None = None, *, _optional: tuple[str, ...] = (), **keys: Schema | str) -> Schema:
    """A list of such objects."""
    return {"type": "array", "items": _object(_what, _optional=_optional, **keys)}


_ANNOTATIONS = _list(
    "all calls of one annotation; medians per call",
    name="text",
    calls="count",
    cpu_us_median="us",
    cpu_us_spread="us",
    cpu_us_max="us",
    tax_us_median="us",
    cpu_us="us",
    self_cpu_us="us",
    device_us_median="us",
    device_us_spread="us",
    device_us_max="us",
    device_events_median="number_or_na",
    kernels_median="number_or_na",
    copies_median="number_or_na",
    memsets_median="number_or_na",
    launches_median="number_or_na",
    verdict="bound_or_na",
    verdict_reason="text_or_na",
)
_DEVICES = _list(
    device="integer",
    name="text_or_na",
    span_us="us",
    busy_us=_is("us", "the union of all work"),
    idle_us="us",
    utilization="share_or_na",
    events="count",
    kernels="count",
    kernel_sum_us=_is("us", "the sum of durations, no union"),
    copy_only_us=_is("us", "busy without any kernel"),
    gaps="count",
    max_gap_us="us",
    compute_us="us",
    communication_us="us",
    exposed_communication_us=_is("us", "collectives that no compute overlaps"),
    lead_in_us="us",
    tail_out_us="us",
)
_GAPS = _object(
    "idle time inside the devices' spans",
    by_cause=_list(
        "adds up to each device's idle time",
        device="integer",
        cause="cause",
        total_us="us",
        count=_is("count", "gaps with some of it"),
        max_us="us",
        share=_is("share", "of the device's idle time"),
        owners=_list("operators, regions, annotations, frames or calls, the most first", name="text", total_us="us"),
    ),
    longest=_list(
        device="integer",
        start_us="instant",
        duration_us="us",
        causes=_list(cause="cause", us="us"),
        before="text_or_na",
        after="text",
        launch="text_or_na",
        thread="text_or_na",
        stack=_is("texts", "what the launching thread was inside of, outermost first"),
    ),
)
_OPERATORS = _list(
    "times of all calls, of a recursion the outermost",
    name="text",
    calls="count",
    cpu_us="us",
    self_cpu_us="us",
    tax_us=_is("us", "host time less blocking waits and the profiler's"),
    self_tax_us="us",
    self_tax_median_us="us",
    self_tax_spread_us="us",
    self_tax_max_us="us",
    wait_us="us",
    self_wait_us="us",
    profiler_us="us",
    device_us=_is("us", "launched inside, each kernel once"),
    self_device_us="us",
    device_events="count",
    tax_ratio="number_or_na",
)
_KERNELS = _list(
    "all device work of one name",
    name="text",
    kind="text",
    calls="count",
    total_us="us",
    mean_us="us",
    median_us="us",
    spread_us="us",
    min_us="us",
    max_us="us",
    share=_is("share", "of the sum of all durations"),
    launch_shapes="count",
    grid="axes",
    block="axes",
    registers_per_thread="integer_or_na",
    shared_memory_bytes="integer_or_na",
    occupancy_reported=_is("number_or_na", "the profiler's own estimate, 0 to 1"),
    occupancy_theoretical="share_or_na",
    limited_by="text_or_na",
    tensor_cores="boolean_or_na",
    precision="text_or_na",
    tile="text_or_na",
)
_COMPILE = _object(
    "torch.compile at run time",
    regions=_list(
        name="text",
        calls="count",
        cpu_us_median="us",
        guard_us_median="us_or_na",
        prologue_us_median="us",
        generated_us_median="us",
        operators_us_median="us",
        overhead_us_median="us",
        overhead_us="us",
        device_us_median="us",
        graph="text_or_na",
    ),
    recompilations="count_or_na",
    graph_breaks="count_or_na",
    guard_lookups="count",
    lookups_without_region="count",
    compile_time_us="us",
)

REPORT: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "tracecli report",
    "description": "What `tracecli analyze --format json` prints. Times in microseconds; null: not available. "
    "Within one schema_version keys may be added, never renamed.",
    **_object(
        schema_version={"const": SCHEMA_VERSION},
        tool=_object(name={"const": "tracecli"}, version="text"),
        trace=_object(
            "the file as it was read",
            path="text",
            bytes=_is("count", "of the uncompressed text"),
            format="text",
            events=_is("count", "elements of the event list"),
            complete_events="count",
            damaged_events=_is("count", "could not be recovered"),
            truncated="boolean",
            truncated_at_byte=_is("count_or_na", "of the uncompressed text; null: the file is whole"),
            producer="text",
            base_ns=_is("integer", "what to add to a time in ns to be absolute"),
            devices=_list(id="integer_or_na", name="text_or_na", sms="integer_or_na"),
            steps=_is("texts", "names of the profiler's steps, in time order"),
            rank="integer_or_na",
            world_size="integer_or_na",
        ),
        warnings=_list(
            "what was repaired, left out, or is not to be trusted",
            _optional=("byte", "count"),
            code="text",
            message="text",
            byte=_is("count", "of the uncompressed text"),
            count="count",
        ),
        window=_object(
            "the interval that the verdict speaks of; null: no events",
            start_us="number_or_na",
            end_us="number_or_na",
            duration_us="us_or_na",
        ),
        verdict=_object(
            "what bounds the run",
            bound="bound",
            reason="text",
            figures={
                "type": "object", "additionalProperties": _is("us"), "description": "the device's time by part",
            },
        ),
        trust=_object(
            linked_share="share_or_na",
            profiler_us="us",
            python_stacks="boolean",
            idle_reliable=_is("boolean_or_na", "false: launches lack a device record; null: no device work"),
        ),
        devices=_DEVICES,
        gaps=_GAPS,
        annotations=_ANNOTATIONS,
        steps=_list(
            name="text",
            cpu_us="us",
            device_busy_us=_is("us", "of the work that was launched in the step"),
            device_events="count",
            launches="count",
        ),
        links=_object(
            linked="count",
            unlinked="count",
            clock_skewed=_is("count", "start before their launch"),
            launches="count",
            ambiguous=_is("count", "unlinked, since several processes use their correlation id"),
        ),
        launches=_object(
            "medians; latency = call + queue wait + bare latency",
            count="count",
            per_step="number_or_na",
            graph_launches="count",
            call_us_median="us_or_na",
            latency_us_median="us_or_na",
            queue_wait_us_median="us_or_na",
            bare_latency_us_median="us_or_na",
            bare_latency_us_max="us_or_na",
        ),
        host_calls=_list(
            name="text", kind={"enum": list(_CALLS)}, calls="count", total_us="us", median_us="us", max_us="us"
        ),
        chains=_list(
            "device work with the same path of names",
            path="texts",
            count="count",
            host_calls=_is("texts", "before the launch, in order"),
            launch=_is("text_or_na", "null: not linked"),
            device_work="text",
            cpu_us_median="us_or_na",
            device_us_median="us",
            device_us_max="us",
            device_us_total="us",
            latency_us_median="us_or_na",
        ),
        operators=_OPERATORS,
        waits=_object(
            "blocking waits of the host",
            count="count",
            per_step="number_or_na",
            total_us="us",
            by_operator=_list(
                call="text",
                operator="text_or_na",
                path="texts",
                count="count",
                total_us="us",
                median_us="us",
                max_us="us",
            ),
        ),
        kernels=_KERNELS,
        copies=_list(
            "copies and fills of one kind",
            kind="text",
            count="count",
            total_us="us",
            median_us="us",
            max_us="us",
            bytes="integer_or_na",
            small="count",
            gb_per_s="number_or_na",
            operators=_list(name="text", count="count"),
        ),
        compile=_COMPILE,
        attention=_list(
            "calls of one backend inside one annotation",
            annotation="text_or_na",
            backend="text",
            calls="count",
            device_us_median="us",
            device_us="us",
            cpu_us_median="us",
            device_events_per_call="number_or_na",
            products_us="us",
            parts=_list(operator="text", device_us="us"),
        ),
        spikes=_list(
            device="integer",
            name="text",
            start_us="instant",
            duration_us="us",
            median_us="us",
            ratio="number",
            reason="text",
            call=_is("count", "of its group, from 0"),
        ),
        level_shifts=_list(
            device="integer",
            name="text",
            start_us="instant",
            end_us="instant",
            count="count",
            median_us="us",
            max_us="us",
            baseline_us="us",
            ratio="number",
            first_call="count",
            last_call="count",
        ),
        memory=_list(
            device={"anyOf": [{"type": "integer"}, {"const": "cpu"}]},
            peak_allocated_bytes="integer_or_na",
            peak_reserved_bytes="integer_or_na",
            net_change_bytes="integer",
            events="count",
        ),
        capture={
            "type": ["object", "null"],
            "description": "what the recorder stamped; null: not recorded by it",
            "properties": {"inflation": _is("number_or_na")},
            "required": ["inflation"],
        },
        findings=_list(
            name={"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
            severity={"enum": ["error", "warning", "note"]},
            title="text",
            evidence="texts",
            advice="text",
            up_to_us=_is("us_or_na", "time that would be gone at best"),
            share=_is("share_or_na", "of the window's device time"),
            docs="text",
        ),
    ),
    "$defs": _DEFINITIONS,
}  # fmt: skip
