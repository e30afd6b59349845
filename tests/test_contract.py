"""The JSON report: every key with its type, n/a as null, no NaN, whatever the trace holds."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import pytest

from analyzer import pipeline
from analyzer.index.activity import Cause
from analyzer.index.vocabulary import Call
from analyzer.render import Options, render
from analyzer.report.findings import Severity
from analyzer.sources.kineto.read import read
from tests import micro
from tests.micro import (
    BUFFER,
    H100,
    call,
    chain,
    frame,
    kernel,
    launch,
    memcpy,
    memory,
    op,
    overhead,
    step,
)

REPORT = pipeline.run_kind().schema()
VALIDATOR = jsonschema.Draft202012Validator(REPORT)

#: The keys that were promised, spelled out: renaming one breaks whoever reads the report.
PROMISED: dict[str, Any] = {
    "schema_version": ..., "tool": {"name", "version"},
    "trace": {"path", "bytes", "format", "events", "complete_events", "damaged_events", "truncated",
              "truncated_at_byte", "producer", "devices", "steps", "rank", "world_size"},
    "warnings": ..., "window": {"start_us", "end_us", "duration_us"}, "verdict": {"bound", "reason", "parts"},
    "devices": [{"device", "span_us", "busy_us", "idle_us", "utilization", "events", "kernels", "kernel_sum_us",
                 "copy_only_us", "gaps", "max_gap_us", "compute_us", "communication_us", "exposed_communication_us"}],
    "links": {"linked", "unlinked", "clock_skewed", "launches"},
    "gaps": {"by_cause", "longest"},
    "launches": {"count", "per_step", "call_us_median", "latency_us_median", "queue_wait_us_median",
                 "bare_latency_us_median"},
    "operators": [{"name", "calls", "cpu_us", "self_cpu_us", "tax_us", "self_tax_us", "wait_us", "device_us",
                   "self_device_us", "device_events"}],
    "kernels": [{"name", "kind", "calls", "total_us", "mean_us", "median_us", "min_us", "max_us", "share", "grid",
                 "block", "occupancy_reported", "occupancy_theoretical", "limited_by", "tensor_cores"}],
    "chains": [{"path", "count", "host_calls", "launch", "device_work", "cpu_us_median", "device_us_median",
                "latency_us_median"}],
    "annotations": [{"name", "calls", "cpu_us_median", "device_us_median", "device_events_median", "launches_median",
                     "verdict"}],
    "steps": [{"name", "cpu_us", "device_busy_us", "device_events", "launches"}],
    "compile": {"regions", "recompilations", "graph_breaks"},
    "attention": [{"annotation", "backend", "calls", "device_us_median", "cpu_us_median", "device_events_per_call"}],
    "spikes": [{"device", "name", "start_us", "duration_us", "median_us", "ratio", "reason"}],
    "level_shifts": [{"device", "name", "start_us", "end_us", "count", "median_us", "baseline_us", "ratio"}],
    "memory": [{"device", "peak_allocated_bytes", "peak_reserved_bytes"}],
    "capture": ...,
    "findings": [{"name", "severity", "title", "evidence", "advice", "up_to_us", "share", "docs"}],
}  # fmt: skip


STAMP = {"torch": "2.9", "scenario": "demo", "unprofiled_step_us": 10.0, "profiled_step_us": 12.5}
TRACES: dict[str, tuple[list[micro.Event], dict[str, Any]]] = {
    "everything": (micro.everything(), {"tracecli_capture": STAMP, "distributedInfo": {"rank": 3, "world_size": 8}}),
    "level_shift": (micro.shifted(), {}),
    "empty": ([], {}),
    "cpu_only": ([op("aten::mm", 0, 30), op("aten::add", 40, 5)], {"devices": []}),
    "device_only": ([kernel("a", 0, 10), kernel("b", 30, 10)], {"devices": []}),
    "two_devices": (
        [*chain("aten::mm", 0, 1, 20, 10), launch("cudaLaunchKernel", 50, 2, 2), kernel("k", 60, 30, 2, device=1)],
        {"devices": [H100, {**H100, "id": 1}]},
    ),
    "without_length": ([op("a", 0, 0), kernel("k", 0, 0), memcpy("DtoD", 0, 0)], {}),
    "frames_only": ([frame("run.py(1): main", 0, 100)], {}),
    "overhead_only": ([overhead(BUFFER, 0, 10)], {}),
    "memory_only": ([memory(0, 512, 512, 1024)], {}),
    "graph_without_record": (
        [*chain("aten::mm", 0, 1, 20, 10), call("cudaGraphLaunch", 40, 5, corr=9), *chain("aten::mm", 60, 2, 90, 10)],
        {},
    ),
    "strange_header": (
        [*chain("aten::mm", 0, 1, 20, 10)],
        {
            "devices": [{"id": [0], "name": ["x"], "numSms": "many"}, {"id": 0, "name": 7}, {}, {"id": "0"}],
            "distributedInfo": {"rank": "three", "world_size": True},
            "tracecli_capture": {"inflation": "much", "nested": {"a": [1]}, "unprofiled_step_us": "x"},
        },
    ),
}  # fmt: skip


def contract_of(tmp_path, name):
    events, header = TRACES[name]
    return micro.report_of(tmp_path / "trace.json", events, **header).contract


def as_read(contract):
    """As whoever reads the JSON gets it; NaN and Infinity are refused."""

    def refuse(text):
        raise AssertionError(f"{text} is no JSON")

    return json.loads(json.dumps(contract, allow_nan=False), parse_constant=refuse)


def floats(value):
    if isinstance(value, dict):
        for v in value.values():
            yield from floats(v)
    elif isinstance(value, list | tuple):
        for v in value:
            yield from floats(v)
    elif isinstance(value, float):
        yield value


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(REPORT)


def test_the_schema_refuses_what_is_no_report(tmp_path):
    good = as_read(contract_of(tmp_path, "everything"))
    assert VALIDATOR.is_valid(good)
    assert not VALIDATOR.is_valid({})
    assert not VALIDATOR.is_valid({**good, "window": {"start_us": "0", "end_us": 1, "duration_us": 1}})
    assert not VALIDATOR.is_valid({**good, "verdict": {**good["verdict"], "bound": "slow"}})
    assert not VALIDATOR.is_valid({k: v for k, v in good.items() if k != "gaps"})


def enumerated(row, field):
    """The values that the schema allows for a field of a row."""
    return set(REPORT["$defs"][row]["properties"][field]["enum"])


def test_the_schema_knows_every_cause_and_kind_of_call():
    assert enumerated("CauseTotal", "cause") == {cause.key for cause in Cause}
    assert enumerated("HostCall", "kind") == {c.name.lower() for c in Call}
    assert set(REPORT["$defs"]["Severity"]["enum"]) == {s.value for s in Severity}


@pytest.mark.parametrize("name", TRACES)
def test_the_report_of_any_trace_fits_the_schema(tmp_path, name):
    contract = contract_of(tmp_path, name)
    VALIDATOR.validate(as_read(contract))
    assert all(math.isfinite(x) for x in floats(contract))


@pytest.mark.parametrize("name", TRACES)
def test_times_have_at_most_three_decimals(tmp_path, name):
    """Nanoseconds are what a trace can tell apart."""

    def times(value, key=""):
        if isinstance(value, dict):
            for k, v in value.items():
                yield from times(v, k)
        elif isinstance(value, list | tuple):
            for v in value:
                yield from times(v, key)
        elif isinstance(value, float) and (key == "us" or "_us" in key):
            yield key, value

    contract = {k: v for k, v in contract_of(tmp_path, name).items() if k != "capture"}
    assert [(k, x) for k, x in times(contract) if round(x, 3) != x] == []


@pytest.mark.parametrize("name", TRACES)
def test_the_rendered_report_is_the_contract(tmp_path, name):
    report = micro.report_of(tmp_path / "trace.json", TRACES[name][0], **TRACES[name][1])
    text = render(report, "json", Options())
    assert text.endswith(b"}\n")
    assert json.loads(text) == as_read(report.contract)


def test_every_key_that_is_promised_is_there(tmp_path):
    contract = {
        **contract_of(tmp_path, "everything"),
        "level_shifts": contract_of(tmp_path, "level_shift")["level_shifts"],
    }
    assert set(PROMISED) <= set(contract)
    for key, promised in PROMISED.items():
        if isinstance(promised, set):
            assert promised <= set(contract[key]), key
        elif isinstance(promised, list):
            assert contract[key], f"the trace of everything has no row of {key}"
            assert all(promised[0] <= set(row) for row in contract[key]), key
    assert {"device", "cause", "total_us", "count", "max_us"} <= set(contract["gaps"]["by_cause"][0])
    longest = contract["gaps"]["longest"][0]
    assert {"device", "start_us", "duration_us", "causes", "before", "after", "thread", "stack"} <= set(longest)
    region = contract["compile"]["regions"][0]
    assert {"name", "calls", "cpu_us_median", "guard_us_median", "overhead_us_median", "graph"} <= set(region)


@pytest.mark.parametrize("name", TRACES)
def test_the_schema_names_every_key_of_a_report(tmp_path, name):
    """A key that the schema does not know is a key that nobody documented."""

    def unknown(value, schema, at):
        options = [resolved(one) for one in schema.get("anyOf", [schema])]
        if isinstance(value, dict):
            declared = next((o for o in options if o.get("type") == "object"), {})
            if "properties" not in declared:
                return  # free in form
            for key, inner in value.items():
                if key not in declared["properties"]:
                    yield f"{at}/{key}"
                else:
                    yield from unknown(inner, declared["properties"][key], f"{at}/{key}")
        elif isinstance(value, list):
            items = next((o["items"] for o in options if isinstance(o.get("items"), dict)), {})
            for inner in value:
                yield from unknown(inner, items, at)

    def resolved(schema):
        return {**schema, **REPORT["$defs"].get(schema.get("$ref", "").rpartition("/")[2], {})}

    assert set(unknown(as_read(contract_of(tmp_path, name)), REPORT, "")) == set()


# -- what cannot be known is null ------------------------------------------------------------------------------


def test_an_empty_list_of_events_gives_a_report_that_says_so(tmp_path):
    contract = contract_of(tmp_path, "empty")
    assert contract["trace"]["events"] == 0
    assert contract["window"] == {"start_us": None, "end_us": None, "duration_us": None}
    assert contract["verdict"]["bound"] == "nothing-to-judge"
    assert "no-events" in [w["code"] for w in contract["warnings"]]
    assert contract["trust"]["linked_share"] is None


def test_a_cpu_only_trace_has_no_idle_time_and_no_latency(tmp_path):
    contract = contract_of(tmp_path, "cpu_only")
    assert contract["devices"] == []
    assert contract["gaps"] == {"by_cause": [], "longest": [], "edges": [], "by_length": []}
    assert contract["launches"]["latency_us_median"] is None
    assert contract["trust"]["idle_reliable"] is None
    assert contract["verdict"]["bound"] == "cpu-only"


def test_launches_without_a_device_record_make_idle_time_unreliable(tmp_path):
    contract = contract_of(tmp_path, "graph_without_record")
    assert contract["trust"]["idle_reliable"] is False
    assert "launches-without-work" in [w["code"] for w in contract["warnings"]]


def test_rank_and_world_size_are_integers_or_null(tmp_path):
    known, strange = contract_of(tmp_path, "everything")["trace"], contract_of(tmp_path, "strange_header")["trace"]
    assert (known["rank"], known["world_size"]) == (3, 8)
    assert (strange["rank"], strange["world_size"]) == (None, None)


def test_one_step_can_be_analysed_alone(report):
    """Step 2 launches 30 of 50 µs."""
    micro_trace = [
        step(1, 0, 100),
        *chain("aten::mm", 10, 1, 40, 20),
        step(2, 100, 100),
        *chain("aten::mm", 110, 2, 140, 30),
    ]
    contract = report(micro_trace, only_step="2").contract
    assert contract["devices"][0]["busy_us"] == 30
    assert [s["name"] for s in contract["steps"]] == ["ProfilerStep#2"]


def test_rows_of_tables_do_not_cut_the_contract(report):
    micro_trace = [op(f"op{i}", 10 * i, 5) for i in range(30)]
    found = report(micro_trace)
    assert len(found.contract["operators"]) == 30
    assert len(json.loads(render(found, "json", Options(top=3)))["operators"]) == 30


# -- the traces beside the checkout ---------------------------------------------------------------------------------

SMALL = 150_000  # bytes, packed: all of the kinds, in seconds


def small_traces(folder):
    return sorted(p for p in (folder / "traces").rglob("*.json.gz") if p.stat().st_size <= SMALL)


def test_reports_of_all_small_shared_traces_fit_the_schema(shared):
    traces = small_traces(shared)
    if not traces:
        pytest.skip("no traces beside the checkout")
    for path in traces:
        contract = pipeline.run(read(path, jobs=1)).contract
        problems = [f"{path.name}: {e.json_path}: {e.message}" for e in VALIDATOR.iter_errors(as_read(contract))]
        assert problems == []
        idle = {d["device"]: d["idle_us"] for d in contract["devices"]}
        for device, us in idle.items():
            causes = sum(c["total_us"] for c in contract["gaps"]["by_cause"] if c["device"] == device)
            assert causes == pytest.approx(us, abs=0.001), path.name
