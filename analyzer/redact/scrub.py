"""Takes out of a trace what is not known to be public: event by event, key by key.

What a profiler writes is known key by key (`fields`): an argument or a header that nobody knows is left out, and
where only certain words are possible another is replaced. Names and texts keep what is public in them (`names`).
Numbers stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any

from analyzer.events.schema import CATEGORIES, Cat
from analyzer.redact import fields
from analyzer.redact.names import Names, Words
from analyzer.redact.words import known
from analyzer.sources.kineto.dialects import CODES, last_number

Event = dict[str, Any]

#: What is taken out, unless it is kept by name.
KINDS = {
    "names": "names of your own: annotations, modules, functions, files, kernels, groups; public ones stay",
    "hosts": "names and addresses of machines, URLs",
    "users": "names of users and accounts, values of settings",
    "paths": "folders; the part behind site-packages, and public names of source files, stay",
    "inputs": "values of operators' arguments (Concrete Inputs); shapes and types stay",
    "processes": "names of processes, threads and lanes, other than those of Python and the profiler",
    "ids": "ids and names of the trace and of the job",
    "header": "what else stands beside the events, logs included",
    "args": "arguments of events that no profiler is known to write, and words where others are expected",
}
_CACHE = 1 << 16
_PRODUCTS = re.compile(
    r"[A-Z]{1,3}\d{1,4}[A-Z]{0,2}|\d{1,4}GB|HBM\d?e?|SXM\d?|PCIe|NVL\d*|RTX|GTX|Ti|GPU|NVIDIA|AMD|Instinct|Radeon|GeForce|Tesla|Quadro|Intel|Arc|TPU|[a-z]"
)


class Scrubber:
    """Replaces what is not public in events and headers of one trace.

    keep     KINDS that stay as they are.
    known    words of an earlier run, to go on with.
    removed  kind -> how many times something was replaced or left out.
    """

    def __init__(self, *, keep: Collection[str] = (), known: Words | None = None) -> None:
        self.keep = frozenset(keep)
        self.words = known or Words()
        self.names = Names(self.words, self.keep)
        self.removed: Counter[str] = self.names.removed
        self._lane_names: dict[str, Any] = {}
        self._arguments: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(fields.NUMBERS, self._number),
            **dict.fromkeys(fields.SHAPES, self._shape),
            **dict.fromkeys(fields.TYPES, self._types),
            **dict.fromkeys(fields.INPUTS, self._inputs),
            **{key: self._texts(what) for key, what in fields.NAMES.items()},
            **{key: self._vocabulary(key, words) for key, words in fields.WORDS.items()},
            "kernel_file": self._file,
            "Call stack": self._stack,
        }

    def _drop(self, kind: str) -> None:
        self.removed[kind] += 1

    def _text(self, value: str) -> str:
        return self.names.clean("text", value)

    def _word(self, kind: str, prefix: str, value: str, words: re.Pattern[str], letters: bool = False) -> str:
        """A string where only certain words are expected."""
        if kind in self.keep:
            return self._text(value)
        return value if words.fullmatch(value) else self.names.replaced(kind, prefix, value, letters)

    # -- values of arguments ---------------------------------------------------------------------

    def _number(self, value: Any) -> Any:
        """Numbers, also as text and in lists; `_GONE` for anything else."""
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, str):
            return value if len(value) < 1 << 16 and fields.NUMERIC.fullmatch(value) else self._gone()
        if isinstance(value, list):
            return [v for v in map(self._number, value) if v is not _GONE]
        return self._gone()

    def _gone(self) -> Any:
        self._drop("args")
        return _GONE

    def _shape(self, value: Any) -> Any:
        """Nested lists of numbers. Text that is no number becomes empty, so that positions stay."""
        if isinstance(value, list):
            return [self._shape(v) for v in value]
        if isinstance(value, str) and value:
            kept = self._number(value)
            return "" if kept is _GONE else kept
        if value is None or isinstance(value, int | float | str):
            return value
        self._drop("args")
        return None

    def _types(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._types(v) for v in value]
        if isinstance(value, str):
            return self._word("args", "type", value, fields.TYPE)
        return value if value is None or isinstance(value, int | float) else None

    def _vocabulary(self, key: str, words: re.Pattern[str]) -> Callable[[Any], Any]:
        prefix = re.sub(r"[^a-z]+", "-", key.lower()).strip("-")

        def rule(value: Any) -> Any:
            return self._word("args", prefix, value, words) if isinstance(value, str) else self._number(value)

        return rule

    def _texts(self, what: str) -> Callable[[Any], Any]:
        def rule(value: Any) -> Any:
            return self.names.clean(what, value) if isinstance(value, str) else self._number(value)

        return rule

    def _file(self, value: Any) -> Any:
        return self.names.path(value) if isinstance(value, str) else self._gone()

    def _stack(self, value: Any) -> Any:
        if not isinstance(value, str):
            return self._gone()
        return ";".join(self.names.clean("frame", frame) for frame in value.split(";"))

    def _inputs(self, value: Any) -> Any:
        if "inputs" in self.keep:
            return self._anything(value)
        self._drop("inputs")
        return _GONE

    def _anything(self, value: Any) -> Any:
        """A value of unknown shape that is to stay, with what is identity in its text replaced."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._anything(v) for v in value]
        if isinstance(value, dict):
            return {self._text(k): self._anything(v) for k, v in value.items()}
        return value

    # -- events ----------------------------------------------------------------------------------

    def event(self, e: Any) -> Any:
        """An element of the list of events, scrubbed; None: it is left out."""
        if type(e) is not dict:
            if isinstance(e, str | list):
                self._drop("args")
                return None
            return e
        phase = e.get("ph")
        if "ph" in e and not (type(phase) is str and len(phase) == 1):
            self._drop("args")
            return None
        if phase == "M":
            return self._metadata(e)
        cat = e["cat"] if type(e.get("cat")) is str else None
        out: Event = {}
        for key, value in e.items():
            if key == "args":
                continue
            if key == "name":
                out[key] = self._event_name(cat, value)
            elif key == "pid" or key == "tid":
                out[key] = value if type(value) is int else self._lane(value)
            elif key == "ts" or key == "dur" or key == "tts" or key == "tdur":
                if type(value) in (int, float) or (type(value) is str and fields.TIME.fullmatch(value)):
                    out[key] = value
                elif value is not None:
                    self._drop("args")
            elif key == "ph":
                out[key] = value
            elif key == "cat":
                out[key] = value if type(value) is str and value in CODES else self._category(value)
            elif key == "id" or key == "bind_id":
                out[key] = self._ident(value)
            elif key in ("bp", "s", "flow_in", "flow_out"):
                if type(value) is bool or (type(value) is str and len(value) == 1):
                    out[key] = value
            elif "args" in self.keep:
                out[self._text(key)] = self._anything(value)
            else:
                self._drop("args")
        if "args" in e:
            args = e["args"]
            out["args"] = self._args(args, phase, cat) if type(args) is dict else None
        return out

    def _event_name(self, cat: str | None, name: Any) -> Any:
        if type(name) is not str:
            return name if name is None or isinstance(name, int | float) else None
        code = None if cat is None else CATEGORIES.get(cat)
        if code is None and (cat is None or cat in CODES) and cat not in ("gpu_user_annotation", "nvtx"):
            return self.names.clean("op", name)  # of flows, instants, and lanes that have no category
        return self.names.clean(_WHAT.get(code, "annotation"), name)

    def _category(self, cat: Any) -> Any:
        return self._text(cat) if type(cat) is str else None

    def _ident(self, value: Any) -> Any:
        if isinstance(value, str) and fields.NUMERIC.fullmatch(value) is None:
            return self.names.replaced("ids", "id", value)
        return value if isinstance(value, int | float | str) else None

    def _args(self, args: Event, phase: Any, cat: str | None) -> Event:
        out: Event = {}
        known = self._arguments
        for key, value in args.items():
            rule = known.get(key)
            if rule is not None:
                kept = rule(value)
                if kept is not _GONE:
                    out[key] = kept
            elif phase == "C" or (cat == "cuda_profiler_range" and fields.METRIC.fullmatch(key)):
                kept = self._number(value)
                if kept is not _GONE:
                    out[self._text(key)] = kept
            elif "args" in self.keep:
                out[self._text(key)] = self._anything(value)
            else:
                self._drop("args")
        return out

    def _lane(self, value: Any) -> Any:
        """A pid or tid that is text. Its last number stays: it is a device's or a stream's."""
        if not isinstance(value, str):
            return value if value is None or isinstance(value, float | bool) else None
        known = self._lane_names.get(value)
        if known is None:
            known = self._word("processes", "lane", value, fields.LANE, letters=True)
            if known != value and "processes" not in self.keep and (number := last_number(value)) is not None:
                known = f"{known} {number}"
            if len(self._lane_names) < _CACHE:
                self._lane_names[value] = known
        return known

    def _metadata(self, e: Event) -> Any:
        """Names and labels of processes and threads."""
        name, args = e.get("name"), e.get("args")
        if type(name) is not str or name not in fields.METADATA:
            self._drop("processes")
            return None
        out: Event = {"ph": "M", "name": name}
        for key in ("pid", "tid"):
            if key in e:
                out[key] = e[key] if type(e[key]) is int else self._lane(e[key])
        if isinstance(ts := e.get("ts"), int | float) or (isinstance(ts, str) and fields.TIME.fullmatch(ts)):
            out["ts"] = ts
        given = args if type(args) is dict else {}
        inner: Event = {}
        for key, value in given.items():
            if key == "sort_index":
                if (kept := self._number(value)) is not _GONE:
                    inner[key] = kept
            elif key in ("name", "labels") and isinstance(value, str):
                inner[key] = self._title(name, value)
            else:
                self._drop("args")
        out["args"] = inner
        return out

    def _title(self, what: str, value: str) -> str:
        if what == "thread_name":
            numbered = fields.NUMBERED_THREAD.fullmatch(value)
            if numbered is not None:
                inner = self._word("processes", "thread", numbered["name"], fields.THREAD, letters=True)
                return f"thread {numbered['number']} ({inner})"
            new = self._word("processes", "thread", value, fields.THREAD, letters=True)
            stream = fields.JAX_STREAM.match(value)
            return f"{stream[0]}({new})" if stream and new != value else new
        if what == "process_labels":
            return self._word("processes", "label", value, fields.LABEL, letters=True)
        new = self._word("processes", "process", value, fields.PROCESS, letters=True)
        lane = fields.JAX_LANE.search(value)
        if lane is None or new == value or "processes" in self.keep:
            return new
        # What a reader tells a device by stays, at the front if it was there.
        return f"{lane[0]} {new}" if lane.start() == 0 else f"{new}{lane[0]}"

    # -- beside the events -----------------------------------------------------------------------

    def header(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Members of the top object."""
        out: dict[str, Any] = {}
        for key, value in values.items():
            kind, kept = self._member(key, value)
            if kept is not _GONE:
                out[key if kind != "header" else self._text(key)] = kept
            elif kind in self.keep:
                out[self._text(key)] = self._anything(value)
            else:
                self._drop(kind)
        return out

    def _member(self, key: str, value: Any) -> tuple[str, Any]:
        """(kind that it falls under, what stays of it)."""
        if key in fields.HEADER_NUMBERS or fields.HEADER_VERSION.fullmatch(key):
            good = isinstance(value, int | float) or (isinstance(value, str) and fields.VERSION.fullmatch(value))
            return "args", value if good else _GONE
        if key == "displayTimeUnit":
            return "args", value if value in ("ms", "ns") else _GONE
        if key == "deviceProperties":
            return "args", [self._device(d) for d in value if isinstance(d, dict)] if isinstance(value, list) else _GONE
        if key == "distributedInfo":
            return "args", self._distributed(value) if isinstance(value, dict) else _GONE
        if key == "tracecli_capture":
            return "args", self._stamp(value) if isinstance(value, dict) else _GONE
        if key in fields.MARKERS:  # that they are there says who wrote the file
            return "args", fields.MARKERS[key]
        if key in ("host_name", "hostname", "username") and isinstance(value, str) and value:
            kind = "users" if key == "username" else "hosts"
            return kind, value if kind in self.keep else self.names.replaced(kind, kind.removesuffix("s"), value)
        return "ids" if key in fields.IDS or key.startswith("tw_") else "header", _GONE

    def _device(self, device: Event) -> Event:
        out: Event = {}
        for key, value in device.items():
            if key == "name" and isinstance(value, str):
                out[key] = self._product(value)
            elif key in fields.DEVICE and isinstance(value, int | float):
                out[key] = value
            else:
                self._drop("args")
        return out

    def _product(self, value: str) -> str:
        """The name of a device; a house's own is none."""
        pieces = re.findall(r"\w+", value)
        public = value.isascii() and all(known(piece) or _PRODUCTS.fullmatch(piece) for piece in pieces)
        return value if public else self.names.replaced("names", "device", value)

    def _distributed(self, value: Event) -> Event:
        out: Event = {}
        for key, inner in value.items():
            kept: Any = _GONE
            if key in fields.DISTRIBUTED_NUMBERS:
                kept = self._number(inner)
            elif key in ("backend", "backend_config") and isinstance(inner, str):
                kept = self._word("args", "backend", inner, fields.BACKEND)
            elif key in ("pg_name", "pg_desc") and isinstance(inner, str):
                kept = self.names.clean("group", inner)
            elif key == "pg_config" and isinstance(inner, list):
                kept = [self._distributed(group) for group in inner if isinstance(group, dict)]
            elif key == "nccl_version" and isinstance(inner, str) and fields.VERSION.fullmatch(inner):
                kept = inner
            if kept is _GONE:
                self._drop("hosts")
            else:
                out[key] = kept
        return out

    def _stamp(self, value: Event) -> Event:
        """What `capture` has written; its words are ours, or a scenario's flags."""
        out: Event = {}
        for key, inner in value.items():
            if key not in fields.STAMP:
                self._drop("header")
            elif key == "flags":
                flags = inner if isinstance(inner, dict) else {}
                out[key] = {self._text(k): self._flag(v) for k, v in flags.items()}
            elif key == "device" and isinstance(inner, str):
                out[key] = self._product(inner)
            else:
                out[key] = self._flag(inner)
        return out

    def _flag(self, value: Any) -> Any:
        if isinstance(value, str):
            return value if fields.RELEASE.fullmatch(value) else self._text(value)
        if isinstance(value, list):
            return [v for v in value if v is None or isinstance(v, int | float)]
        return value if value is None or isinstance(value, int | float) else None


#: What a name is of, by category.
_WHAT: dict[Cat | None, str] = {
    Cat.OP: "op", Cat.PYTHON: "frame", Cat.RUNTIME: "call", Cat.DRIVER: "call", Cat.OVERHEAD: "op",
    Cat.KERNEL: "kernel", Cat.MEMCPY: "kernel", Cat.MEMSET: "kernel",
}  # fmt: skip
#: Stands for a value that is left out.
_GONE: Any = object()
