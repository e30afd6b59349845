"""Why copies were made, and which of them nothing overlaps."""

from __future__ import annotations

from tests.micro import chain, kernel, launch, memcpy, op, step

DTOD = "DtoD (Device -> Device)"
GEMM = "ampere_sgemm_128x64_tn"


def clone_inside(outer, inner, t, corr, dur, *, stream=7, tid=1):
    """`outer` clones its input in `dur` µs and then calls `inner` on the copy."""
    return [
        op(outer, t, 30, tid=tid), op("aten::clone", t + 2, 10, tid=tid), op("aten::copy_", t + 3, 8, tid=tid),
        launch("cudaMemcpyAsync", t + 5, 2, corr, tid=tid),
        memcpy(DTOD, t + 10, dur, corr, size=1 << 20, stream=stream),
        op(inner, t + 14, 14, tid=tid),
    ]  # fmt: skip


def test_a_clone_is_put_down_to_the_operator_that_works_in_place_on_it(contract):
    micro = [*clone_inside("aten::masked_fill", "aten::masked_fill_", 0, 1, 15),
             *clone_inside("aten::masked_fill", "aten::masked_fill_", 100, 2, 25),
             *clone_inside("aten::index_put", "aten::index_put_", 200, 3, 30)]  # fmt: skip
    first, second = contract(micro)["copy_causes"]["clones"]
    assert first == {
        "operator": "aten::masked_fill", "why": "in_place_form", "device_us": 40, "path": ["aten::masked_fill"],
        "clones": {"count": 2, "total_us": 40, "median_us": 20, "max_us": 25},
    }  # fmt: skip
    assert (second["operator"], second["device_us"]) == ("aten::index_put", 30)


def test_layout_clones_are_those_of_reshape_and_contiguous(contract):
    micro = [*clone_inside("aten::reshape", "aten::view", 0, 1, 15), *clone_inside("aten::to", "aten::view", 100, 2, 9)]
    (clone,) = contract(micro)["copy_causes"]["clones"]
    assert (clone["operator"], clone["why"], clone["device_us"]) == ("aten::reshape", "layout", 15)


def test_clones_on_two_streams_at_once_fill_each_moment_once(contract):
    """[10, 30] and [10, 40] of another thread and stream: 50 µs of copies in 30 of time."""
    micro = [*clone_inside("aten::masked_fill", "aten::masked_fill_", 0, 1, 20),
             *clone_inside("aten::masked_fill", "aten::masked_fill_", 0, 2, 30, stream=8, tid=2)]  # fmt: skip
    (clone,) = contract(micro)["copy_causes"]["clones"]
    assert (clone["clones"]["total_us"], clone["device_us"]) == (50, 30)


def addmm(t, corr, copy, product):
    return [
        op("aten::addmm", t, 30), launch("cudaMemcpyAsync", t + 5, 4, corr), memcpy(DTOD, t + 12, copy, corr, size=9),
        launch("cudaLaunchKernel", t + 20, 4, corr + 1), kernel(GEMM, t + 40, product, corr + 1),
    ]  # fmt: skip


def test_a_bias_is_copied_by_an_addmm_that_launched_a_product_too(contract):
    """Two of three addmm calls. The device waits for the launch calls at 5 and 205: of the first all 4 µs."""
    micro = [*addmm(0, 10, 3, 50), *chain("aten::addmm", 100, 20, 110, 40, kernel_name=GEMM), *addmm(200, 30, 5, 60)]
    bias = contract(micro)["copy_causes"]["bias"]
    assert (bias["calls"], bias["seeded"], bias["device_us"], bias["waited_us"]) == (3, 2, 8, 8)
    assert bias["copies"] == {"count": 2, "total_us": 8, "median_us": 4, "max_us": 5}
    assert bias["products"] == {"count": 3, "total_us": 150, "median_us": 50, "max_us": 60}
    assert bias["launches"] == {"count": 2, "total_us": 8, "median_us": 4, "max_us": 4}
    assert bias["path"] == ["aten::addmm"]


def test_a_copy_in_an_addmm_without_a_product_is_no_bias(contract):
    assert contract(addmm(0, 10, 3, 50)[:3])["copy_causes"]["bias"] is None


def test_small_copies_are_counted_by_place_less_those_that_something_explains(contract):
    """Three of 1 KiB in `a`, one in `b`. Not: one of 64 KiB, the read of a scalar, one whose launch is unknown."""
    micro = []
    for i, (name, size) in enumerate(
        [("a", 1024)] * 3 + [("b", 2048), ("a", 64 * 1024), ("aten::_local_scalar_dense", 4)]
    ):
        t = 20 * i
        micro += [
            op(name, t, 10),
            launch("cudaMemcpyAsync", t + 3, 4, i + 1),
            memcpy(DTOD, t + 8, i + 1, i + 1, size=size),
        ]
    micro += [memcpy(DTOD, 300, 1, 999, size=8)]
    small = contract(micro)["copy_causes"]["small"]
    assert (small["count"], small["below_bytes"], small["device_us"]) == (4, 65536, 1 + 2 + 3 + 4)
    assert [(p["path"], p["copies"]["count"], p["bytes_median"]) for p in small["places"]] == [
        (["a"], 3, 1024), (["b"], 1, 2048),
    ]  # fmt: skip
    # The gaps [9, 28], [30, 48] and [51, 68] from one to the next, and the launch call of the first.
    assert (small["waited_us"], small["dispatch_us"]) == (19 + 18 + 17 + 4, 19 + 18 + 17)


# -- exposure -----------------------------------------------------------------------------------------------


def test_what_a_copy_shares_with_other_work_is_not_exposed(contract):
    """Pinned [0, 100], pageable [150, 200]; a kernel runs [60, 160]."""
    micro = [memcpy("HtoD (Pinned -> Device)", 0, 100), memcpy("DtoH (Device -> Pageable)", 150, 50, stream=9),
             kernel("k", 60, 100, stream=8)]  # fmt: skip
    assert contract(micro)["exposed_copies"] == {"pageable_us": 40, "pinned_us": 60, "beside_pinned_us": 140}


def test_copies_on_the_device_are_no_copies_of_the_host(contract):
    found = contract([memcpy(DTOD, 0, 100)])["exposed_copies"]
    assert found == {"pageable_us": 0, "pinned_us": 0, "beside_pinned_us": 100}


def test_exposed_copies_are_those_of_the_window(contract):
    """One step of 100 µs from 100 on. A copy of 40 µs before it; in it 30 µs of a pageable and 20 of a pinned one, of
    which a kernel overlaps 5."""
    micro = [
        launch("cudaMemcpyAsync", 0, 2, 1), memcpy("HtoD (Pinned -> Device)", 10, 40, 1),
        step(1, 100, 100),
        launch("cudaMemcpyAsync", 101, 2, 2), memcpy("HtoD (Pageable -> Device)", 105, 30, 2),
        launch("cudaMemcpyAsync", 140, 2, 3, tid=2), memcpy("HtoD (Pinned -> Device)", 145, 20, 3, stream=8),
        launch("cudaLaunchKernel", 150, 2, 4), kernel("k", 160, 20, 4),
    ]  # fmt: skip
    assert contract(micro)["exposed_copies"] == {"pageable_us": 30, "pinned_us": 15, "beside_pinned_us": 50}
