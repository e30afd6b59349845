"""All recordings in one go, each safe from the failures of the others.

Recordings share worker processes, since a start of torch and CUDA takes longer than most of them; one that
hangs, crashes, or leaves the device broken costs its worker, and the next worker goes on behind it.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import torch

import capture
from capture.scenarios import catalogue, manifest
from capture.scenarios.base import Scenario, Variant
from capture.scenarios.run import run

# The longest is the first compilation of the language model, with some room.
SECONDS_EACH = 180.0

_DEVICE_BROKEN = 70

Item = tuple[Scenario, Variant]


def items(names: Sequence[str] | None = None, *, small: bool = False) -> list[Item]:
    """All variants of these scenarios, or of all; those that compile last, for they take longest."""
    known = catalogue()
    found = [
        (s, s.shrunk(v) if small else v) for s in known.values() for v in s.variants if names is None or s.name in names
    ]
    return sorted(found, key=lambda item: _compiles(*item))


def _compiles(scenario: Scenario, variant: Variant) -> bool:
    values = scenario.values(variant.values)
    return (
        values.get("compile", "none") != "none"
        or values.get("mode") == "compiled"
        or values.get("variant") == "flex"
        or scenario.name == "recompile"
    )


def record_all(folder: Path, work: Sequence[Item], seconds_each: float = SECONDS_EACH, *, small: bool = False) -> int:
    """Record them into `folder`. Returns how many failed."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    shared = [i for i in work if not i[1].fresh and i[0].gpus < 2]
    alone = [i for i in work if i[1].fresh and i[0].gpus < 2]
    ranks = [i for i in work if i[0].gpus >= 2]
    failed: dict[str, str] = {}
    _workers(folder, shared, seconds_each, small, failed)
    for item in alone:
        _workers(folder, [item], seconds_each, small, failed)
    for item in ranks:
        _ranks(folder, item, seconds_each, small, failed)
    for name, reason in failed.items():
        manifest.put(folder, "failed", name, reason)
    _summary(folder, failed, time.monotonic() - started)
    return len(failed)


def work_through(folder: Path, names: Sequence[str], status: Path, *, small: bool = False) -> int:
    """A worker's side: record the variants of these file names in order, and note each in `status`."""
    by_file = {v.file: (s, v) for s, v in items(small=small)}
    for name in names:
        scenario, variant = by_file[name]
        _note(status, name, "started")
        started = time.monotonic()
        try:
            run(scenario, variant, folder)
        except Exception as error:  # noqa: BLE001 - one scenario must not take the others with it
            traceback.print_exc()
            _note(status, name, "failed", f"{type(error).__name__}: {error}")
            if not _device_works():
                return _DEVICE_BROKEN
        else:
            _note(status, name, "done")
            print(f"    took    {time.monotonic() - started:.1f} s", flush=True)
    return 0


def _device_works() -> bool:
    if not torch.cuda.is_available():
        return True
    try:
        return bool(torch.ones(2, device="cuda").sum().item() == 2)
    except RuntimeError:
        return False


def _note(status: Path, name: str, state: str, reason: str = "") -> None:
    with open(status, "a") as file:
        file.write(json.dumps({"file": name, "state": state, "reason": reason}) + "\n")


def _environment() -> dict[str, str]:
    here = str(Path(capture.__file__).resolve().parent.parent)
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def _command(folder: Path, names: Sequence[str], status: Path, small: bool) -> list[str]:
    return [
        sys.executable,
        "-m",
        "capture.scenarios",
        "--worker",
        str(status),
        "--files",
        ",".join(names),
        "-o",
        str(folder),
        *(["--small"] if small else []),
    ]


def _workers(folder: Path, work: Sequence[Item], seconds_each: float, small: bool, failed: dict[str, str]) -> None:
    left = [v.file for _, v in work]
    while left:
        with tempfile.TemporaryDirectory() as scratch:
            status = Path(scratch) / "status"
            process = subprocess.Popen(_command(folder, left, status, small), env=_environment())
            reason = _wait(process, status, seconds_each)
            ended = _ended(status)
        for name, state in ended.items():
            if state["state"] == "failed":
                failed[name] = state["reason"]
            elif state["state"] == "started":
                failed[name] = reason or f"its process ended with {process.returncode}"
        if not ended:
            # Not even the first began: a second try would end no better.
            for name in left:
                failed[name] = reason or f"the worker ended with {process.returncode} before it began"
            return
        left = [name for name in left if name not in ended]


def _wait(process: "subprocess.Popen[bytes]", status: Path, seconds_each: float) -> str:
    """Wait until the worker ends; kill it if one recording takes too long, and say so."""
    seen, since = -1, time.monotonic()
    while process.poll() is None:
        lines = len(status.read_text().splitlines()) if status.exists() else 0
        if lines != seen:
            seen, since = lines, time.monotonic()
        elif time.monotonic() - since > seconds_each:
            process.kill()
            process.wait()
            return f"took more than {seconds_each:.0f} s"
        time.sleep(0.2)
    return ""


def _ended(status: Path) -> dict[str, dict[str, str]]:
    if not status.exists():
        return {}
    states = [json.loads(line) for line in status.read_text().splitlines()]
    return {state["file"]: state for state in states}


def _ranks(folder: Path, item: Item, seconds_each: float, small: bool, failed: dict[str, str]) -> None:
    """Two processes that know each other, as torchrun would start them."""
    scenario, variant = item
    if torch.cuda.device_count() < scenario.gpus and not small:
        print(f"\n=== {variant.file}: skipped, needs {scenario.gpus} GPUs")
        manifest.put(folder, "skipped", variant.file, f"needs {scenario.gpus} GPUs")
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as scratch:
        running = []
        for rank in range(scenario.gpus):
            status = Path(scratch) / f"status-{rank}"
            environment = {
                **_environment(),
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(scenario.gpus),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            process = subprocess.Popen(_command(folder, [variant.file], status, small), env=environment)
            running.append((process, status))
        for rank, (process, status) in enumerate(running):
            reason = _wait(process, status, seconds_each)
            state = _ended(status).get(variant.file, {"state": "missing", "reason": ""})
            if state["state"] != "done":
                failed[f"{variant.file}.rank-{rank}"] = state["reason"] or reason or f"ended with {process.returncode}"


def _summary(folder: Path, failed: dict[str, str], seconds: float) -> None:
    found = manifest.read(folder)
    differs = {n: e["differs"] for n, e in found["fixtures"].items() if e["differs"]}
    print(f"\n{len(found['fixtures'])} recordings, {found['total_bytes'] / 1e6:.2f} MB, in {seconds:.0f} s: {folder}")
    for name, lines in differs.items():
        print(f"  differs  {name}: {'; '.join(lines)}")
    for name, reason in found["skipped"].items():
        print(f"  skipped  {name}: {reason}")
    for name, reason in failed.items():
        print(f"  FAILED   {name}: {reason}")
