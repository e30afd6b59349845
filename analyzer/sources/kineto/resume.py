"""Where reading goes on behind damage: the next event that can be read, or the end of the list."""

from __future__ import annotations

import re

import orjson

from analyzer.sources.kineto.framing import EVENT_START, Text, element_end
from analyzer.sources.kineto.repair import Broken, Incomplete, mend
from analyzer.sources.limits import MAX_SEARCH

#: Bytes from a list's closing bracket to the colon of the key behind it, at most.
_WIDEST_CLOSE = 256
#: What a parse in full counts for, in bytes looked at: it may fail deep down.
_COST_OF_PARSE = 4096
#: Keys that stand beside the event list at the top of real files.
_TOP_KEYS = (
    rb"traceName|displayTimeUnit|baseTimeNanoseconds|schemaVersion|deviceProperties|distributedInfo|INFO|ERROR"
    rb"|WARNING|metadata|otherData|systemTraceEvents|stackFrames|samples|traceEvents|record_shapes|with_stack"
    rb"|with_flops|with_modules|profile_memory|trace_id|viztracer_metadata|file_info|host_name"
    rb"|cuda_runtime_version|cuda_driver_version|cupti_version|roctracer_version|hip_runtime_version"
)
_LIST_CLOSE = re.compile(rb'\][ \t\r\n]*,[ \t\r\n]*"(?:' + _TOP_KEYS + rb')"[ \t\r\n]*:')
_FILE_CLOSE = re.compile(rb"\][ \t\r\n]*(?:\}[ \t\r\n]*)?\Z")


def next_event(text: Text, at: int, end: int, final: bool) -> tuple[int, bool] | None:
    """(position, is an event) of what goes on after damage: the next event that can be read, or the
    bracket that closes the list. None: nothing does, up to the end of the file. Raises Incomplete.
    """
    spent = 0
    searched = at
    for found in EVENT_START.finditer(text, at, end):
        start = found.start()
        # The closing bracket is looked for piece by piece, or every search would go to the end.
        close = _LIST_CLOSE.search(text, searched, min(end, start + _WIDEST_CLOSE))
        if close is not None and close.start() < start:
            return close.start(), False
        searched = start
        if spent > MAX_SEARCH:
            break
        looked = _looked_at(text, start, end, final)
        if looked < 0:
            return start, True
        spent += looked
    close = _LIST_CLOSE.search(text, searched, end)
    if close is not None:
        return close.start(), False
    if not final:
        raise Incomplete
    closing = _FILE_CLOSE.search(text, max(at, end - 4096), end)
    return (closing.start(), False) if closing is not None else None


def _looked_at(text: Text, at: int, end: int, final: bool) -> int:
    """-1 where an event can be read at `at`; else how many bytes it took to see that none can."""
    looked = 64
    try:
        mended = mend(text, at, end, final)
    except Broken as broken:
        looked += broken.at - at
        stop = element_end(text, at, end) if broken.nested else None
        if stop is None:
            return looked + (_COST_OF_PARSE if broken.nested else 0)
        piece = bytes(text[at:stop])
    else:
        piece = mended.text
        looked += mended.end - at
    try:
        value = orjson.loads(piece)
    except orjson.JSONDecodeError:
        return looked
    return -1 if type(value) is dict and "ph" in value else looked
