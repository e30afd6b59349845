"""The file: where it came from, what it holds, how much of it could be read."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from analyzer import units
from analyzer.index.build import Chains
from analyzer.report.columns import Bytes, Count, Name, Row, Text, column
from analyzer.report.results import Result

#: Before all others: what the rest was measured in.
ORDER = -10


class TraceDevice(Row, frozen=True, kw_only=True):
    """A device as the file's header has it, whether it worked or not."""

    IDENTITY: ClassVar[str] = "id"

    id: Annotated[int, column("", "as device work refers to it")]
    name: Annotated[Name | None, column("", "null: not recorded")]
    sms: Annotated[int | None, column("", "multiprocessors; null: not recorded")]


class File(Row, frozen=True, kw_only=True):
    """A trace file."""

    path: Annotated[Text, column("", "as given")]
    bytes: Annotated[Bytes, column("", "of the uncompressed text")]
    format: Annotated[Text, column("", "json, json.gz, json array, ...")]
    events: Annotated[Count, column("", "elements of the event list, damaged ones not included")]
    complete_events: Annotated[Count, column("", "`X` events with a usable time and duration")]
    damaged_events: Annotated[Count, column("", "events that could not be recovered")]
    truncated: Annotated[bool, column("", "the text stops too early")]
    truncated_at_byte: Annotated[Count | None, column("", "where the text stops; null: it is whole")]
    producer: Annotated[Name, column("", "what wrote the trace, as far as it shows")]
    base_ns: Annotated[int, column("", "add it to a time of the report in ns to have the file's own clock")] = (
        msgspec.field(name="base_ns")
    )
    devices: tuple[TraceDevice, ...]
    steps: Annotated[tuple[str, ...], column("", "names of the profiler's steps, in time order")]
    rank: Annotated[int | None, column("", "of a distributed job; null: not recorded")]
    world_size: Annotated[int | None, column("", "ranks of the job; null: not recorded")]


class TraceFile(Result, frozen=True, kw_only=True):
    trace: File


def analyze(chains: Chains) -> TraceFile:
    trace = chains.trace
    distributed = trace.header.distributed
    return TraceFile(
        trace=File(
            path=units.path_text(trace.path),
            bytes=trace.bytes,
            format=trace.format,
            events=trace.events,
            complete_events=trace.complete_events,
            damaged_events=trace.damaged_events,
            truncated=trace.truncated,
            truncated_at_byte=trace.truncated_at_byte,
            producer=trace.header.producer,
            base_ns=trace.base_ns,
            devices=tuple(
                TraceDevice(id=i, name=chains.device.name_of(i), sms=_integer(properties.get("numSms")))
                for i, properties in chains.device.properties.items()
            ),
            steps=tuple(chains.trace.text(chains.host.frame["name"].gather(chains.host.steps))),
            rank=_integer(distributed.get("rank")),
            world_size=_integer(distributed.get("world_size")),
        )
    )


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
