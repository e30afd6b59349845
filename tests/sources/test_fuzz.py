"""A short run of the fuzzer, and of hypothesis over bytes; `python -m tests.sources.fuzz` runs it longer."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import TraceError
from tests.sources.compare import read_bytes
from tests.sources.fuzz import Case, check, one, originals

POOL = originals()


@pytest.mark.parametrize("first", range(0, 2000, 200))
def test_mutations_break_no_promise(first: int) -> None:
    for seed in range(first, first + 200):
        one(seed, POOL)


@settings(max_examples=200, deadline=None)
@given(
    original=st.sampled_from(POOL),
    low=st.integers(0, 5000),
    length=st.integers(0, 60),
    middle=st.binary(max_size=12) | st.text('{}[]",:\\ntf0-.e', max_size=12).map(str.encode),
)
def test_any_bytes_in_any_place(original: bytes, low: int, length: int, middle: bytes) -> None:
    low = min(low, len(original))
    after = original[low + length :]
    check(Case(original[:low] + middle + after, low, len(after), original), random.Random(low))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_at_all(text: bytes) -> None:
    try:
        read_bytes(text)
    except TraceError as error:
        assert error.what  # noqa: PT017
