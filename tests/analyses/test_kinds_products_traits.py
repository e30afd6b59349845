"""Device time by kind, products by format and unit, and what the names say of the program."""

from __future__ import annotations

import pytest

from tests.micro import H100, call, chain, frame, kernel, launch, memcpy, memset, op

SGEMM = "ampere_sgemm_128x64_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


def test_time_by_kind_with_who_launched_it(contract):
    micro = [*chain("aten::mm", 0, 1, 10, 30, kernel_name=SGEMM), *chain("aten::add", 50, 2, 60, 5, kernel_name=ADD),
             *chain("aten::mul", 80, 3, 90, 6, kernel_name=ADD), memcpy("DtoD", 100, 7), memset(110, 1)]  # fmt: skip
    found = {row["kind"]: row for row in contract(micro)["kinds"]}
    assert {kind: (row["events"], row["total_us"]) for kind, row in found.items()} == {
        "gemm": (1, 30), "elementwise": (2, 11), "copy": (1, 7), "memset": (1, 1),
    }  # fmt: skip
    assert list(found) == ["gemm", "elementwise", "copy", "memset"]
    assert found["elementwise"]["operators"] == [{"name": "aten::mul", "us": 6}, {"name": "aten::add", "us": 5}]
    assert found["copy"]["operators"] == []  # unlinked


def test_products_that_run_side_by_side_fill_each_moment_once(contract):
    """[10, 40] and [20, 60] on another stream: 70 µs of kernels in 50 of time."""
    micro = [*chain("aten::mm", 0, 1, 10, 30, kernel_name=SGEMM),
             *chain("aten::mm", 12, 2, 20, 40, kernel_name=SGEMM)]  # fmt: skip
    micro[-1]["args"]["stream"] = 8
    (product,) = contract(micro)["products"]
    assert product == {
        "precision": "fp32", "tensor_cores": False, "could_use_tensor_cores": True, "events": 2, "device_us": 50,
        "tensor_core_format": "tf32", "kernels": [SGEMM],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "major", "could"),
    [
        (SGEMM, 9, True),
        ("volta_sgemm_128x64_nn", 8, True),
        ("volta_sgemm_128x64_nn", 7, False),
        (SGEMM, 7, True),  # the name itself says Ampere
        ("volta_sgemm_128x64_nn", "nine", False),
        ("gemv2T_kernel_val<float>", 9, False),
    ],
)
def test_tensor_cores_take_fp32_from_ampere_on_but_no_vectors(contract, name, major, could):
    micro = chain("aten::mm", 0, 1, 10, 30, kernel_name=name)
    (product,) = contract(micro, devices=[{**H100, "computeMajor": major}])["products"]
    assert product["could_use_tensor_cores"] is could


def test_other_kernels_are_no_products(contract):
    assert contract(chain("aten::add", 0, 1, 10, 5, kernel_name=ADD))["products"] == []


@pytest.mark.parametrize(
    ("name", "trait"),
    [
        ("autograd::engine::evaluate_function: AddmmBackward0", "training"),
        ("MulBackward0", "training"),
        ("DistributedDataParallel.forward", "data_parallel"),
        ("aten::item", "reads_values"),
        ("aten::nonzero", "reads_values"),
        ("aten::nonzero_static", None),
    ],
)
def test_names_tell_what_kind_of_program_it_is(contract, name, trait):
    found = contract([op(name, 0, 10)])["traits"]
    assert {key for key in ("training", "data_parallel", "reads_values") if found[key]} == ({trait} if trait else set())


def test_where_compiled_code_resumes_is_a_place_each(contract):
    places = [("forward", 12), ("forward", 12), ("forward", 7), ("loss", 3)]
    micro = [frame(f"m.py({i}): torch_dynamo_resume_in_{f}_at_{n}", 10 * i, 9) for i, (f, n) in enumerate(places)]
    assert contract([*micro, kernel("k", 0, 1)])["traits"]["resumes"] == [
        {"function": "forward", "line": "12"}, {"function": "forward", "line": "7"}, {"function": "loss", "line": "3"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "platform"),
    [
        (["cudaLaunchKernel"], "cuda"),
        (["cuLaunchKernelEx"], "cuda"),
        (["hipLaunchKernel", "hipMemcpyWithStream"], "hip"),
        (["hipLaunchKernel", "hipLaunchKernel", "cuLaunchKernel"], "hip"),
        (["musaLaunchKernel"], "musa"),
        (["urEnqueueKernelLaunch"], "xpu"),
        (["zeCommandListAppendLaunchKernel"], "xpu"),
        (["runModel"], None),
        ([], None),
    ],
)
def test_the_platform_is_that_of_most_calls(contract, calls, platform):
    micro = [call(name, 10 * i, 5) for i, name in enumerate(calls)]
    assert contract([op("aten::mm", 200, 10), *micro])["traits"]["platform"] == platform


def test_an_operator_with_a_platforms_name_is_no_call_of_it(contract):
    micro = [op("hipLaunchKernel", 0, 10), op("hipLaunchKernel", 20, 10), launch("cudaLaunchKernel", 40, 5, 1)]
    assert contract(micro)["traits"]["platform"] == "cuda"
