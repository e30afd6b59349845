"""Cuts, flips, repeats and reorders bytes of small traces, and holds the reader to its promises.

    python -m tests.sources.fuzz --runs 100000 --seed 0

For every input: nothing but TraceError is raised, and that in bounded time; where the text is valid
JSON, every row equals the plain oracle's; any size of block and chunk gives the same trace; and
events that lie whole outside the damage are still there. A run is repeated exactly by its seed.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.errors import TraceError
from analyzer.events.schema import Trace
from tests.sources import micro, oracle
from tests.sources.compare import device_rows, differences, host_rows, read_bytes, read_in_blocks, same

SLOW_S = 5.0

_TOKENS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\x00", b"\xff", b"\xc3", b"null", b"NaN", b"-inf",
    b"N/A", b"0x1f", b"1e999", b"-1", b"01", b".5", b"1.", b'{"ph": "X", ', b'},\n  {\n    "ph"', b'"ts": ',
    b'"dur": ', b']}', b'"traceEvents": [', b"\\u12", b"\\ud800", b"\\x", b"9" * 30, b"\xef\xbb\xbf", b" ", b"/*",
]  # fmt: skip
_BARE_ELEMENT = re.compile(rb"[\[,]\s*(?:NaN|-?Infinity)\s*[,\]]")
_EVENT = re.compile(rb'\{[ \n]*"(?:ph|name)"')


@dataclass
class Case:
    """A mutated text; [low, high) is the part of it that is not as the original."""

    text: bytes
    kept_before: int  # bytes at the front that are the original's
    kept_after: int  # bytes at the back that are
    original: bytes


def originals() -> list[bytes]:
    """Well-formed traces of all kinds to start from."""
    out = []
    for seed, layout in enumerate(micro.LAYOUTS * 3):
        out.append(micro.dump(micro.mixed(seed, 4 + seed), layout, baseTimeNanoseconds=1_790_857_026_000_000_000))
    spans = [
        {"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "B", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 6.5},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 7},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9.25},
    ]
    out.append(micro.dump(spans + micro.triple(), "spaced"))
    epoch = 1_711_000_000_406_752
    out.append(micro.wrap([micro.kineto(e).replace("1000", f"{epoch}.124") for e in micro.triple()]))
    out.append(b'[{"name": "aten::mul", "ph": "X", "ts": 100, "dur": 40, "tid": 1, "pid": "CPU functions", "args": {}},'
               b' {"name": "aten::mul", "ph": "s", "ts": 100, "tid": 1, "pid": "CPU functions", "id": 0, "cat":'
               b' "cpu_to_cuda", "args": {}}, {"name": "aten::mul", "ph": "f", "ts": 150.5, "tid": 0, "pid":'
               b' "CUDA functions", "id": 0, "cat": "cpu_to_cuda", "args": {}}, {"name": "aten::mul", "ph": "X", "ts":'
               b' 150.5, "dur": 30, "tid": 0, "pid": "CUDA functions", "args": {}}]')  # fmt: skip
    out.append(b'[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":"5.250","dur":"1"},{"ph":"X"},{},null,7]')
    out.append(b'{"data": {"traceEvents": [' + micro.kineto(micro.triple()[0]).encode() + b"]}}")
    return out


def mutate(rng: random.Random, pool: list[bytes]) -> Case:
    original = rng.choice(pool)
    low = rng.randrange(len(original) + 1)
    high = min(len(original), low + int(rng.expovariate(1 / rng.choice([1, 4, 60]))))
    middle = original[low:high]
    kind = rng.randrange(9)
    if kind == 0:  # cut out
        middle = b""
    elif kind == 1:  # repeat
        middle = middle * rng.randint(2, 4)
    elif kind == 2:  # flip bits
        at = rng.randrange(len(original)) if original else 0
        low, high = at, at + 1
        middle = bytes([original[at] ^ (1 << rng.randrange(8))])
    elif kind == 3:  # insert a token
        high = low
        middle = rng.choice(_TOKENS)
    elif kind == 4:  # put a token in place
        middle = rng.choice(_TOKENS)
    elif kind == 5:  # reverse or shuffle
        mixed = list(middle)
        rng.shuffle(mixed)
        middle = bytes(mixed)
    elif kind == 6:  # the file ends here
        return Case(original[:low], low, 0, original)
    elif kind == 7:  # another file's bytes
        other = rng.choice(pool)
        at = rng.randrange(len(other) + 1)
        middle = other[at : at + rng.randrange(200)]
    else:  # random bytes
        middle = rng.randbytes(rng.randrange(1, 6))
    after = len(original) - high
    return Case(original[:low] + middle + original[high:], low, after, original)


def check(case: Case, rng: random.Random) -> str:
    """Read, and hold the result to the promises. What kind of result it was; raises AssertionError."""
    text = case.text
    try:
        want: oracle.Facts | None = oracle.facts(text)
    except oracle.Unsupported:
        want = None
    except (ValueError, RecursionError):
        want = None
    if _BARE_ELEMENT.search(text):
        want = None  # Python's json takes a bare word for an element; to the reader it is damage
    started = time.perf_counter()
    try:
        trace = read_bytes(text)
    except TraceError as error:
        if want is not None:
            raise AssertionError(f"valid, but refused: {error}") from error
        trace = None
    took = time.perf_counter() - started
    assert took < SLOW_S, f"took {took:.1f} s"
    if rng.random() < 0.3:
        try:
            other = read_in_blocks(text, block=rng.choice([1, 7, 64, 300]), chunk=rng.choice([1, 40, 200, 2000]))
        except TraceError as error:
            if trace is not None:
                raise AssertionError(f"refused in blocks: {error}") from error
        else:
            assert trace is not None, "refused, but not in blocks"
            assert same(trace, other), f"other blocks, other trace: {trace.warnings} {other.warnings}"
    if trace is None:
        return "refused"
    if want is not None:
        wrong = differences(trace, want)
        assert not wrong, "; ".join(wrong)
        return "valid"
    _nothing_lost(case, trace)
    return "truncated" if trace.truncated else "repaired"


#: Texts whose document ends, or begins anew, within the damage: what is behind it is not part of it.
_OTHER_DOCUMENT = {"extra-data", "nested-event-list", "repeated-event-list", "ignored-event-list", "far-timestamp"}


def _nothing_lost(case: Case, trace: Trace) -> None:
    """Events whole outside of the damage, and not next to it, are in the trace."""
    if _OTHER_DOCUMENT & {w.code for w in trace.warnings} or trace.header.producer.startswith("legacy"):
        return
    try:
        names = [e["name"] for e in _untouched(case)]
    except (ValueError, KeyError, TypeError):
        return
    have = Counter(row[1] for row in host_rows(trace) + device_rows(trace))
    missing = Counter(names) - have
    assert not missing, f"lost {dict(missing)}: {trace.warnings}"


def _untouched(case: Case) -> Iterator[oracle.Object]:
    starts = [m.start() for m in _EVENT.finditer(case.original)]
    decoder = json.JSONDecoder(object_pairs_hook=oracle.Object)
    text = case.original.decode("latin-1")
    spans = []
    for start in starts:
        if spans and start < spans[-1][1]:
            continue
        event, stop = decoder.raw_decode(text, start)
        spans.append((start, stop, event))
    before = [s for s in spans if s[1] + 2 <= case.kept_before]
    # The event behind the damage may be taken for its tail: the one after that is far enough.
    after = [s for s in spans if s[0] > len(case.original) - case.kept_after][1:]
    for _, _, event in before + after:
        if event.get("ph") == "X" and event.get("cat") in {**oracle.HOST, **oracle.DEVICE}:
            event["name"] = event["name"].encode("latin-1").decode()
            yield event


def one(seed: int, pool: list[bytes]) -> str:
    """Run the input of a seed. Raises AssertionError with all that is needed to repeat it."""
    rng = random.Random(seed)
    case = mutate(rng, pool)
    if rng.random() < 0.2:
        case = mutate(rng, [case.text]) if case.text else case
        case.kept_before = case.kept_after = 0
    if rng.random() < 0.02:
        packed = bytearray(gzip.compress(case.text, 1))
        if rng.random() < 0.5:
            packed[rng.randrange(2, len(packed))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(TraceError):
            read_bytes(bytes(packed))
        return "gzip"
    try:
        return check(case, rng)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}\n{case.text!r}") from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first input; the next one's is one more")
    parser.add_argument("--keep-going", action="store_true", help="report all failures, not the first alone")
    options = parser.parse_args()
    pool = originals()
    kinds: Counter[str] = Counter()
    started = time.perf_counter()
    for seed in range(options.seed, options.seed + options.runs):
        try:
            kinds[one(seed, pool)] += 1
        except AssertionError as error:
            kinds["FAILED"] += 1
            sys.stdout.write(f"{error}\n")
            if not options.keep_going:
                break
    took = time.perf_counter() - started
    ran = sum(kinds.values())
    sys.stdout.write(f"{ran:,} inputs in {took:.0f} s ({ran / took:,.0f}/s): {dict(kinds)}\n")
    return int(bool(kinds["FAILED"]))


if __name__ == "__main__":
    sys.exit(main())
