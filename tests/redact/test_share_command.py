"""`tracecli share`, `tracecli export` and `tracecli schema` as a user runs them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from analyzer.events import export
from tests import micro

FIXTURES = Path(__file__).parents[2] / "fixtures"
RUN = FIXTURES / "decode_eager.json.gz"


def run(*arguments: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from analyzer.cli import main; main()", *map(str, arguments)],
        capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_a_step_is_shared_and_the_map_stays_with_its_owner(tmp_path: Path) -> None:
    events = [
        micro.step(1, 0, 100), micro.frame("/home/alice7/x.py(3): f", 5, 5), micro.op("aten::mm", 10, 5),
        micro.step(2, 100, 100), micro.op("aten::mm", 110, 5),
    ]  # fmt: skip
    path = micro.write(tmp_path / "in.json", events, host_name="node17", INFO=["a log"])
    target, mapping = tmp_path / "out.json.gz", tmp_path / "map.json"
    code, out, err = run("share", path, "-o", target, "--step", "1", "--map", mapping)
    assert (code, out) == (0, "")
    assert "3 of 5 kept" in err
    for kind in ("hosts", "paths", "header"):
        assert kind in err
    assert "alice7" not in err
    known = json.loads(mapping.read_text())
    assert list(known["hosts"].values()) == ["node17"]
    assert list(known["paths"].values()) == ["/home/alice7"]
    assert run("share", path, "-o", tmp_path / "again.json.gz", "--step", "1", "--same-as", mapping)[0] == 0
    assert (tmp_path / "again.json.gz").read_bytes() == target.read_bytes()
    assert run("share", path, "-o", tmp_path / "more.json.gz", "--same-as", path)[0] == 2
    if sys.platform != "win32":
        assert stat.S_IMODE(mapping.stat().st_mode) == 0o600
    assert run("share", path, "-o", target)[0] == 2
    assert run("share", path, "-o", tmp_path / "other.json", "--map", mapping)[0] == 2
    assert run("share", path, "-o", target, "--force")[0] == 0
    assert run("info", target)[0] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--step", "1", "--time", "0:1"], "one of"),
        (["--steps", "3"], "A:B"),
        (["--time", "a:b"], "FROM:TO"),
        (["--time", "1"], "FROM:TO"),
        (["--time", "nan:"], "no trace is that long"),
        (["--step", "99"], "the steps are"),
        (["--keep", "everything"], "hosts"),
        (["--annotation", "nothing"], "no annotation"),
        (["--annotation", "decode_token:9"], "it has 5"),
    ],
)
def test_mistakes_exit_with_2(options: list[str], said: str, tmp_path: Path) -> None:
    code, _, err = run("share", RUN, "-o", tmp_path / "out.json", *options)
    assert code == 2
    assert said in err
    assert list(tmp_path.iterdir()) == []


def test_events_are_exported_and_described(tmp_path: Path) -> None:
    target = tmp_path / "events.parquet"
    assert run("export", RUN, "-o", target)[0] == 0
    assert run("export", RUN, "-o", target)[0] == 2
    assert run("export", RUN, "-o", tmp_path / "events.xlsx")[0] == 2
    assert run("export", FIXTURES / "gone.json", "-o", tmp_path / "x.csv")[0] == 2
    code, out, _ = run("schema", "events")
    assert code == 0
    assert out == export.page("events")
