"""Kind of device work: by what the trace says first, by names last."""

from __future__ import annotations

import pytest

from analyzer.index.kernel_names import decode
from tests.micro import complete, kernel, launch, memcpy, op

COMMUNICATION = [
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_SendRecv_RING(x)",
    "void ncclSymkDevKernel_AllGather_ST(x)", "rcclGenericKernel<1>(x)", "mscclpp::allreduce6<float>(x)",
    "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)", "void deep_ep::intranode::combine<8>(int)",
    "mori::moe::EpDispatchIntraNodeKernel<float>(x)", "nvshmemi_transfer_kernel(x)", "rocshmem_alltoall_kernel",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(x)", "void sglang::cross_device_reduce_2stage<half, 4>(x)",
    "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(x)",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)",
    "void c10d::symmetric_memory::two_shot_all_reduce_kernel<float>(x)", "kuserbuffers_pullsend(int)",
    "one_shot_all_reduce_kernel",
]  # fmt: skip
OTHER = [
    "triton_poi_fused_add_all_reduce_2", "triton_red_fused__to_copy_all_gather_into_tensor_mean_3",
    "void at::native::_scatter_gather_elementwise_kernel<128, 4>(int)", "void at::native::reduce_kernel<512, 1>(x)",
    "my_reduce_scatterless_gemm", "_finalize_matmul_scatter_bf16",
    "void at::native::vectorized_gather_kernel<16, long>(x)",
]  # fmt: skip


@pytest.mark.parametrize("name", COMMUNICATION)
def test_libraries_that_communicate_are_known_by_the_beginning_of_a_name(name):
    assert decode(name).kind == "communication"


@pytest.mark.parametrize("name", OTHER)
def test_a_word_somewhere_in_a_name_says_nothing(name):
    assert decode(name).kind != "communication"


def kinds(built):
    return built.device.frame["kind"].to_list()


def test_what_the_profiler_calls_a_collective_is_one(chains):
    work = kernel("anything", 10, 5, 1)
    work["args"]["Collective name"] = "allreduce"
    assert kinds(chains([op("x", 0, 1), work])) == ["communication"]


def launched_by(name: str, kernel_name: str):
    return [op(name, 0, 20), launch("cudaLaunchKernel", 5, 5, 1), kernel(kernel_name, 15, 5, 1)]


@pytest.mark.parametrize(
    ("operator", "name", "kind"),
    [
        ("vllm::all_reduce", "lamport_push", "communication"),
        ("symm_mem::one_shot_all_reduce", "one", "communication"),
        ("vllm::all_reduce", "void at::native::vectorized_elementwise_kernel<4>(x)", "elementwise"),  # scales its input
        ("vllm::all_reduce", "triton_poi_fused_add_0", "elementwise"),
        ("aten::all", "reduce", "other"),
        ("fsdp::all_gather_copy_in", "pack", "other"),
    ],
)
def test_what_a_collective_operator_launches_itself_is_communication_unless_its_name_says_otherwise(
    chains, operator, name, kind
):
    assert kinds(chains(launched_by(operator, name))) == [kind]


def test_copies_between_devices_wait_for_the_link(chains):
    assert kinds(chains([memcpy("PtoP (Device -> Device)", 0, 5)])) == ["communication"]
    assert kinds(chains([memcpy("DtoD (Device -> Device)", 0, 5)])) == ["copy"]


def test_a_lane_that_is_no_kernel_has_its_category(chains):
    fill = complete("gpu_memset", "anything", 0, 5, 0, 7, {"device": 0, "stream": 7})
    assert kinds(chains([fill])) == ["memset"]
