"""Blocking waits, whatever the call's name: a full launch queue, blocking launches, another thread's lock, copies."""

from __future__ import annotations

import pytest

from tests.micro import BUFFER, QUEUE_FULL, call, kernel, launch, memcpy, op, overhead

LAUNCH = "cudaLaunchKernel"


def waits(built):
    """{start of a host row in µs: wait in µs} of all that wait."""
    rows = built.waits.ns.nonzero()[0]
    return {built.host.start[r] / 1000: built.waits.ns[r] / 1000 for r in rows}


def queue(*, returned: float = 500, own: float = 1000, busy: float = 500):
    """Four usual launches of 4 µs; one at [100, returned] while a kernel runs [100, 100 + busy - 100]."""
    usual = [launch(LAUNCH, 10 * i, 4, i + 1) for i in range(4)]
    work = [kernel("k", 10 * i + 5, 4, i + 1) for i in range(4)]
    return [*usual, *work, kernel("long", 60, busy - 60, 50), launch(LAUNCH, 100, returned - 100, 9),
            kernel("k", own, 5, 9)]  # fmt: skip


def test_a_launch_that_returns_as_work_ends_waited_in_a_full_queue(chains):
    """[100, 500], and the device's work ends at 500. Its usual is 4 µs: it waited 396."""
    assert waits(chains(queue())) == {100: 396}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"own": 120}, "its own work started while it still ran: a copy or a launch that took long"),
        ({"busy": 440}, "the device was idle for 15% of it"),
        ({"returned": 540, "busy": 900}, "no work ended as it returned"),
        ({"returned": 140, "busy": 140}, "40 µs: a scheduler's hiccup"),
    ],
)
def test_a_slow_launch_that_did_not_wait_is_tax(chains, changed, why):
    assert waits(chains(queue(**changed))) == {}, why


def test_the_profilers_time_in_a_blocked_call_is_not_the_wait(chains):
    """Buffers were handled for 100 of the 400 µs."""
    assert waits(chains([*queue(), overhead(BUFFER, 200, 100)])) == {100: 296}


def test_a_record_of_a_full_queue_suffices(chains):
    """Only 30 µs long, and nothing else says so: 30 - 4."""
    micro = [*queue(returned=130, busy=900), overhead(QUEUE_FULL, 101, 28)]
    assert waits(chains(micro)) == {100: 26}


def test_a_full_queue_is_not_the_profilers_work(chains):
    built = chains([*queue(), overhead(QUEUE_FULL, 101, 398)])
    assert built.profiler.events.height == 0
    assert waits(built) == {100: 396}


def blocking(count: int, apart: int = 0):
    """Launches of 40 µs that contain their kernels of 30; `apart` others do not."""
    micro = [op("x", 0, 1)]
    for i in range(count + apart):
        inside = i < count
        micro += [launch(LAUNCH, 100 * i, 40, i + 1), kernel("k", 100 * i + (5 if inside else 50), 30, i + 1)]
    return micro


def test_where_nearly_all_launches_contain_their_kernels_they_wait_for_them(chains):
    """CUDA_LAUNCH_BLOCKING=1: of each 40 µs the kernel's 30 are a wait."""
    assert waits(chains(blocking(10, 1))) == {100.0 * i: 30 for i in range(10)}


@pytest.mark.parametrize("micro", [blocking(4), blocking(8, 2)], ids=["four launches", "eight of ten"])
def test_some_launches_that_contain_their_kernels_are_no_proof(chains, micro):
    assert waits(chains(micro)) == {}


def lock(length: float = 300, of: str = "cudaHostAlloc", tid: int = 2):
    usual = [e for i in range(3) for e in (launch(LAUNCH, 10 * i, 4, i + 1), kernel("k", 10 * i + 5, 1, i + 1))]
    return [*usual, call(of, 100, length, tid=tid), launch(LAUNCH, 110, 280, 9), kernel("k", 395, 5, 9)]


def test_a_launch_inside_another_threads_allocation_waits_for_its_lock(chains):
    """280 µs, the usual is 4: 276."""
    assert waits(chains(lock())) == {110: 276}


@pytest.mark.parametrize(
    "micro", [lock(200), lock(of="cudaMemcpyAsync")], ids=["half of it lies outside", "that call holds no lock"]
)
def test_a_slow_launch_beside_another_threads_call_is_tax(chains, micro):
    assert waits(chains(micro)) == {}


def copied(name: str, kind: str, *, end: float, start: float = 130):
    """A copy call [100, 150] and its copy [start, end]."""
    return [op("x", 0, 1), call(name, 100, 50, corr=1), memcpy(kind, start, end - start, 1)]


@pytest.mark.parametrize(
    ("name", "kind", "end", "wait"),
    [
        ("cudaMemcpyAsync", "HtoD (Pageable -> Device)", 145, 45),  # until the copy ended
        ("cudaMemcpyAsync", "HtoD (Pageable -> Device)", 155, 0),  # staged: it returned before the copy ended
        ("cudaMemcpyAsync", "DtoH (Device -> Pageable)", 155, 50),  # returns when it is done; the clocks disagree
        ("hipMemcpyWithStream", "HtoD (Host -> Device)", 155, 50),
        ("hipMemcpyWithStream", "HtoD (Host -> Device)", 300, 0),
        ("cudaMemcpyAsync", "DtoH (Device -> Pinned)", 145, 0),  # merely slow
    ],
)
def test_a_copy_that_blocks_is_a_wait_to_its_end(chains, name, kind, end, wait):
    assert waits(chains(copied(name, kind, end=end))) == ({100: wait} if wait else {})


def test_a_driver_call_inside_the_runtimes_waits_once(chains):
    micro = [*queue(), call("cuStreamSynchronize", 700, 80, cat="cuda_driver"), call("cudaStreamSynchronize", 690, 100)]
    assert waits(chains(micro)) == {100: 396, 690: 100}
