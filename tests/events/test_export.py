"""The typed frames in files for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyzer.cli import options
from analyzer.errors import TraceError
from analyzer.events import export
from analyzer.events.schema import DEVICE_WORK, Cat
from analyzer.sources.kineto.read import read
from tests import micro
from tests.sources import micro as reader_micro
from tests.sources.compare import read_bytes

FIXTURES = Path(__file__).parents[2] / "fixtures"
#: With shapes, stacks and memory.
FULL = FIXTURES / "train_eager_full.json.gz"

FORMATS: dict[str, Any] = {
    ".parquet": pl.read_parquet,
    ".arrow": pl.read_ipc,
    ".ipc": pl.read_ipc,
    ".feather": pl.read_ipc,
    ".csv": pl.read_csv,
}


def schema_of(frame: str) -> dict[str, Any]:
    return {c.name: getattr(pl, c.dtype) for c in export.columns(frame)}


@pytest.mark.parametrize("frame", export.FRAMES)
@pytest.mark.parametrize("name", ["train_eager_full", "cpu_only", "copies_pinned"])
def test_frames_have_the_columns_that_the_table_says(frame: str, name: str) -> None:
    rows = export.lazy(read(FIXTURES / f"{name}.json.gz", jobs=1), frame).collect()
    assert dict(rows.schema) == schema_of(frame)


@pytest.mark.parametrize("frame", export.FRAMES)
def test_the_page_has_a_line_for_each_column(frame: str) -> None:
    lines = export.page(frame).splitlines()
    assert lines[0].startswith(f"{frame}: ")
    assert [line.split()[:2] for line in lines[2:]] == [[c.name, c.dtype] for c in export.columns(frame)]
    assert len({c.name for c in export.columns(frame)}) == len(export.columns(frame))


@pytest.mark.parametrize("suffix", export.SUFFIXES)
@pytest.mark.parametrize("frame", export.FRAMES)
def test_files_hold_what_the_frames_hold(suffix: str, frame: str, tmp_path: Path) -> None:
    trace = read(FULL, jobs=1)
    target = tmp_path / f"out{suffix}"
    export.write(trace, target, frame)
    options = {"schema_overrides": schema_of(frame)} if suffix == ".csv" else {}
    assert FORMATS[suffix](target, **options).equals(export.lazy(trace, frame).collect())
    assert [p.name for p in tmp_path.iterdir()] == [target.name]


def test_rows_are_the_traces_in_its_order() -> None:
    trace = read(FULL, jobs=1)
    events = export.lazy(trace).collect()
    assert events["ts_ns"].to_list() == [*trace.host["ts"], *trace.device["ts"]]
    assert events["dur_ns"].to_list() == [*trace.host["dur"], *trace.device["dur"]]
    names = trace.names.to_list()
    assert events["name"].to_list() == [names[i] for i in [*trace.host["name"], *trace.device["name"]]]
    assert events["shapes"].drop_nulls().len() == (trace.host["shapes"] >= 0).sum()
    memory = export.lazy(trace, "memory").collect()
    assert memory.rename({"ts_ns": "ts"}).equals(trace.memory)


def test_columns_mean_what_they_say(tmp_path: Path) -> None:
    events = [
        micro.op("aten::mm", 0, 30, shapes=[[2, 2]]),
        micro.launch("cudaLaunchKernel", 10, 5, 11),
        micro.kernel("gemm", 50, 20.5, 11, grid=[4, 2, 1], block=[128, 1, 1], registers=32),
        micro.memcpy("HtoD", 90, 1, size=64, stream=9),
        {"ph": "M", "name": "process_name", "pid": micro.HOST, "tid": 0, "args": {"name": "python3"}},
    ]
    trace = read(micro.write(tmp_path / "in.json", events), jobs=1)
    rows = export.lazy(trace).collect().to_dicts()
    assert [(r["side"], r["category"], r["name"]) for r in rows] == [
        ("host", "op", "aten::mm"), ("host", "runtime", "cudaLaunchKernel"), ("device", "kernel", "gemm"),
        ("device", "memcpy", "Memcpy HtoD"),
    ]  # fmt: skip
    op, launch, kernel, copy = rows
    assert (op["correlation"], op["process_name"], op["device"], op["pid"]) == (None, "python3", None, "100")
    assert op["shapes"] == '[[[2,2]],null]'  # fmt: skip
    assert (op["strides"], op["concrete"], op["seq"], op["collective"]) == (None, None, None, None)
    assert launch["correlation"] == kernel["correlation"] == 11
    assert (kernel["ts_ns"], kernel["dur_ns"], kernel["device"], kernel["stream"]) == (50_000, 20_500, 0, 7)
    assert (kernel["grid_x"], kernel["grid_y"], kernel["block_x"], kernel["registers"]) == (4, 2, 128, 32)
    assert (copy["bytes"], copy["stream"], copy["grid_x"], copy["correlation"]) == (64, 9, None, None)


def test_collectives_are_found_by_their_row() -> None:
    events = [
        reader_micro.op("record_param_comms", 0, 5, **reader_micro.collective(3)),
        reader_micro.kernel("ncclDevKernel_AllReduce", 9, 5, 1, **reader_micro.collective(4)),
        reader_micro.kernel("gemm", 20, 5, 2),
    ]
    trace = read_bytes(reader_micro.dump(events))
    rows = export.lazy(trace).select("name", "collective").collect()
    joined = rows.join(export.lazy(trace, "collectives").select("collective", "seq").collect(), on="collective")
    assert rows["collective"].to_list() == [0, 1, None]
    assert joined.select("name", "seq").rows() == [("record_param_comms", 3), ("ncclDevKernel_AllReduce", 4)]


def test_every_category_has_a_word() -> None:
    (category,) = (c for c in export.COLUMNS if c.name == "category")
    for cat in Cat:
        assert cat.name.lower() in category.meaning
    assert all(cat.name.lower() in category.meaning.partition(";")[2] for cat in DEVICE_WORK)


def test_a_target_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    trace = read(FIXTURES / "cpu_only.json.gz", jobs=1)
    for target in (tmp_path / "out.xlsx", tmp_path / "gone" / "out.parquet"):
        with pytest.raises(TraceError):
            export.write(trace, target)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_names_every_frame():
    assert tuple(export.FRAMES) == options.FRAMES
