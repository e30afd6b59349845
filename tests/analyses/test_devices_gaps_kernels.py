"""Devices by kind of work, the gaps of the report, and kernels by name."""

from __future__ import annotations

from analyzer.report.blocks import Note
from tests.micro import H100, annotation, frame, kernel, launch, memcpy, memset, on_device, op

# -- devices ---------------------------------------------------------------------------------------------------


def test_concurrent_streams_and_copies(contract):
    """
    stream 7   gemm 1000..1100, relu 1170..1180
    stream 20  all-reduce 1040..1140
    stream 22  copy 1140..1170
    union 180 = span; kernels alone 150, copy only 30; kernel sum 210; compute 110; communication 100,
    of which 1040..1100 is overlapped: exposed 40.
    """
    micro = [
        kernel("gemm", 1000, 100), kernel("ncclDevKernel_AllReduce", 1040, 100, stream=20),
        memcpy("HtoD", 1140, 30, stream=22), kernel("relu", 1170, 10),
    ]  # fmt: skip
    (device,) = contract(micro)["devices"]
    expected = {
        "span_us": 180, "busy_us": 180, "idle_us": 0, "utilization": 1, "events": 4, "kernels": 3,
        "kernel_sum_us": 210, "copy_only_us": 30, "gaps": 0, "max_gap_us": 0, "compute_us": 110,
        "communication_us": 100, "exposed_communication_us": 40, "name": "Test GPU 9.0",
    }  # fmt: skip
    assert {key: device[key] for key in expected} == expected


def test_annotations_and_synchronizations_on_the_device_are_no_work(contract):
    """Two kernels of 10 µs, 80 apart; a step's copy of 102 µs and a sync of 79 µs lie on the device's lanes."""
    micro = [
        annotation("ProfilerStep#5", 0, 120), kernel("a", 10, 10), kernel("b", 100, 10),
        on_device(annotation("ProfilerStep#5", 9, 102)), on_device(annotation("Stream Sync", 20, 79), "cuda_sync"),
    ]  # fmt: skip
    found = contract(micro)
    (device,) = found["devices"]
    assert (device["busy_us"], device["span_us"], device["idle_us"], device["gaps"]) == (20, 100, 80, 1)
    assert [s["name"] for s in found["steps"]] == ["ProfilerStep#5"]


def test_each_device_has_a_row_with_its_own_name(contract):
    found = contract(
        [kernel("a", 0, 10), kernel("b", 0, 30, device=1)], devices=[H100, {**H100, "id": 1, "name": "Other"}]
    )
    assert [(d["device"], d["name"], d["busy_us"]) for d in found["devices"]] == [
        (0, "Test GPU 9.0", 10),
        (1, "Other", 30),
    ]


def test_a_device_without_properties_has_no_name(contract):
    (device,) = contract([kernel("a", 0, 10)], devices=[])["devices"]
    assert device["name"] is None


def test_work_without_any_length_has_no_utilization(contract):
    """Span 0: a share of nothing is not known."""
    (device,) = contract([kernel("a", 5, 0), op("x", 0, 10)])["devices"]
    assert (device["span_us"], device["utilization"]) == (0, None)


def test_the_timeline_is_the_busy_share_of_equal_cells_of_the_window(contract):
    """A window of 240 µs in 240 cells; busy 10..12.5 by two streams, 2 µs of it by both: once each."""
    micro = [op("x", 0, 240), kernel("a", 10, 2.5), kernel("b", 10.5, 2, stream=8)]
    (line,) = contract(micro)["timeline"]
    assert (line["device"], line["start_us"], line["cell_us"], len(line["cells"])) == (0, 0, 1, 240)
    assert {i: share for i, share in enumerate(line["busy"]) if share} == {10: 1, 11: 1, 12: 0.5}
    assert (line["cells"][11], line["cells"][12]) == ({"compute": 1}, {"compute": 0.5, "unknown": 0.5})


