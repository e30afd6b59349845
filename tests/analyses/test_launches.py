"""Launch latency and its three parts; links; host calls."""

from __future__ import annotations

from analyzer.analyses.launches import analyze
from analyzer.report.blocks import Metric
from tests.micro import call, kernel, launch, op, step


def medians(contract, events):
    found = contract(events)["launches"]
    return tuple(found[f"{part}_us_median"] for part in ("latency", "call", "queue_wait", "bare_latency"))


EARLIER = [launch("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 22, 1)]


def test_latency_is_the_call_then_the_queue_then_what_is_left(contract):
    """
    host      [L 15..20]
    stream    [a ....... 27]        [b 35..
    latency of b  35 - 15 = 20 = call 5 + queue 20..27 = 7 + bare 27..35 = 8
    latency of a   5 -  0 =  5 = call 2 + queue 0           + bare  2..5  = 3
    medians: 12.5, 3.5, 3.5, 5.5
    """
    micro = [*EARLIER, launch("cudaLaunchKernel", 15, 5, 2), kernel("b", 35, 5, 2)]
    assert medians(contract, micro) == (12.5, 3.5, 3.5, 5.5)


def test_work_on_another_stream_is_no_queue(contract):
    """As above with b on stream 8: queue 0, bare 20..35 = 15; medians of (5, 20), (2, 5), (0, 0), (3, 15)."""
    micro = [*EARLIER, launch("cudaLaunchKernel", 15, 5, 2), kernel("b", 35, 5, 2, stream=8)]
    assert medians(contract, micro) == (12.5, 3.5, 0, 9)


def test_a_kernel_that_starts_while_its_call_runs_has_no_bare_latency(contract):
    """Call [0, 10], start 4: latency 4, nothing left over."""
    assert medians(contract, [launch("cudaLaunchKernel", 0, 10, 1), kernel("a", 4, 5, 1)]) == (4, 10, 0, 0)


def test_a_full_queue_leaves_no_bare_latency(contract):
    """b starts where a ends, at 27: the wait from 20 to 27 is the queue's."""
    micro = [*EARLIER, launch("cudaLaunchKernel", 15, 5, 2), kernel("b", 27, 5, 2)]
    assert medians(contract, micro) == (8.5, 3.5, 3.5, 1.5)


def test_a_graph_launch_counts_once_to_its_first_kernel(contract):
    """Latency 20 to the first of three kernels; a plain launch with 5: two launches."""
    micro = [call("cudaGraphLaunch", 0, 4, corr=500), *(kernel("k", 20 + 15 * i, 10, 500) for i in range(3)),
             launch("cudaLaunchKernel", 60, 2, 501), kernel("k", 65, 10, 501)]  # fmt: skip
    found = contract(micro)
    assert (found["launches"]["count"], found["launches"]["latency_us_median"]) == (2, 12.5)
    assert found["launches"]["graph_launches"] == 1
    assert (found["links"]["linked"], found["links"]["launches"]) == (4, 2)


def test_clock_skew_is_left_out_of_the_statistics(contract):
    """Starts -3, +6 and +4 µs after calls of 9, 2 and 4 µs: latency (6 + 4) / 2 = 5, call (2 + 4) / 2 = 3."""
    micro = [op("start", 0, 1)]
    for corr, skew, dur in ((1, -3, 9), (2, 6, 2), (3, 4, 4)):
        micro += [launch("cudaLaunchKernel", 20 * corr, dur, corr), kernel("k", 20 * corr + skew, 5, corr)]
    found = contract(micro)
    assert found["links"]["clock_skewed"] == 1
    assert (found["launches"]["latency_us_median"], found["launches"]["call_us_median"]) == (5, 3)


def test_launches_per_step(contract):
    micro = [step(1, 0, 100), step(2, 100, 100)]
    for corr in (1, 2, 3):
        micro += [launch("cudaLaunchKernel", 50 * corr, 2, corr), kernel("k", 50 * corr + 10, 5, corr)]
    assert contract(micro)["launches"]["per_step"] == 1.5
    assert contract(micro[2:])["launches"]["per_step"] is None  # no steps: not known, not 0


def test_host_calls_are_counted_by_name_and_kind(contract):
    micro = [
        call("cudaOccupancyMaxActiveClusters", 0, 3), call("cudaOccupancyMaxActiveClusters", 10, 5),
        call("cudaMalloc", 20, 100), call("cudaEventRecord", 130, 1),
    ]  # fmt: skip
    rows = {c["name"]: (c["kind"], c["calls"], c["total_us"], c["median_us"], c["max_us"]) for c in
            contract(micro)["host_calls"]}  # fmt: skip
    assert rows == {
        "cudaMalloc": ("allocate", 1, 100, 100, 100),
        "cudaOccupancyMaxActiveClusters": ("occupancy", 2, 8, 4, 5),
        "cudaEventRecord": ("other", 1, 1, 1, 1),
    }


def test_without_linked_work_latency_is_not_available(contract):
    assert medians(contract, [kernel("k", 0, 5)]) == (None, None, None, None)


def test_without_linked_work_the_report_says_why_there_is_no_latency(chains):
    """A launch whose kernel was not recorded."""
    found = analyze(chains([launch("cudaLaunchKernel", 0, 5, 1), kernel("k", 20, 5, 2)]))
    notes = [block.note for block in found.blocks() if isinstance(block, Metric)]
    assert notes == [None, None, *3 * ["no device work is linked to a call"]]
