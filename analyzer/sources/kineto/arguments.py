"""What is kept of the `args` of events, as columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import compress
from typing import Any

from analyzer.events.builder import NULL
from analyzer.events.schema import Cat
from analyzer.sources.kineto import dialects
from analyzer.sources.kineto.packing import Interner, first_id, ids, interned, interned_configs, pack

_CALL_OR_DEVICE = bytes(int(c in (Cat.RUNTIME, Cat.DRIVER) or 16 <= c <= 18) for c in range(256))
_IS_DEVICE = bytes(int(16 <= c <= 18 or c == dialects.UNDECIDED) for c in range(256))
_IS_OP = bytes(int(c == Cat.OP) for c in range(256))
_HAS_CORRELATION = bytes(int(bool(_CALL_OR_DEVICE[c]) or c == dialects.UNDECIDED) for c in range(256))

CORRELATION_KEYS = ("correlation", "correlation_id", "connection_id")
_BYTES_KEYS = ("bytes", "size")
#: In the order of `schema.INPUTS`.
_INPUT_KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
#: In the order of `schema.COLLECTIVES`.
_COLLECTIVE_KEYS = (
    "Collective name",
    "Process Group Name",
    "Process Group Description",
    "Group size",
    "Process Group Ranks",
    "Global rank start",
    "Global rank stride",
    "Rank",
    "Src Rank",
    "Dst Rank",
    "Seq",
    "Comms Id",
    "Is asynchronized op",
    "dtype",
    "In msg nelems",
    "Out msg nelems",
    "In split size",
    "Out split size",
)
#: What operators carried before the header had flags -> the flag that asks for it.
_ASKED = {"Call stack": "with_stack", "Module Hierarchy": "with_modules"}


class Arguments:
    """Correlation of calls and device work; inputs and sequence of operators; collectives; device, stream, launch
    configuration and bytes of device work; and what of the profiler's flags the operators show.

    Text that was interned before is known to the reader by its position, so one lives as long as its process.
    """

    def __init__(self) -> None:
        self._inputs = Interner()
        self._collectives = Interner()
        self._configs = Interner()
        self._reset()

    def _reset(self) -> None:
        self._asked: dict[str, bool] = {}
        self._correlation = bytearray()
        self._input = bytearray()
        self._seq = bytearray()
        self._fwd_thread = bytearray()
        self._collective = bytearray()  # of operators
        self._work_collective = bytearray()
        self._device = bytearray()
        self._stream = bytearray()
        self._config = bytearray()
        self._bytes = bytearray()

    def add(self, codes: bytes, args: Sequence[Any]) -> None:
        """args: of events of these categories, whatever they are."""
        some = list(compress(args, codes.translate(_HAS_CORRELATION)))
        try:
            correlation = pack("q", [a["correlation"] for a in some])
        except (KeyError, TypeError, struct.error):
            correlation = pack("q", [first_id(a, CORRELATION_KEYS, 0) for a in some])
        ops = list(compress(args, codes.translate(_IS_OP)))
        if not {*map(type, ops)} <= {dict}:
            ops = [a if type(a) is dict else {} for a in ops]
        for key, flag in _ASKED.items():
            filled = {bool(a[key]) for a in ops if key in a}
            if filled:
                self._asked[flag] = self._asked.get(flag, False) or True in filled
        self._correlation += correlation
        self._input += interned(ops, _INPUT_KEYS, self._inputs)
        self._seq += ids(ops, "Sequence number")
        self._fwd_thread += ids(ops, "Fwd thread id")
        self._collective += interned(ops, _COLLECTIVE_KEYS, self._collectives)
        work = [a if type(a) is dict else {} for a in compress(args, codes.translate(_IS_DEVICE))]
        if not work:
            return
        self._work_collective += interned(work, _COLLECTIVE_KEYS, self._collectives)
        self._device += ids(work, "device")
        self._stream += ids(work, "stream")
        self._config += interned_configs(work, self._configs)
        self._bytes += pack("q", [first_id(a, _BYTES_KEYS, NULL) for a in work])

    def take(self) -> dict[str, Any]:
        """Everything since the last call, as plain values that `marshal` takes; starts afresh."""
        taken = {
            "asked": self._asked,
            "correlation": bytes(self._correlation),
            "input": bytes(self._input),
            "seq": bytes(self._seq),
            "fwd_thread": bytes(self._fwd_thread),
            "collective": bytes(self._collective),
            "work_collective": bytes(self._work_collective),
            "device": bytes(self._device),
            "stream": bytes(self._stream),
            "config": bytes(self._config),
            "bytes": bytes(self._bytes),
            "new_inputs": [text.decode() for text in self._inputs.fresh()],
            "new_collectives": [text.decode() for text in self._collectives.fresh()],
            "new_configs": [text.decode() for text in self._configs.fresh()],
        }
        self._reset()
        return taken