def test_one_device_is_a_detail_beside_its_picture_and_several_are_not(report):
    def section(events):
        return next(s for s in report(events).sections if s.key == "devices")

    one, other = kernel("a", 0, 10), kernel("b", 0, 10, device=1)
    assert section([one]).detail
    assert not section([one, other]).detail


def test_without_device_work_the_section_says_so(report):
    (section,) = (s for s in report([op("x", 0, 10)]).sections if s.key == "devices")
    assert [type(block) for block in section.blocks] == [Note]
    assert not section.detail


# -- gaps --------------------------------------------------------------------------------------------------------


def two_gaps():
    """
    gaps [10, 100] and [110, 114]. The first: aten::mm until L returned at 95, latency 5.
    The second was launched in time: turnaround 4.
    """
    return [
        annotation("forward", 0, 98), frame("model.py(3): forward", 0, 98),
        launch("cudaLaunchKernel", 0, 2, 1), kernel("a", 5, 5, 1),
        op("aten::mm", 10, 87), launch("cudaLaunchKernel", 90, 5, 2), kernel("b", 100, 10, 2),
        launch("cudaLaunchKernel", 96, 1, 3), kernel("c", 114, 10, 3),
    ]  # fmt: skip


def test_causes_are_totals_with_count_and_longest(contract):
    rows = {c["cause"]: c for c in contract(two_gaps())["gaps"]["by_cause"]}
    assert {cause: (c["total_us"], c["count"], c["max_us"]) for cause, c in rows.items()} == {
        "dispatch": (85, 2, 85), "launch_latency": (5, 2, 5), "device_turnaround": (4, 1, 4),
    }  # fmt: skip
    # Before the first work the call [0, 2], and until 5 its latency: at the edge of the window, and of no gap.
    assert {cause: (c["edge_us"], c["outside_us"]) for cause, c in rows.items()} == {
        "dispatch": (2, 0), "launch_latency": (3, 0), "device_turnaround": (0, 0),
    }  # fmt: skip
    assert rows["dispatch"]["owners"] == [
        {"name": "aten::mm", "total_us": 85}, {"name": "cudaLaunchKernel", "total_us": 2},
    ]  # fmt: skip
    assert rows["dispatch"]["share"] == 85 / 94


def test_causes_of_a_device_add_up_to_its_idle_time(contract):
    found = contract(two_gaps())
    assert sum(c["total_us"] for c in found["gaps"]["by_cause"]) == found["devices"][0]["idle_us"] == 94


def test_the_longest_gaps_say_what_ran_before_and_after_and_what_the_host_was_in(contract):
    """Half of [10, 95] lies in the frame, the annotation and the operator: all three, outermost first."""
    first, second = contract(two_gaps())["gaps"]["longest"]
    assert (first["start_us"], first["duration_us"], first["before"], first["after"]) == (10, 90, "a", "b")
    assert (first["launch"], first["thread"]) == ("cudaLaunchKernel", "thread 1")
    assert first["stack"] == ["model.py(3): forward", "forward", "aten::mm"]
    assert first["causes"] == [{"cause": "dispatch", "us": 85}, {"cause": "launch_latency", "us": 5}]
    assert (second["duration_us"], second["stack"]) == (4, [])


def test_what_came_and_went_is_not_in_the_stack(contract):
    """aten::view [50, 55] covers the middle of the gap, but 5 of 85 µs."""
    first = contract([*two_gaps(), op("aten::view", 50, 5)])["gaps"]["longest"][0]
    assert "aten::view" not in first["stack"]


def test_a_gap_before_unlinked_work_has_no_thread(contract):
    (gap,) = contract([kernel("a", 0, 10), kernel("b", 30, 10)])["gaps"]["longest"]
    assert (gap["launch"], gap["thread"], gap["stack"]) == (None, None, [])


def test_a_thread_is_named_where_the_trace_names_it(contract):
    name = {"ph": "M", "name": "thread_name", "pid": 100, "tid": 1, "ts": 0, "args": {"name": "main thread"}}
    assert contract([*two_gaps(), name])["gaps"]["longest"][0]["thread"] == "main thread"


