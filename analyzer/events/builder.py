"""The one door to frames: events in, as rows or as whole columns, and a `Trace` out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analyzer.events.schema import (
    COLLECTIVES,
    CONFIGS,
    DEVICE,
    HOST,
    INPUTS,
    MEMORY,
    SHARED,
    THREADS,
    Cat,
    Header,
    Trace,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from analyzer.report.findings import Warning

    Ints = npt.NDArray[np.int64]

#: Stands for "not there, or no number" in columns of int64.
NULL = -(1 << 63)

#: What a column holds where nothing is said; a column that is not here has to be given.
_ABSENT: dict[str, int] = {
    "correlation": 0,
    "stream": -1,
    "inputs": -1,
    "config": -1,
    "collective": -1,
    "seq": NULL,
    "fwd_thread": NULL,
    "bytes": NULL,
    "allocated": NULL,
    "reserved": NULL,
}
_FRAMES: dict[str, Mapping[str, str]] = {
    "host": {column: kind for column, kind in HOST.items() if column != "shapes"},
    "device": DEVICE,
    "memory": MEMORY,
}


class EventsBuilder:
    """Collects events. Times are absolute ns, and become relative to the first event.

    names, threads, configs, inputs, collectives   what columns hold positions of, where columns are given:
        text, (pid, tid), and rows of CONFIGS, INPUTS and COLLECTIVES, each once. Rows of events add theirs.

    The order of the calls is that of the rows; tables are renumbered by first use.
    """

    def __init__(
        self,
        names: Iterable[str] = (),
        threads: Iterable[tuple[str, str]] = (),
        configs: Iterable[tuple[Any, ...]] = (),
        inputs: Iterable[tuple[Any, ...]] = (),
        collectives: Iterable[tuple[Any, ...]] = (),
    ) -> None:
        tables = {"name": names, "thread": threads, "config": configs, "inputs": inputs, "collective": collectives}
        self._tables: dict[str, list[Any]] = {key: list(rows) for key, rows in tables.items()}
        self._known: dict[str, dict[Any, int]] = {key: {} for key in tables}  # of rows of events
        self._lanes: dict[tuple[str, str, str], str] = {}
        self._rows: dict[str, list[dict[str, int]]] = {frame: [] for frame in _FRAMES}
        self._columns: dict[str, list[Mapping[str, npt.NDArray[Any]]]] = {frame: [] for frame in _FRAMES}

    # -- rows --------------------------------------------------------------------------------

    def host(
        self,
        cat: Cat,
        name: str,
        lane: tuple[str, str],
        ts: int,
        dur: int,
        *,
        correlation: int = 0,
        inputs: Sequence[str | None] | None = None,
        collective: Mapping[str, Any] | None = None,
        seq: int | None = None,
        fwd_thread: int | None = None,
    ) -> None:
        """An event of the host. lane: (pid, tid); inputs: a row of INPUTS; collective: of COLLECTIVES."""
        row = self._event(cat, name, lane, ts, dur, correlation, collective)
        row["inputs"] = -1 if inputs is None else self._position("inputs", tuple(inputs))
        row["seq"], row["fwd_thread"] = _or_null(seq), _or_null(fwd_thread)
        self._rows["host"].append(row)

    def device(
        self,
        cat: Cat,
        name: str,
        lane: tuple[str, str],
        ts: int,
        dur: int,
        *,
        device: int = 0,
        stream: int = -1,
        correlation: int = 0,
        config: Mapping[str, Any] | None = None,
        size: int | None = None,
        collective: Mapping[str, Any] | None = None,
    ) -> None:
        """Device work. config: a row of CONFIGS; size: bytes of a copy or memset."""
        row = self._event(cat, name, lane, ts, dur, correlation, collective)
        row |= {"device": device, "stream": stream, "bytes": _or_null(size)}
        row["config"] = -1 if config is None else self._position("config", tuple(map(config.get, CONFIGS)))
        self._rows["device"].append(row)

    def memory(
        self, ts: int, size: int, *, device_type: int, device_id: int, allocated: int | None, reserved: int | None
    ) -> None:
        """An instant of the allocator."""
        self._rows["memory"].append(
            {"ts": ts, "device_type": device_type, "device_id": device_id, "bytes": size,
             "allocated": _or_null(allocated), "reserved": _or_null(reserved)}
        )  # fmt: skip

    def _event(
        self, cat: Cat, name: str, lane: tuple[str, str], ts: int, dur: int, correlation: int, collective: Any
    ) -> dict[str, int]:
        return {
            "cat": int(cat),
            "name": self._position("name", name),
            "thread": self._position("thread", lane),
            "ts": ts,
            "dur": dur,
            "correlation": correlation,
            "collective": -1
            if collective is None
            else self._position("collective", tuple(map(collective.get, COLLECTIVES))),
        }

    def _position(self, table: str, value: Any) -> int:
        known, rows = self._known[table], self._tables[table]
        position = known.setdefault(value, len(rows))
        if position == len(rows):
            rows.append(value)
        return position

    # -- columns -----------------------------------------------------------------------------

    def columns(self, frame: str, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Rows of the frame host, device or memory as columns of its schema (without shapes), which this
        then owns. NULL stands for null."""
        self._columns[frame].append(columns)

    def lane(self, kind: str, pid: str, text: str, tid: str = "") -> None:
        """What a process or thread is called; kind: process_name, thread_name, process_labels."""
        self._lanes[kind, pid, tid] = text

    # -- a trace -----------------------------------------------------------------------------

    def build(
        self,
        *,
        path: str = "",
        size: int = 0,
        form: str = "json",
        events: int | None = None,
        complete_events: int | None = None,
        damaged_events: int = 0,
        truncated_at_byte: int | None = None,
        header: Header | None = None,
        warnings: Sequence[Warning] = (),
    ) -> Trace:
        """The trace; the builder is used up. See `Trace` for what is said of the file."""
        import polars as pl

        header = header or Header()
        host, device, memory = (self._whole(frame) for frame in _FRAMES)
        first = min((int(frame["ts"].min()) for frame in (host, device, memory) if frame["ts"].size), default=0)
        for frame in (host, device, memory):
            frame["ts"] -= first
        names = self._used("name", host, device)
        inputs = self._used("inputs", host)
        names += _shapes(host, inputs, len(names))
        collectives = self._used("collective", host, device)
        configs = self._used("config", device)
        threads = self._used("thread", host, device)
        rows = len(host["ts"]) + len(device["ts"])
        return Trace(
            path=path,
            bytes=size,
            format=form,
            events=rows + len(memory["ts"]) if events is None else events,
            complete_events=rows if complete_events is None else complete_events,
            damaged_events=damaged_events,
            truncated_at_byte=truncated_at_byte,
            base_ns=header.base_time_ns + first,
            header=header,
            names=pl.Series("names", names, dtype=pl.String),
            threads=pl.DataFrame(
                [
                    (pid, tid, self._lanes.get(("process_name", pid, "")), self._lanes.get(("thread_name", pid, tid)),
                     self._lanes.get(("process_labels", pid, "")))
                    for pid, tid in threads
                ],
                schema=_typed(THREADS),
                orient="row",
            ),
            configs=pl.DataFrame(configs, schema=_typed(CONFIGS), orient="row"),
            inputs=pl.DataFrame(inputs, schema=_typed(INPUTS), orient="row"),
            collectives=pl.DataFrame(collectives, schema=_typed(COLLECTIVES), orient="row"),
            host=_frame(host, HOST),
            device=_frame(device, DEVICE),
            memory=_frame(memory, MEMORY),
            warnings=tuple(warnings),
            window=_window(header, first),
        )  # fmt: skip

    def _whole(self, frame: str) -> dict[str, npt.NDArray[Any]]:
        """All columns of a frame, columns first; each its own."""
        import numpy as np

        parts, rows = self._columns.pop(frame), self._rows.pop(frame)
        out = {}
        for column, kind in _FRAMES[frame].items():
            dtype = kind.lower()
            pieces = [
                part[column] if column in part else np.full(len(part["ts"]), _ABSENT[column], dtype) for part in parts
            ]
            if rows:
                pieces.append(np.array([row[column] for row in rows], dtype))
            whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.empty(0, dtype)
            out[column] = whole.astype(dtype, copy=False)
        return out

    def _used(self, column: str, *frames: dict[str, npt.NDArray[Any]]) -> list[Any]:
        """The rows of a table that some frames hold positions of, in order of first use; renumbers them.

        In which order a table was filled may depend on timing; after this, nothing in a frame does.
        """
        import numpy as np

        values = self._tables.pop(column)
        order, new = _by_first_use(len(values), *(frame[column] for frame in frames))
        for frame in frames:
            old = frame[column]
            if old.size and values:
                frame[column] = np.where(old < 0, np.int32(-1), new[old])
        return [values[i] for i in order.tolist()]


