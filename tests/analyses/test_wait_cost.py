"""What waits cost: the host's time in them, and the idle time that follows."""

from __future__ import annotations

from tests.micro import call, chain, kernel, launch, op


def rounds(wait, gap, times=2):
    """A kernel of `wait` + 5 µs, a wait that ends with it, and `gap` µs until the next launch arrives."""
    events, t = [], 0
    for i in range(times):
        events += [op("aten::mm", t, 10), launch("cudaLaunchKernel", t + 2, 4, 10 * i + 1)]
        events += [kernel("gemm", t + 6, wait + 6, 10 * i + 1), call("cudaStreamSynchronize", t + 12, wait)]
        t += wait + 12
        events += [op("aten::add", t, gap), launch("cudaLaunchKernel", t + gap - 4, 4, 10 * i + 2)]
        events += [kernel("k", t + gap, 1, 10 * i + 2)]
        t += gap + 1
    return events


def test_a_wait_costs_the_gap_that_follows_it(contract):
    """Twice a wait of 100 and a gap of 40: 2 × 40. The gap to the next round [153, 159] follows no wait."""
    cost = contract(rounds(100, 40))["wait_cost"]
    assert (cost["count"], cost["held_us"], cost["idle_us"]) == (2, 200, 80)


def test_a_wait_costs_no_more_than_it_took(contract):
    """Waits of 15 µs before gaps of 40: without them the host were ahead by 15 each."""
    assert contract(rounds(15, 40))["wait_cost"]["idle_us"] == 30


def test_a_wait_costs_on_whichever_thread_it_is(contract):
    """The launching thread waits for the other one: had that gone on, it would have been ahead, too."""
    micro = [{**e, "tid": 2} if "Synchronize" in e["name"] else e for e in rounds(100, 40)]
    cost = contract(micro)["wait_cost"]
    assert (cost["count"], cost["idle_us"]) == (2, 80)


def test_a_synchronize_after_the_last_launch_is_followed_by_nothing(contract):
    micro = [*chain("aten::mm", 0, 1, 8, 50), call("cudaDeviceSynchronize", 12, 46), op("print", 58, 5)]
    cost = contract(micro)["wait_cost"]
    assert (cost["count"], cost["followed"]) == (0, 0)


def test_inside_an_operator_it_was_asked_for_all_the_same(contract):
    micro = [*chain("aten::mm", 0, 1, 8, 50), op("aten::item", 12, 48), call("cudaStreamSynchronize", 13, 46)]
    cost = contract(micro)["wait_cost"]
    assert (cost["count"], cost["held_us"], cost["followed"]) == (1, 46, 0)


def test_the_device_may_be_busy_meanwhile(contract):
    """The kernel runs through the whole of each wait."""
    cost = contract(rounds(100, 40))["wait_cost"]
    assert (cost["followed"], cost["followed_held_us"], cost["followed_busy_us"]) == (2, 200, 200)


def test_without_launches_nobody_waits_for_the_host(contract):
    assert contract([op("a", 0, 9), call("cudaStreamSynchronize", 1, 5)])["wait_cost"]["count"] == 0
