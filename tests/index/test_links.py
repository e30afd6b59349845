"""From device work to the call that launched it: by correlation, within a process."""

from __future__ import annotations

import json

import pytest

from analyzer import pipeline
from analyzer.sources.kineto.read import read
from tests.micro import call, kernel, launch, memcpy, memset, op


def links_of(chains):
    """Device work by start: name of the call that launched it, None if unlinked."""
    launches = chains.device.frame.sort("ts")["launch"].to_list()
    return [None if row is None else chains.trace.names[int(chains.host.name[row])] for row in launches]


@pytest.mark.parametrize(
    ("name", "cat"),
    [
        ("cudaLaunchKernel", "cuda_runtime"),
        ("cudaLaunchKernelExC", "cuda_runtime"),
        ("cuLaunchKernel", "cuda_driver"),
        ("cuLaunchKernelEx", "cuda_driver"),
        ("cudaLaunchCooperativeKernel", "cuda_runtime"),
        ("hipLaunchKernel", "cuda_runtime"),
        ("hipExtModuleLaunchKernel", "hip_driver"),
        ("urEnqueueKernelLaunch", "xpu_runtime"),
        ("runFunction", "mtia_runtime"),
        ("aCallOfTheFuture", "cuda_runtime"),
    ],
)
def test_a_correlation_links_whatever_the_call_is_named(chains, name, cat):
    assert links_of(chains([call(name, 0, 5, corr=3, cat=cat), kernel("k", 10, 5, 3)])) == [name]


def test_copies_and_fills_are_linked_like_kernels(chains):
    micro = [
        call("cudaMemcpyAsync", 0, 5, corr=1), memcpy("HtoD", 10, 5, 1),
        call("cudaMemsetAsync", 6, 3, corr=2), memset(20, 5, 2),
    ]  # fmt: skip
    assert links_of(chains(micro)) == ["cudaMemcpyAsync", "cudaMemsetAsync"]


def test_one_graph_launch_links_to_all_its_kernels(chains):
    built = chains([call("cudaGraphLaunch", 0, 5, corr=500), *(kernel("k", 10 * i, 5, 500) for i in (1, 2, 3))])
    assert links_of(built) == ["cudaGraphLaunch"] * 3
    # One launch, with its first work at 10 µs, and 3 × 5 µs of device time.
    assert built.device.launches.select("events", "work_start", "device_ns").rows() == [(3, 10_000, 15_000)]


def test_work_launched_before_recording_stays_unlinked_and_is_counted(contract):
    links = contract([launch("cudaLaunchKernel", 0, 5, 3), kernel("known", 10, 5, 3), kernel("before", 2, 5, 99)])
    assert (links["links"]["linked"], links["links"]["unlinked"]) == (1, 1)
    assert links["devices"][0]["busy_us"] == 10  # work all the same


def test_correlation_zero_means_none(chains):
    """A call and a kernel that both lack a correlation have nothing to do with each other."""
    assert links_of(chains([call("cudaStreamIsCapturing", 0, 5, corr=0), kernel("k", 10, 5, 0)])) == [None]


def test_a_kernel_before_its_call_is_linked_and_counted_as_clock_skew(contract):
    """Causality is no condition: the clocks of host and device disagree by 3 µs."""
    report = contract([op("x", 0, 20), launch("cudaLaunchKernel", 10, 5, 3), kernel("k", 7, 5, 3)])
    assert (report["links"]["linked"], report["links"]["clock_skewed"]) == (1, 1)
    assert report["launches"]["latency_us_median"] is None  # left out of the statistics, and no other is there


def test_the_runtime_call_wins_over_the_driver_call_inside_it(chains):
    """Both layers may carry the number: the outer call is the one that was made."""
    micro = [
        call("cuLaunchKernel", 2, 3, corr=3, cat="cuda_driver"),
        call("cudaLaunchKernel", 0, 8, corr=3),
        kernel("k", 10, 5, 3),
    ]
    assert links_of(chains(micro)) == ["cudaLaunchKernel"]


