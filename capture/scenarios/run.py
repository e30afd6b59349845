"""Record one variant of a scenario: announce, build, run, write, check."""

import gc
import json
import platform
from pathlib import Path
from typing import Any

import torch

from capture import device as facts
from capture.recording import record
from capture.scenarios import check, manifest
from capture.scenarios.base import Expect, Scenario, Variant, synchronize
from capture.scrub import scrub_file, secrets_of_this_machine

_TABLE_ROWS = 40


def announce(scenario: Scenario, variant: Variant, values: dict[str, Any], expect: Expect) -> None:
    """Say before the run what the trace should show."""
    options = " ".join(f"{k}={v}" for k, v in values.items())
    print(f"\n=== {variant.file}: {scenario.name} {options}".rstrip())
    print(f"    {scenario.about}")
    print(f"    expect  {' or '.join(expect.verdict)}")
    for name, count in expect.device_events.items():
        print(f"            {count} device events in each {name}")
    for line in expect.text:
        print(f"            {line}")


def run(scenario: Scenario, variant: Variant, folder: Path) -> list[dict[str, Any]]:
    """Record it into `folder`. Returns what went into the manifest.

    Raises RuntimeError if nothing was recorded, ValueError for a wrong option, or what the scenario raises.
    """
    values = scenario.values(variant.values)
    expect = scenario.expect(values)
    announce(scenario, variant, values, expect)
    if scenario.gpus and not torch.cuda.is_available():
        print("    note    no GPU here: recorded on the CPU, the announced counts will not be there")
    ready: list[tuple[Any, Path]] = []
    recorder = record(
        folder / f"{variant.file}.json.gz",
        wait=variant.wait,
        warmup=variant.warmup,
        active=variant.active,
        whole=variant.whole,
        shapes=variant.shapes,
        stacks=variant.stacks,
        memory=variant.memory,
        modules=variant.modules,
        sync=variant.sync,
        gpu=scenario.gpus > 0,
        scenario=scenario.name,
        flags=values,
        on_ready=lambda profiler, path: ready.append((profiler, path)),
    )
    work = scenario.build(values)
    try:
        synchronize()
        steps = variant.active if variant.whole else recorder.config.schedule.steps
        with recorder:
            for number in range(steps):
                work.step(number)
                recorder.step()
        synchronize()
        if not ready:
            raise RuntimeError("; ".join(recorder.problems) or "nothing was recorded")
        return [_keep(scenario, variant, values, expect, profiler, path) for profiler, path in ready]
    finally:
        work.close()
        ready.clear()
        del work
        gc.collect()
        if facts.in_use():
            torch.cuda.empty_cache()


def _keep(
    scenario: Scenario, variant: Variant, values: dict[str, Any], expect: Expect, profiler: Any, path: Path
) -> dict[str, Any]:
    stem = path.name.removesuffix(".json.gz")
    averages = profiler.key_averages()
    used = "cuda" if any("CUDA" in str(row.device_type) for row in averages) else "cpu"
    order = "self_device_time_total" if used == "cuda" else "self_cpu_time_total"
    table = averages.table(sort_by=order, row_limit=_TABLE_ROWS, max_name_column_width=90)
    path.with_name(f"{stem}.txt").write_text(table + "\n")
    path.with_name(f"{stem}.oracle.json").write_text(json.dumps(oracle(averages)))
    scrub_file(path, secrets=secrets_of_this_machine())
    measured = check.measure(path)
    on_gpu = torch.cuda.is_available()
    differs = check.differences(measured, dict(expect.device_events)) if on_gpu else []
    entry = {
        "file": path.name,
        "oracle": f"{stem}.oracle.json",
        "table": f"{stem}.txt",
        "scenario": scenario.name,
        "flags": values,
        "recorded": {n: getattr(variant, n) for n in ("shapes", "stacks", "memory", "modules", "sync", "whole")},
        "schedule": {n: getattr(variant, n) for n in ("wait", "warmup", "active")},
        "why": variant.why,
        "expected": {
            "verdict": list(expect.verdict),
            "device_events": dict(expect.device_events),
            "text": list(expect.text),
        },
        "measured": measured,
        "differs": differs,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        **facts.describe(),
        **manifest.digest(path),
    }
    manifest.put(path.parent, "fixtures", stem, entry)
    busy = f", busy {measured['busy_share']:.1%}" if "busy_share" in measured else ""
    print(f"    got     {measured['steps']} steps, {measured['device_events']} device events{busy}")
    for name, count in measured["annotations"].items():
        print(f"            {count:g} device events in each {name}")
    for line in differs:
        print(f"    DIFFERS {line}")
    return entry


def oracle(averages: Any) -> dict[str, Any]:
    """What torch itself says of the recording, `key_averages()`; times in microseconds."""
    return {
        "torch": str(torch.__version__),
        "gpu": torch.cuda.get_device_name() if facts.in_use() else None,
        "rows": [
            {
                "key": row.key,
                "count": row.count,
                "device_type": str(row.device_type),
                "self_cpu_us": row.self_cpu_time_total,
                "cpu_us": row.cpu_time_total,
                "self_device_us": row.self_device_time_total,
                "device_us": row.device_time_total,
                "is_user_annotation": bool(getattr(row, "is_user_annotation", False)),
            }
            for row in averages
        ],
    }