def test_gaps_by_length_are_all_of_them(contract):
    """10..100 is of tens of µs, 110..114 is short; 124..2124 is long: 2000 of 2094 µs idle."""
    found = contract([*two_gaps(), kernel("d", 2124, 10)])
    rows = [tuple(row.values()) for row in found["gaps"]["by_length"]]
    assert rows == [
        ("over 1 ms", 1, 2000, 2000 / 2094, 2000, 2000),
        ("10 µs – 1 ms", 1, 90, 90 / 2094, 90, 90),
        ("under 10 µs", 1, 4, 4 / 2094, 4, 4),
    ]
    assert sum(row[1] for row in rows) == found["devices"][0]["gaps"]


def shown(report, events, title):
    (section,) = (s for s in report(events).sections if s.key == "gaps")
    return next(block for block in section.blocks if block.title == title).shown(10)


def test_the_cause_of_most_of_a_gap_is_shown_with_its_share(report):
    """85 of 90 µs; the lead-in [0, 5] is 2 of dispatch and 3 of latency; the short gap has one cause alone."""
    rows = shown(report, two_gaps(), "Longest gaps")
    assert [row[2] for row in rows] == ["dispatch 94.4%", "launch latency 60%", "device turnaround"]


def test_causes_of_several_devices_say_which_and_share_the_idle_time_of_all(report):
    """Unlinked: 30 µs on device 0; on device 1 10, and 20 from its last work to the window's end."""
    micro = [kernel("a", 0, 10), kernel("b", 40, 10), kernel("a", 0, 10, device=1), kernel("b", 20, 10, device=1)]
    rows = shown(report, micro, "Idle time by cause")
    assert [row[:3] for row in rows] == [("unlinked (GPU 0)", 30_000, 0.5), ("unlinked (GPU 1)", 30_000, 0.5)]


def test_the_longest_gaps_that_are_shown_do_not_pass_for_all(report):
    """Seven gaps: all in the report, five in the table, which does not count the rest as if they were all."""
    micro = [kernel("k", 100 * i, 10) for i in range(8)]
    assert len(report(micro).contract["gaps"]["longest"]) == 7
    assert len(shown(report, micro, "Longest gaps")) == 5


# -- kernels -------------------------------------------------------------------------------------------------------


def test_kernels_have_their_spread_beside_the_total(contract):
    """10, 20, 90: total 120 of 150 µs of all work, median 20, mean 40."""
    micro = [kernel("gemm", 0, 10), kernel("gemm", 100, 90), kernel("gemm", 200, 20), memcpy("DtoD", 300, 30)]
    row = contract(micro)["kernels"][0]
    assert (row["name"], row["calls"], row["total_us"], row["median_us"]) == ("gemm", 3, 120, 20)
    assert (row["mean_us"], row["min_us"], row["max_us"], row["share"]) == (40, 10, 90, 0.8)


def test_shares_of_all_device_work_add_up(contract):
    micro = [kernel("a", 0, 10), kernel("b", 5, 50, stream=8), memcpy("DtoD", 60, 7), memset(70, 3)]
    assert sum(k["share"] for k in contract(micro)["kernels"]) == 1


def test_copies_and_fills_are_told_from_kernels(contract):
    kinds = {
        k["name"]: k["kind"]
        for k in contract([kernel("ampere_sgemm_128x64_tn", 0, 10), memcpy("DtoD", 60, 7), memset(70, 3)])["kernels"]
    }
    assert kinds == {"ampere_sgemm_128x64_tn": "gemm", "Memcpy DtoD": "copy", "Memset (Device)": "memset"}


def test_what_was_not_recorded_of_a_launch_is_not_available(contract):
    (row,) = contract([kernel("k", 0, 10)])["kernels"]
    unknown = ("grid", "block", "registers_per_thread", "shared_memory_bytes", "occupancy_reported",
               "occupancy_theoretical", "limited_by")  # fmt: skip
    assert {key: row[key] for key in unknown} == dict.fromkeys(unknown)
