"""No finding claims more than there is: each moment of a device counts once, whatever runs side by side."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import micro
from tests.findings.cases import CASES

#: Their claim is bounded by what is usual for one call; two calls at once may each be short of all that the device
#: waited for, and both together not. It is never more than that.
CAPPED = {"compile-tax": 230, "cudnn-plan-cost": 390}


def moved(events, number, ts=0):
    """The same on other threads and streams, `ts` µs later."""
    out = []
    for event in events:
        args = dict(event.get("args") or {})
        if args.get("correlation"):
            args["correlation"] += 1000 * number
        if "stream" in args:
            args["stream"] += 100 * number
        lane = event["tid"] if event["pid"] == -1 else event["tid"] + 100 * number
        out.append({**event, "ts": event["ts"] + ts, "tid": lane, "args": args})
    return out


@pytest.mark.parametrize("name", CASES)
def test_what_two_threads_do_at_once_could_be_won_once(report, name):
    case = CASES[name]()
    twice = [*case.events, *(e for e in moved(case.events, 1) if e["pid"] != -1)]
    claims = [f.up_to_ns for f in report(twice, **case.header).findings if f.name == name]
    claimed = CAPPED.get(name, case.up_to)
    assert claims == [None if claimed is None else pytest.approx(1000 * claimed, abs=2)]


@settings(max_examples=60)
@given(
    parts=st.lists(
        st.tuples(st.sampled_from(sorted(CASES)), st.sampled_from([0, 0, 3, 40, 150, 700])), min_size=2, max_size=4
    )
)
def test_no_mixture_claims_more_than_the_window(tmp_path_factory, parts):
    events = [e for i, (name, ts) in enumerate(parts) for e in moved(CASES[name]().events, i, ts)]
    found = micro.report_of(tmp_path_factory.mktemp("mixture") / "run.json", events)
    for one in found.findings:
        assert one.share is None or 0 <= one.share <= 1, one