def _or_null(value: int | None) -> int:
    return NULL if value is None else value


def _window(header: Header, first: int) -> tuple[int, int] | None:
    """What a shared part says that its figures speak of, counted from the first event."""
    shared = header.extra.get(SHARED)
    said = shared.get("window_ns") if isinstance(shared, dict) else None
    if not isinstance(said, list) or [type(ns) for ns in said] != [int, int] or not said[0] < said[1]:
        return None
    return said[0] - first, said[1] - first


def _shapes(host: dict[str, npt.NDArray[Any]], inputs: Sequence[tuple[Any, ...]], first: int) -> list[str]:
    """Gives the host its column `shapes`: dims and types are text like names, behind them from `first` on."""
    import numpy as np

    texts: dict[str, int] = {}
    rows = [texts.setdefault(f"[{dims or 'null'},{types or 'null'}]", first + len(texts)) for dims, types, *_ in inputs]
    host["shapes"] = np.array([*rows, -1], np.int32)[host["inputs"]]
    return list(texts)


def _by_first_use(size: int, *columns: npt.NDArray[np.int32]) -> tuple[Ints, npt.NDArray[np.int32]]:
    """Renumber positions in order of first use over the columns: (old positions in the new order,
    old position -> new one, with -1 for those never used)."""
    import numpy as np

    first = np.full(size, np.iinfo(np.int64).max)
    offset = sum(c.size for c in columns)
    for column in reversed(columns):
        offset -= column.size
        used = np.flatnonzero(column >= 0) if column.size and column.min() < 0 else np.arange(column.size)
        # Backwards, so that what is written last is the first use.
        first[column[used[::-1]]] = offset + used[::-1]
    order = np.argsort(first, kind="stable")
    order = order[: int((first != np.iinfo(np.int64).max).sum())]
    new = np.full(size, -1, np.int32)
    new[order] = np.arange(order.size, dtype=np.int32)
    return order, new


def _frame(columns: Mapping[str, npt.NDArray[Any]], schema: Mapping[str, str]) -> pl.DataFrame:
    import polars as pl

    data = {column: pl.Series(columns[column]) for column in schema}
    nullable = [column for column in schema if _ABSENT.get(column) == NULL]
    for column in nullable:
        data[column] = data[column].replace(NULL, None)
    return pl.DataFrame(data, schema=_typed(schema))


def _typed(schema: Mapping[str, str]) -> dict[str, Any]:
    import polars as pl

    return {column: getattr(pl, kind) for column, kind in schema.items()}