# -- several processes in one file ---------------------------------------------------------------------


def two_ranks(*, with_own_numbers: bool):
    """Processes 1 and 2 both use correlation 11 on devices 0 and 1."""
    micro = [
        call("cudaLaunchKernel", 0, 5, corr=11, pid=1), kernel("rank0", 10, 20, 11, device=0),
        call("cudaMemcpyAsync", 0, 5, corr=11, pid=2), kernel("rank1", 12, 30, 11, device=1),
    ]  # fmt: skip
    own = [
        call("cudaLaunchKernel", 6, 2, corr=101, pid=1), kernel("own0", 50, 5, 101, device=0),
        call("cudaLaunchKernel", 6, 2, corr=202, pid=2), kernel("own1", 60, 5, 202, device=1),
    ]  # fmt: skip
    return micro + own if with_own_numbers else micro


def test_a_number_used_by_two_processes_is_never_linked_crosswise(chains):
    """Each device's other work came from one process: its work belongs to that process."""
    built = chains(two_ranks(with_own_numbers=True))
    by_kernel = dict(zip(built.trace.text(built.device.frame["name"]), built.device.frame["launch"], strict=True))
    pid = {k: built.trace.threads["pid"][int(built.host.thread[row])] for k, row in by_kernel.items()}
    assert pid == {"rank0": "1", "own0": "1", "rank1": "2", "own1": "2"}
    (warning,) = [w for w in built.warnings if w.code == "correlation-collision"]
    assert warning.count == 1


def test_where_nothing_says_whose_it_is_the_work_stays_unlinked(chains):
    built = chains(two_ranks(with_own_numbers=False))
    assert links_of(built) == [None, None]
    assert built.device.links.ambiguous == 2
    assert "2 device events stay unlinked" in built.warnings[0].message


def test_a_device_that_worked_for_both_processes_settles_nothing(chains):
    """Device 0's other work came from processes 1 and 2: whose number 11 is, nobody knows."""
    micro = two_ranks(with_own_numbers=True)
    micro += [call("cudaLaunchKernel", 20, 2, corr=303, pid=2), kernel("shared", 80, 5, 303, device=0)]
    built = chains(micro)
    by_kernel = dict(zip(built.trace.text(built.device.frame["name"]), built.device.frame["launch"], strict=True))
    assert by_kernel["rank0"] is None
    assert by_kernel["rank1"] is not None


def test_one_kernel_is_one_row_however_many_calls_share_its_number(contract):
    report = contract(two_ranks(with_own_numbers=True))
    assert sum(d["kernel_sum_us"] for d in report["devices"]) == 20 + 30 + 5 + 5


def test_the_legacy_profilers_operators_launch_their_work_themselves(tmp_path):
    """No calls, no correlation: flow 0 leads from aten::mul on the host to its 30 µs on the device."""
    where = {"tid": 1, "pid": "CPU functions", "args": {}}
    device = {"tid": 0, "pid": "CUDA functions", "args": {}}
    flow = {"name": "aten::mul", "id": 0, "cat": "cpu_to_cuda"}
    path = tmp_path / "legacy.json"
    path.write_text(
        json.dumps(
            [
                {"name": "aten::mul", "ph": "X", "ts": 100, "dur": 40} | where,
                flow | {"ph": "s", "ts": 100} | where,
                flow | {"ph": "f", "ts": 150.5} | device,
                {"name": "aten::mul", "ph": "X", "ts": 150.5, "dur": 30} | device,
            ]
        )
    )
    contract = pipeline.run(read(str(path))).contract
    assert (contract["links"]["linked"], contract["links"]["unlinked"]) == (1, 0)
    assert [(o["name"], o["cpu_us"], o["device_us"]) for o in contract["operators"]] == [("aten::mul", 40.0, 30.0)]
