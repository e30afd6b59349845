"""What was recorded by whom, where and with which arguments never leaves with a shared trace."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.errors import TraceError
from analyzer.events.select import Selection
from analyzer.redact.classes import class_of
from analyzer.redact.names import Names, Words
from analyzer.redact.scrub import KINDS
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

#: Random tokens: letters, digits, words of the trade with something of their own, several scripts, escapes.
secrets = (
    st.from_regex(r"[a-z]{3,8}[0-9]{1,3}[a-z]{2,8}", fullmatch=True).map(lambda s: f"q{s}z")
    | st.from_regex(r"[b-df-hj-np-tv-xz]{5,12}", fullmatch=True).map(lambda s: f"{s}q{s[:3]}")
    | st.from_regex(r"[A-Z][a-z]{6,9}[A-Z][a-z]{6,9}", fullmatch=True).map(lambda s: f"Zq{s}Xkq")
    | st.sampled_from(["rope", "dot", "adam", "gemm", "nccl", "softmax"]).map(lambda s: f"{s}zqvk")
    | st.text(st.sampled_from("жщюяλφψωאבגדहिन्दी秘密項目名前"), min_size=4, max_size=8)
    | st.sampled_from(
        ["jürgenß9x", "Łukasz77", "mary-jqne42", "o'bryen77", "名前9秘密", "UPQER77cqse", "zq\u202evw\u200bk"]
    )
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
    return any(s in plain for s in spellings) or any(s in json.dumps(json.loads(plain), ensure_ascii=False) for s in spellings)  # fmt: skip


@settings(max_examples=250)
@given(
    secret=secrets,
    place=st.sampled_from(PLACES),
    category=st.sampled_from(CATEGORIES),
    key=st.sampled_from(["name", "pid", "tid", "cat", "id", "args", "key", "cname"]),
    part=st.booleans(),
)
def test_a_secret_in_a_text_of_any_event_is_gone(
    secret: str, place: str, category: str | None, key: str, part: bool
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
    events.append(micro.annotation(f"{secret} warm-up", 90, 1))
    options: dict[str, Any] = {"selection": Selection(steps=("1", "1"))} if part else {}
    assert not occurs(secret, written(events, header, **options))


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


WORDS_OF_OWN = {
    "decode_sxcret": "decode_",
    "nn.Module: SxcretBlock_3": "nn.Module: module_1_3",
    "sxcretpkg/model.py(3): sxcret_forward": "/model.py(3): fn_",
    "Optimizer.step#SxcretAdam.step": "Optimizer.step#",
    "torch/nn/modules/module.py(1553): _call_impl": "torch/nn/modules/module.py(1553): _call_impl",
}


def test_own_names_become_stable_words_and_stay_on_request() -> None:
    events, header = base()
    events += [
        micro.annotation("decode_sxcret", 60, 5), micro.frame("nn.Module: SxcretBlock_3", 60, 5),
        micro.frame("sxcretpkg/model.py(3): sxcret_forward", 60, 5), micro.annotation("Optimizer.step#SxcretAdam.step", 61, 1),
        micro.op("autograd::engine::evaluate_function: SxcretFnBackward", 62, 1), micro.op("sxcretlib::op", 62, 1),
        micro.op("c10d::allreduce_", 70, 5) | {"args": {"Process Group Description": "sxcret_mesh"}},
        micro.kernel("triton_poi_fused_sxcret_add_0", 90, 1) | {"args": {"kernel_file": "/data/sxcret/sxcret_kernels.py"}},
        micro.frame("torch/nn/modules/module.py(1553): _call_impl", 80, 5),
    ]  # fmt: skip
    text, kept = written(events, header), written(events, header, keep=["names"])
    assert b"sxcret" not in text.lower()
    assert kept.lower().count(b"sxcret") >= 8
    assert b"/data/sxcret" not in kept
    for name in (b"ProfilerStep#1", b"aten::mm", b"module.py(1553): _call_impl", b"nn.Module: module_1_3"):
        assert name in text


#: What came through lists of what to take out, with other values: what stands for it, and what may be left of it.
LEAKS = [
    "front2.cluster.hs-a.fr", "gpu07.phys.zqx.uk", "node23:4711", "rank on dgx-b04", "xx10_172.16.9.4_x", "z172.16.9.4q",
    "9c-b6-d0-1f-2e-3d", "/scratch/zqx/run", "/home3/zqx", "/u/zqx", "/home/48151623", "//depot/zqx", "[rank3]/data1/zqx",
    "-isystem/opt/zqx/include", "%2Fdata%2Fzqx%2Fx", "lustre/zqx/run/x.py", "git@forge:ZQX/zqx", "quay.io/zqx:latest",
    "SLURM_JOB_ACCOUNT=zqx", "MASTER_ADDR=node9", "nid001234", "user zqx on zqx-login",
]  # fmt: skip
LEFT = re.compile(
    r"zqx|ZQX|front2|gpu07|node23|node9|dgx-b04|172\.16|16\.9|9c-b6|home3|48151623|depot|data1|forge|4711|nid00|phys"
)


@pytest.mark.parametrize("leak", LEAKS)
def test_what_lists_let_through_is_gone(leak: str) -> None:
    events, header = base()
    escaped = json.dumps(leak).replace("/", "\\u002f")
    events += [
        micro.annotation(leak, 60, 1), micro.frame(f"{leak}(3): f", 61, 1), micro.op(leak, 62, 1), micro.kernel(leak, 95, 1),
        micro.call(leak, 63, 1), micro.annotation(f"epoch 3 of {leak}, again", 64, 1),
        micro.op("c10d::allreduce_", 70, 1) | {"args": {"Process Group Description": leak, "Process Group Name": leak}},
        {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "args": {"name": leak}},
    ]  # fmt: skip
    header |= {
        "metadata": {"nested": [{"user": leak}]},
        "INFO": [leak],
        "distributedInfo": {"master_addr": leak, "rank": 0},
    }
    text = written(events, header).decode()
    assert LEFT.search(text) is None
    with TemporaryDirectory() as folder:
        path, target = Path(folder, "in.json"), Path(folder, "out.json")
        path.write_text(
            '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": '
            + escaped
            + ', "pid": 1, "tid": 1, "ts": 0, "dur": 9}]}'
        )
        share(path, target)
        assert LEFT.search(target.read_text()) is None


@pytest.mark.parametrize("key", ["ts", "dur", "tts", "tdur", "id", "bp", "s", "pid"])
@pytest.mark.parametrize("value", [{"zqx": 1}, ["zqx"], "zqx", {"a": {"b": "zqx"}}])
def test_objects_where_numbers_belong_are_left_out(key: str, value: Any) -> None:
    events, header = base()
    events.append({**micro.op("aten::mul", 60, 1), key: value})
    assert b"zqx" not in written(events, header)


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("annotation", "zqx_load_batch"), ("annotation", "zqx all_reduce"), ("frame", "zqx dataloader"),
        ("op", "zqx::reduce_scatter"), ("op", "zqxlib::all_gather_into"), ("kernel", "zqx_cross_device_reduce_2stage"),
        ("kernel", "zqxFlashAttnFwdKernel"), ("kernel", "zqx_rope_kernel<float>"), ("kernel", "zqx_dot_kernel_bf16"),
        ("kernel", "zqxgemmzqx_f16"), ("kernel", "zqxsoftmaxzqx"), ("kernel", "zqx_adam"), ("call", "cudaMallocZqx"),
        ("call", "cudaStreamSynchronizeZqx"), ("annotation", "zqx"), ("kernel", "zqx"),
        ("annotation", "step[DECODE bs=8 zqx=4]"), ("kernel", "zqxgemm_sm90_f32"), ("kernel", "zqx_gemv_bf16"),
        ("kernel", "zqx::bfloat16_copy_kernel_cuda"), ("kernel", "triton_poi_fused_zqx_all_reduce_2"),
        ("frame", "/home/zqx/triton/backends/amd/compiler.py(167): is_within_2gb"), ("op", "zqx::all_reduce"),
        ("frame", "/home/zqx/torch/autograd/graph.py(9): _engine_run_backward"), ("op", "sage::zqx_attn"),
        ("frame", "/tmp/torchinductor_zqx/ob/zqx.py(132): call"), ("annotation", "Optimizer.step#Zqx.step"),
    ],
)  # fmt: skip
def test_a_name_keeps_the_class_that_is_read_from_it(what: str, name: str) -> None:
    new = Names(Words()).clean(what, name)
    assert "zqx" not in new.lower()
    assert class_of(what, new) == class_of(what, name)


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1B2" * 9, "AKIA" + "QWER" * 4, "zq@example.org", "sk-" + "aB3" * 10, "hf_" + "abcD" * 6,
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0", "kQ7zX2mV9pL4tR8wB1nC6yD3", "kQ7zX2mV9pL4tR8wB1nC6yD3/fH5jS0aG",
    ],
)  # fmt: skip
def test_the_shape_of_a_secret_stops_the_writing(secret: str, tmp_path: Path) -> None:
    events, header = base()
    events.append(micro.annotation(f"x {secret}", 60, 1))
    assert secret.encode() not in written(events, header)
    if len(secret) > 24 or "@" in secret or "eyJ" in secret:
        path = tmp_path / "in.json"
        path.write_text(json.dumps({**header, "traceEvents": events}))
        with pytest.raises(TraceError, match="nothing was written"):
            share(path, tmp_path / "out.json", keep=["names", "users", "hosts", "paths"])
        assert not (tmp_path / "out.json").exists()


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
    names = Names(Words())
    assert [names.clean(what, name) for what in ("op", "kernel", "annotation", "frame")] == [name] * 4
    assert not names.removed


@pytest.mark.parametrize(
    ("what", "name", "new"),
    [
        # A generator's names are made of sizes and switches; an engine's of the batch's; C++ gives lengths.
        ("kernel", "Cijk_Alik_Bljk_BBS_BH_MT32x32x64_MI16x16x1_SN_1LDSB0_AF0EM1_UserArgs_ASGT3128_WG32_8_1", None),
        ("kernel", "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_ta1x8x2x1_1x4x1x64_gkgs", None),
        ("kernel", "Cijk_Alik_Bljk_BBS_Zqxabc", "gemm_bf16_kernel_1"),
        ("annotation", "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)", None),
        ("annotation", "step[DECODE bs=32 zqx=4]", "step[DECODE bs=32 fn_1=4]"),
        ("kernel", "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bLi256ELb0EEEvPT0_PT_PfS4_diiiiiiib", None),
        ("kernel", "_ZN6zqxlib11gemm_kernelIfLi64EEEvPT_", "_ZN8kernel_111gemm_kernelIfLi64EEEvPT_"),
        ("frame", "torch/utils/_foreach_utils.py(48): <genexpr>", None),
    ],
)  # fmt: skip
def test_names_of_generators_engines_and_compilers_are_read(what: str, name: str, new: str | None) -> None:
    assert Names(Words()).clean(what, name) == (new or name)


def test_words_are_the_same_in_traces_that_belong_together() -> None:
    names = Names(Words())
    first = names.clean("annotation", "zqx of vkq"), names.clean("frame", "/srv/zqx/x.py(3): vkq")
    later = Names(Words(names.words.mapping))
    assert later.clean("annotation", "of vkq") == f"of {first[0].split()[-1]}"
    assert (later.clean("annotation", "zqx of vkq"), later.clean("frame", "/srv/zqx/x.py(3): vkq")) == first


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("paths", "/srv/deep/x.py"),
        ("inputs", "3.5"),
        ("header", "log line"),
        ("args", "of batch"),
        ("processes", "my worker"),
        ("hosts", "node17"),
        ("users", "alice9"),
        ("names", "zqx_step"),
    ],
)
def test_a_kind_can_be_kept(kind: str, kept: str) -> None:
    assert kind in KINDS
    events, header = base()
    header |= {"INFO": ["log line"], "host_name": "node17", "username": "alice9"}
    events[1]["args"] |= {"Concrete Inputs": ["3.5"], "new": "of batch"}
    events += [micro.frame("/srv/deep/x.py(3): f", 60, 1), micro.annotation("zqx_step", 70, 1)]
    events.append({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "my worker"}})
    assert kept.encode() not in written(events, header)
    assert kept.encode() in written(events, header, keep=[kind])


@pytest.mark.parametrize("start", ["Cijk_Alik_Bljk_BBS", "igemm_fwd", "_ZN2ck"])
@pytest.mark.parametrize("unit", ["_AB1", "_CLR0x1", "_1LDSB0EM1", "_ABCDEFGHn0", "_ab1x1", "_1x2", "1a", "Li4E", "S_"])
def test_a_name_that_begins_as_a_generators_takes_time_that_follows_its_length(start: str, unit: str) -> None:
    started = time.process_time()
    Names(Words()).clean("kernel", start + unit * 2_000 + "!Zqx")
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "unit",
    ["a.", "a-", "/a", "\\", "a:", "::", "a@", "1.", "~", "$A", "//", "a b/", "(1", "'a", "a/home", "ip-1-", "USER="],
)
def test_a_string_of_a_stranger_takes_time_that_follows_its_length(unit: str) -> None:
    """A pattern that looks at a string again from each of its letters would need minutes here."""
    text, names = unit * (100_000 // len(unit)), Names(Words())
    started = time.process_time()
    names.clean("text", text), names.clean("frame", text), names.clean("kernel", text)
    assert time.process_time() - started < 5
