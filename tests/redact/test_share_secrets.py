"""What was recorded by whom, where and with which arguments never leaves with a shared trace."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from analyzer.redact.identity import KINDS, Learned, Scrubber
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.redact.part import Selection
from analyzer.redact.share import share
from analyzer.sources.kineto.read import read
from tests import micro

#: How a secret is found: as it is, or as JSON spells it.
CATEGORIES = (
    "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "overhead", "kernel", "gpu_memcpy",
    "gpu_memset", "gpu_user_annotation", "cuda_sync", "Trace", "a category of nobody", None,
)  # fmt: skip
ARGUMENTS = (
    "Concrete Inputs", "Input Dims", "Input type", "Call stack", "kernel_file", "correlation", "Collective name",
    "dtype", "kernel_kwargs", "kernel_hash", "Trace name", "kind", "stream", "bytes", "grid", "Process Group Ranks",
    "executable_name", "Ev Idx", "an argument of nobody",
)  # fmt: skip
HEADERS = (
    "host_name", "hostname", "username", "tw_user", "tw_job", "trace_id", "traceName", "INFO", "ERROR", "metadata",
    "displayTimeUnit", "schemaVersion", "cuda_driver_version", "baseTimeNanoseconds", "viztracer_metadata",
    "systemTraceEvents", "deviceProperties", "distributedInfo", "tracecli_capture", "a header of nobody",
)  # fmt: skip
#: Texts in which a secret is identity, wherever the text stands.
PLACES = (
    "/home/{}/project/train.py", "/home/{}", "/Users/{}/x.py", "/data/{}/deep/er/x.py", "/mnt/a b/{}/c d/x.py", "/{}",
    "/opt/{},(1)/x.py", "C:\\Users\\{}\\code\\x.py", "d:/work/{}/x.py", "\\\\{}\\share\\x", "\\\\server\\{}\\x.py",
    "file:///srv/{}/x.py", "file://{}/srv/x.py", "see /srv/{}/x.py for more", "-I/home/{}/include", "a=/srv/{}/b",
    "/tmp/torchinductor_{}/ab/cd.py", "torchinductor_{}", "~{}/x.py", "~/{}/x.py", "$HOME/{}/x.py",
    "%USERPROFILE%\\{}\\x", "USER={}", "HOSTNAME={} RANK=0", "{}@example.com", "me@{}.example.com", "https://{}.example.com/x",
    "s3://bucket/{}/x", "https://user:{}@example.com/", "{}.internal.example.com", "home/{}/x.py", "/home/{}/a:b/c.py",
    "/usr/{}/lib/python3.11/site-packages/torch/nn/x.py", "x;/home/{}/y.py(3): f;z",
)  # fmt: skip

secrets = st.from_regex(r"[a-z]{3,8}[0-9]{1,3}[a-z]{2,8}", fullmatch=True).map(lambda s: f"q{s}z") | st.sampled_from(
    ["jürgenß9x", "Łukasz77", "mary-jane42", "o'brien77", "名前9秘密", "UPPER77case"]
)


def nested(value: Any, shape: int) -> Any:
    return (value, [value], [[1, value], []], {"k": value}, {value: 1}, [{"a": [value]}])[shape]


def base() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    events = [
        micro.step(1, 0, 100),
        micro.op("aten::mm", 10, 30, shapes=[[2, 2]]),
        micro.launch("cudaLaunchKernel", 15, 5, 11),
        micro.kernel("gemm", 50, 20, 11),
    ]
    return events, {"traceName": "run.json", "distributedInfo": {"rank": 0}}


def written(events: list[dict[str, Any]], header: dict[str, Any], **options: Any) -> bytes:
    """The bytes of the shared trace."""
    with TemporaryDirectory() as folder:
        path, target = Path(folder, "in.json"), Path(folder, "out.json")
        path.write_text(json.dumps({**header, "traceEvents": events}, ensure_ascii=False), encoding="utf-8")
        share(path, target, **options)
        read(target, jobs=1, strict=True)
        return target.read_bytes()


def occurs(secret: str, text: bytes) -> bool:
    """Whether a secret stands in the text: raw, as JSON escapes it, or as a key or value once parsed."""
    spellings = {secret, json.dumps(secret)[1:-1], secret.replace("\\", "\\\\"), secret.lower(), secret.upper()}
    plain = text.decode()
    return any(s in plain for s in spellings) or any(s in json.dumps(json.loads(plain), ensure_ascii=False) for s in spellings)  # fmt: skip # noqa: E501


@settings(max_examples=250)
@given(
    secret=secrets,
    place=st.sampled_from(PLACES),
    category=st.sampled_from(CATEGORIES),
    key=st.sampled_from(["name", "pid", "tid", "cat", "id", "args", "key", "cname"]),
    part=st.booleans(),
    hashed=st.booleans(),
)
def test_a_secret_in_a_text_of_any_event_is_gone(
    secret: str, place: str, category: str | None, key: str, part: bool, hashed: bool
) -> None:
    text = place.format(secret)
    events, header = base()
    event = micro.complete("cpu_op", "aten::add", 60, 5, 100, 1, {"x": 1})
    event["cat"] = category
    if category is None:
        del event["cat"]
    if key == "args":
        event["args"] = {"Module Hierarchy": text, "kernel": text, "Process Group Name": text}
    elif key == "key":
        event[text] = 1
        event["args"] = {text: 1}
    else:
        event[key] = text
    events.append(event)
    # The same name on its own: a user or a host that was given away anywhere is known everywhere.
    events.append(micro.annotation(f"{secret} warm-up", 90, 1) if "home/" in place else micro.op("aten::mul", 90, 1))
    options: dict[str, Any] = {"selection": Selection(steps=("1", "1"))} if part else {}
    assert not occurs(secret, written(events, header, hash_names=hashed, **options))


@settings(max_examples=300)
@given(secret=secrets, key=st.sampled_from(ARGUMENTS), shape=st.integers(0, 5), where=st.integers(0, 3))
def test_a_secret_among_the_arguments_is_gone(secret: str, key: str, shape: int, where: int) -> None:
    events, header = base()
    value = f"/x/{secret}/y" if key == "kernel_file" else f"/x/{secret}/y(1): f" if key == "Call stack" else secret
    events[where].setdefault("args", {})[key] = nested(value, shape)
    events.append({"ph": "C", "name": "counter", "pid": 1, "tid": 1, "ts": 5, "args": {"v": nested(secret, shape)}})
    events.append({"ph": "i", "s": secret, "bp": secret, "name": "x", "pid": 1, "tid": 1, "ts": 5})
    events.append({"ph": secret, "name": "x", "pid": 1, "tid": 1, "ts": 5})
    assert not occurs(secret, written(events, header))


@settings(max_examples=150)
@given(secret=secrets, key=st.sampled_from(HEADERS), shape=st.integers(0, 5), inner=st.sampled_from(["name", "uuid"]))
def test_a_secret_beside_the_events_is_gone(secret: str, key: str, shape: int, inner: str) -> None:
    events, header = base()
    header[key] = nested(secret, shape)
    if key == "deviceProperties":
        header[key] = [{"id": 0, "uuid": secret, "numSms": nested(secret, shape), secret: 1}]
    elif key == "distributedInfo":
        header[key] = {
            "rank": 0, "backend": secret, "master_addr": secret, "store": nested(secret, shape), secret: 1,
            "pg_config": [{"pg_name": "0", "ranks": [nested(secret, shape)], "backend_config": secret, "host": secret}],
        }  # fmt: skip
    elif key == "tracecli_capture":
        header[key] = {"version": 1, "host": secret, "flags": {"data": f"/x/{secret}/y", "n": [secret]}}
    # Known by its key, a name of a user or a host is replaced in all text.
    if key in ("host_name", "username", "tw_user", "tw_job") and shape == 0 and "'" not in secret:
        events.append(micro.annotation(f"on {secret}_0", 90, 1))
    assert not occurs(secret, written(events, header))


@settings(max_examples=100)
@given(
    secret=secrets,
    name=st.sampled_from(["process_name", "process_labels", "thread_name", "process_sort_index", "a name of nobody"]),
    text=st.sampled_from(["{}", "python {}", "thread 5 ({})", "Stream #3({})", "{} /device:GPU:0", "stream 7 {}"]),
    lane=st.booleans(),
)
def test_a_secret_in_the_name_of_a_lane_is_gone(secret: str, name: str, text: str, lane: bool) -> None:
    events, header = base()
    value = text.format(secret)
    args = {"name": value, "labels": value, "sort_index": value, secret: 1}
    events.append({"ph": "M", "name": name, "pid": value if lane else 1, "tid": value if lane else 1, "args": args})
    assert not occurs(secret, written(events, header))


def test_names_of_the_user_are_hashed_on_request() -> None:
    events, header = base()
    events += [
        micro.annotation("decode_secret", 60, 5),
        micro.frame("nn.Module: SecretBlock_3", 60, 5),
        micro.frame("secretpkg/model.py(3): secret_forward", 60, 5),
        micro.frame("torch/nn/modules/module.py(1553): _call_impl", 60, 5),
        micro.op("c10d::allreduce_", 70, 5) | {"args": {"Process Group Description": "secret_mesh"}},
    ]
    plain, hashed = written(events, header), written(events, header, hash_names=True)
    assert plain.count(b"secret") == 4
    assert b"secret" not in hashed.lower()
    for kept in (
        b"ProfilerStep#1",
        b"aten::mm",
        b"torch/nn/modules/module.py(1553): _call_impl",
        b"nn.Module: module-",
    ):
        assert kept in hashed


@pytest.mark.parametrize(
    "name",
    [
        "aten::mm",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(i)",
        "void (anonymous namespace)::f<T, a::b>(T*) [clone .kd]",
        "torch/utils/data/dataloader.py(630): __next__",
        "transformers/models/opt/modeling_opt.py(3): forward",
        "<built-in method run_backward of torch._C._EngineBase object at 0x7f0011223344>",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "Torch-Compiled Region: 0/0",
        "ratio a / b, 1/2",
        "self.net",
        "add::fa",
        "Memcpy HtoD (Pageable -> Device)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "580.159.04",
        "autograd::engine::evaluate_function: AddmmBackward0",
    ],
)
def test_names_that_say_what_ran_stay(name: str) -> None:
    scrubber = Scrubber(Learned())
    assert scrubber.library(name) == name
    assert scrubber.own(name) == name
    assert scrubber.frame(name) == name
    assert not scrubber.removed


def test_a_users_name_never_takes_words_out_of_the_language() -> None:
    learned = Learned()
    learned.look(b'"/home/torch/x" "/home/relu/x" "/home/root/x"')
    scrubber = Scrubber(learned)
    assert scrubber.library("aten::relu") == "aten::relu"
    assert scrubber.text("torch root") == "torch root"
    assert "relu" not in scrubber.text("relu_experiment")


def test_replacements_are_the_same_in_one_run_and_others_in_the_next() -> None:
    events, header = base()
    events += [micro.frame(f"/srv/a/x.py({i}): f", 60, 1) for i in (1, 2)] + [micro.frame("/srv/b/x.py(1): f", 70, 1)]

    def folders(**options: Any) -> list[str]:
        return re.findall(r"dir-[a-z]+", written(events, header, **options).decode())

    one, two, three = folders()
    assert one == two != three
    assert folders() != [one, two, three]
    assert folders(seed="s") == folders(seed="s")


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("paths", "/srv/deep/x.py"),
        ("inputs", "3.5"),
        ("header", "log line"),
        ("args", "of nobody"),
        ("processes", "my worker"),
        ("hosts", "node17"),
        ("users", "alice9"),
    ],
)
def test_a_kind_can_be_kept(kind: str, kept: str) -> None:
    assert kind in KINDS
    events, header = base()
    header |= {"INFO": ["log line"], "host_name": "node17", "username": "alice9"}
    events[1]["args"] |= {"Concrete Inputs": ["3.5"], "new": "of nobody"}
    events.append(micro.frame("/srv/deep/x.py(3): f", 60, 1))
    events.append({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "my worker"}})
    assert kept.encode() not in written(events, header)
    assert kept.encode() in written(events, header, keep=[kind])


@pytest.mark.parametrize(
    "unit",
    ["a.", "a-", "/a", "\\", "a:", "::", "a@", "1.", "~", "$A", "//", "a b/", "(1", "'a", "a/home", "ip-1-", "USER="],
)
def test_a_string_of_a_stranger_takes_time_that_follows_its_length(unit: str) -> None:
    """A pattern that looks at a string again from each of its letters would need minutes here."""
    text, scrubber, learned = unit * (100_000 // len(unit)), Scrubber(Learned()), Learned()
    started = time.process_time()
    scrubber.text(text), scrubber.frame(text), learned.look(text.encode())
    assert time.process_time() - started < 5
