"""The table of engines: every row matches its example, and says what the name says."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analyzer.errors import TraceError
from analyzer.index import engines
from analyzer.index.engines import Engine, known

#: Name -> engine, phase, batch, tokens.
SAID = {
    "execute_context_1(512)_generation_7(7)": ("vLLM", "mixed", 8, 519),
    "execute_context_8(8192)_generation_0(0)": ("vLLM", "prefill", 8, 8192),
    "execute_context_0(0)_generation_8(8)": ("vLLM", "decode", 8, 8),
    "execute_context_0(0)_generation_0(0)": ("vLLM", "idle", 0, 0),
    "execute_context_1(888_788544)_generation_0(0)": ("vLLM", "prefill", 1, 888),
    "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk9sqsq32sqsk9)": ("vLLM", "decode", 32, 32),
    "execute_new_2_cached_0": ("vLLM", "prefill", 2, None),
    "step[EXTEND bs=1 toks=107]": ("SGLang", "prefill", 1, 107),
    "step[DECODE bs=32]": ("SGLang", "decode", 32, None),
    "step[MIXED bs=2 c=1 g=1]": ("SGLang", "mixed", 2, None),
    "step[TARGET_VERIFY bs=8]": ("SGLang", "verify", 8, None),
    "step[SOMETHING bs=8]": ("SGLang", "something", 8, None),
    "draft step[DECODE bs=8]": ("SGLang", "draft", 8, None),
    "prefill[bs=1]": ("ATOM", "prefill", None, None),
    "[Executor] _forward_step 71: 0 ctx reqs, 0 ctx tokens, 32 gen reqs": ("TensorRT-LLM", "decode", 32, None),
    "[Executor] _forward_step: 2 ctx reqs, 3 gen reqs": ("TensorRT-LLM", "mixed", 5, None),
    "[Executor] _forward_step: 4 mm reqs": ("TensorRT-LLM", "encoder", 4, None),
    "execute_context_menu": (None, None, None, None),
    "step 5": (None, None, None, None),
    "my_execute_context_1(1)_generation_0(0)": (None, None, None, None),
}


@pytest.mark.parametrize("name", SAID)
def test_an_annotation_says_its_phase_batch_and_tokens(name: str) -> None:
    assert known().said(pl.Series([name]), "annotation").row(0) == SAID[name]


@pytest.mark.parametrize("row", known().rows, ids=lambda row: row.example)
def test_every_row_matches_its_example(row: Engine) -> None:
    assert pl.Series([row.example]).str.contains(row.pattern).item()
    if row.inside is None:
        said = known().said(pl.Series([row.example]), "annotation" if row.annotation else "frame")
        assert said["engine"].item() == row.engine


@pytest.mark.parametrize(
    "frame",
    [
        "vllm/worker/model_runner.py(1654): execute_model",
        "/net/x/vllm/vllm/v1/worker/gpu_worker.py(900): execute_model",
        "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py(1500): run_batch",
        "tensorrt_llm/_torch/pyexecutor/py_executor.py(5): _forward_step",
    ],
)
def test_an_engines_frame_is_a_step(frame: str) -> None:
    assert known().said(pl.Series([frame]), "frame")["engine"].item() is not None


def test_a_users_row_comes_first(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        "[[engine]]\nengine = 'ours'\nannotation = '^step\\[(?P<mode>\\w+)'\n[modes]\nDECODE = 'next token'\n"
    )
    table = engines.load(str(mine))
    assert table.said(pl.Series(["step[DECODE bs=4]"]), "annotation").row(0) == ("ours", "next token", None, None)
    assert table.said(pl.Series(["execute_new_0_cached_1"]), "annotation")["engine"].item() == "vLLM"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[[engine]", "no table of engines"),
        ("[[engine]]\nengine = 'x'\n", "row 1"),
        ("[[engine]]\nengine = 'x'\nannotation = 'a'\nframe = 'b'\n", "row 1"),
        ("[[engine]]\nengine = 'x'\nannotation = '('\n", "row 1"),
        ("[[engine]]\nengine = 'x'\nannotation = 'a'\ncolour = 'b'\n", "row 1"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, text: str, what: str) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    with pytest.raises(TraceError, match=what):
        engines.load(str(mine))


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no table of engines"):
        engines.load(str(tmp_path / "absent.toml"))
