"""What a file is, before any judgement: header, producer, devices, counts, what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from msgspec import structs

from analyzer import units
from analyzer.events import select
from analyzer.events.schema import Cat, Trace
from analyzer.index.build import Chains, build
from analyzer.report.blocks import Block, Metric, Table, cells, metric
from analyzer.report.columns import Bytes, Count, Ns, Row, Share, Text, Unit, column
from analyzer.report.document import Headline, Kind, Report, Warnings
from analyzer.report.results import Result, Results

Recorded = Literal["recorded", "not recorded"]
#: What recording costs, where it was asked for.
_COSTS = {
    "Python_stacks": "inflates CPU times",
    "input_shapes": "inflates CPU times a little",
    "memory_instants": "inflates CPU times a little",
}
#: Flags that the profiler writes when it was asked for more. Old ones write none: then the events tell.
_FLAGS = {
    "Python_stacks": "with_stack",
    "input_shapes": "record_shapes",
    "memory_instants": "profile_memory",
    "module_hierarchy": "with_modules",
    "FLOP_estimates": "with_flops",
}
#: Of these the events tell whether they are there, in files of any age.
_SEEN = {"input_shapes", "memory_instants"}


class FileFacts(Row, frozen=True, kw_only=True, omit_defaults=True):
    """What a file says of itself."""

    path: Annotated[Text, column("", "the file, as it was named")]
    format: Annotated[Text, column("format", "json or json.gz")]
    text: Annotated[Bytes, column("text", "of the JSON, uncompressed")]
    producer: Annotated[Text, column("producer", "what wrote the file, as far as it can be told")]
    window_ns: Annotated[Ns | None, column("window", "the interval that figures speak of; null: no events")]
    steps: Annotated[Count, column("steps", "profiler steps")]
    first_step: Annotated[Text | None, column("", "its name; null: no profiler steps were marked")]
    last_step: Annotated[Text | None, column("", "its name; null: no profiler steps were marked")]
    rank: Annotated[Text | None, column("rank", "of a distributed run; null: not recorded")]
    world_size: Annotated[Text | None, column("world size", "of a distributed run; null: not recorded")]
    threads: Annotated[Count, column("threads", "with host events")]
    events: Annotated[Count, column("events", "of all phases")]
    complete_events: Annotated[Count, column("complete events", 'of phase "X"')]
    damaged_events: Annotated[Count, column("damaged events", "that could not be read")]
    device_events: Annotated[Count, column("", "kernels, copies and fills")]
    linked: Annotated[Share | None, column("linked", "device events whose launch call is known; null: no device work")]
    cuda_runtime_version: Annotated[Text | None, column("cuda_runtime_version", "as the header has it")] = None
    cuda_driver_version: Annotated[Text | None, column("cuda_driver_version", "as the header has it")] = None
    cupti_version: Annotated[Text | None, column("cupti_version", "as the header has it")] = None
    hip_runtime_version: Annotated[Text | None, column("hip_runtime_version", "as the header has it")] = None
    hip_driver_version: Annotated[Text | None, column("hip_driver_version", "as the header has it")] = None
    Python_stacks: Annotated[Recorded | None, column("Python stacks", "asked of the profiler: with_stack")]
    input_shapes: Annotated[Recorded | None, column("input shapes", "asked of the profiler: record_shapes")]
    memory_instants: Annotated[Recorded | None, column("memory instants", "asked of the profiler: profile_memory")]
    module_hierarchy: Annotated[Recorded | None, column("module hierarchy", "asked of the profiler: with_modules")]
    FLOP_estimates: Annotated[Recorded | None, column("FLOP estimates", "asked of the profiler: with_flops")]

    def notes(self) -> dict[str, str]:
        """Field -> what is said beside its figure."""
        named = f"{self.first_step} to {self.last_step}" if self.steps else "no profiler steps were marked"
        out = {"text": "uncompressed", "steps": named, "threads": "with host events"}
        if self.window_ns is None:
            out["window_ns"] = "no events"
        if self.linked is None:
            out["linked"] = "no device work"
        out |= {flag: "the header does not say" for flag in _FLAGS if getattr(self, flag) is None}
        return out | {flag: cost for flag, cost in _COSTS.items() if getattr(self, flag) == "recorded"}


class Info(Result, frozen=True, kw_only=True):
    SECTION = "info"
    TITLE = "What the file is"

    info: FileFacts

    def blocks(self) -> Iterator[Metric]:
        notes, versions = self.info.notes(), [name for name in self.info.__struct_fields__ if "_version" in name]
        for field in self.info.__struct_fields__:
            shown = metric(self.info, field, notes.get(field))
            if shown.title and not (field in versions and shown.value is None):
                yield shown


class Contents(Result, frozen=True, kw_only=True):
    SECTION = "events"
    TITLE = "Events"

    categories: Annotated[dict[str, Count], column("", "events that are read, by category, the most first")]

    def blocks(self) -> Iterator[Block]:
        yield Table(
            "Events that are read",
            (
                cells("category", Unit.TEXT, lambda row: row[0]),
                cells("events", Unit.COUNT, lambda row: row[1], bar=True),
            ),
            tuple(self.categories.items()),
        )


class DeviceProperties(Result, frozen=True, kw_only=True):
    devices: Annotated[tuple[dict[str, Any], ...], column("", "as the header describes them")]


def describe(trace: Trace) -> Report:
    """A report with no analysis in it."""
    chains = build(trace)
    header, window = trace.header, chains.window
    linked = int(chains.device.frame["launch"].is_not_null().sum())
    work = chains.device.frame.height
    steps = select.step_names(trace)
    flags = _recorded(trace, chains)
    facts = FileFacts(
        path=units.path_text(trace.path),
        format=trace.format,
        text=trace.bytes,
        producer=header.producer,
        window_ns=window.duration if window else None,
        steps=len(steps),
        first_step=steps[0] if steps else None,
        last_step=steps[-1] if steps else None,
        rank=_text(header.distributed.get("rank")),
        world_size=_text(header.distributed.get("world_size")),
        threads=int(chains.host.frame["thread"].n_unique()),
        events=trace.events,
        complete_events=trace.complete_events,
        damaged_events=trace.damaged_events,
        device_events=work,
        linked=linked / work if work else None,
        **flags,
    )
    versions = {field: _text(header.extra.get(field)) for field in facts.__struct_fields__ if "_version" in field}
    results = Results(
        [
            Info(info=structs.replace(facts, **versions)),
            Contents(categories=_counts(trace)),
            DeviceProperties(devices=tuple(dict(d) for d in header.devices)),
            Warnings(warnings=(*trace.warnings, *chains.warnings)),
        ]
    )
    return Report(FILE, results)


def _recorded(trace: Trace, chains: Chains) -> dict[str, Recorded | None]:
    """What was recorded beside times; None: the header does not say, and the events cannot show it."""
    frames = chains.frames
    seen = {
        "Python_stacks": frames.height > 0,
        "input_shapes": bool((chains.host.frame["inputs"] >= 0).any()),
        "memory_instants": trace.memory.height > 0,
        "module_hierarchy": bool(trace.names.gather(np.unique(frames.name)).str.starts_with("nn.Module: ").any()),
    }
    said, asked = trace.header.extra, trace.header.asked
    # A flag that was not asked for is left out, by a Kineto that knows flags.
    told = "displayTimeUnit" in said or any(flag in said for flag in _FLAGS.values())
    out: dict[str, Recorded | None] = {}
    for field, flag in _FLAGS.items():
        out[field] = "not recorded" if told or field in _SEEN or flag in asked else None
        if said.get(flag) or asked.get(flag) or seen.get(field):
            out[field] = "recorded"
    return out


def _headline(results: Results) -> Headline:
    facts = results[Info].info
    devices = sorted({str(d["name"]) for d in results[DeviceProperties].devices if d.get("name")})
    return Headline(
        source=(facts.path.replace("\\", "/").rpartition("/")[2], ", ".join(devices) or facts.producer),
        bound="info",
        reason=f"{units.plural(facts.events, 'event')}, {units.plural(facts.device_events, 'device event')}",
        path=facts.path,
    )


FILE = Kind("file", "Report of tracecli info", (Info, Contents, DeviceProperties, Warnings), _headline)


def _counts(trace: Trace) -> dict[str, int]:
    both = pl.concat([trace.host.select("cat"), trace.device.select("cat")])
    counts = both["cat"].value_counts().sort("count", descending=True)
    return {Cat(cat).name.lower(): count for cat, count in counts.iter_rows()}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
