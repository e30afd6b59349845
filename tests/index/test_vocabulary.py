"""What names mean: calls, roles, frames and kernels."""

from __future__ import annotations

import polars as pl
import pytest

from analyzer.index.kernel_names import decode
from analyzer.index.vocabulary import CALLS, FRAMES, PAGEABLE, PROFILER_OVERHEAD, ROLES, Call, Role, classify, matches


def kind_of_call(name: str) -> Call:
    return Call(int(classify(pl.Series([name]), CALLS)[0]))


def role_of(name: str, rules=ROLES) -> Role:
    return Role(int(classify(pl.Series([name]), rules)[0]))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Call.WAIT, "cudaDeviceSynchronize cudaStreamSynchronize cudaStreamSynchronize_ptsz cudaEventSynchronize "
                    "cuCtxSynchronize cuStreamSynchronize hipDeviceSynchronize hipStreamSynchronize urQueueFinish "
                    "urEventWait zeEventHostSynchronize zeCommandQueueSynchronize zeCommandListHostSynchronize"),
        (Call.LAUNCH, "cudaLaunchKernel cudaLaunchKernelExC cudaLaunchKernel_ptsz cudaLaunchCooperativeKernel "
                      "cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel hipLaunchKernel hipExtLaunchKernel "
                      "hipModuleLaunchKernel hipExtModuleLaunchKernel urEnqueueKernelLaunch piEnqueueKernelLaunch "
                      "zeCommandListAppendLaunchKernel runFunction"),
        (Call.GRAPH, "cudaGraphLaunch cuGraphLaunch hipGraphLaunch cudaGraphLaunch_ptsz"),
        (Call.ALLOCATE, "cudaMalloc cudaMallocAsync cudaFree cudaFreeAsync cudaHostAlloc cudaFreeHost cudaMallocHost "
                        "cudaHostRegister cuMemAlloc_v2 cuMemCreate cuMemMap cuMemUnmap cuMemAddressReserve hipMalloc "
                        "hipFree hipHostMalloc urUSMDeviceAlloc cudaMemPoolTrimTo"),
        (Call.LOAD, "cuModuleLoadData cuModuleLoadDataEx cuModuleGetFunction cuLibraryLoadData cuLibraryGetKernel "
                    "cuKernelGetFunction cudaLibraryLoadData cudaGetFuncBySymbol hipModuleLoad hipModuleGetFunction "
                    "cuInit cuLinkCreate_v2"),
        (Call.COPY, "cudaMemcpy cudaMemcpyAsync cudaMemcpy2DAsync cuMemcpyDtoHAsync_v2 hipMemcpyWithStream "
                    "hipMemcpyAsync urEnqueueUSMMemcpy"),
        (Call.FILL, "cudaMemset cudaMemsetAsync cuMemsetD32Async hipMemsetAsync urEnqueueUSMFill"),
        (Call.OCCUPANCY, "cudaOccupancyMaxActiveBlocksPerMultiprocessor "
                         "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags cudaOccupancyMaxActiveClusters "
                         "cudaOccupancyMaxPotentialClusterSize cudaOccupancyAvailableDynamicSMemPerBlock "
                         "cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveClusters "
                         "hipOccupancyMaxActiveBlocksPerMultiprocessor "
                         "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"),
        (Call.ATTRIBUTE, "cudaFuncGetAttributes cudaFuncSetAttribute cudaDeviceGetAttribute cudaPointerGetAttributes "
                         "cudaGetDevice cudaSetDevice cuFuncGetAttribute cudaGetDeviceProperties_v2 "
                         "cudaDeviceGetStreamPriorityRange cudaStreamGetPriority"),
        (Call.OTHER, "cudaEventRecord cudaEventQuery cudaStreamIsCapturing cudaStreamWaitEvent cudaGetLastError "
                     "cudaPeekAtLastError cudaEventCreateWithFlags"),
        (Call.BEGIN_CAPTURE, "cudaStreamBeginCapture cudaStreamBeginCapture_v2 hipStreamBeginCapture"),
        (Call.END_CAPTURE, "cudaStreamEndCapture hipStreamEndCapture"),
        (Call.INSTANTIATE, "cudaGraphInstantiate cudaGraphInstantiateWithFlags hipGraphInstantiate"),
    ],
)  # fmt: skip
def test_a_call_is_what_its_name_says_with_any_vendors_prefix_and_any_suffix(kind, names):
    assert {name: kind_of_call(name).name for name in names.split()} == dict.fromkeys(names.split(), kind.name)


@pytest.mark.parametrize(
    ("role", "names"),
    [
        (Role.STEP, ["ProfilerStep#1", "ProfilerStep* 3"]),
        (Role.REGION, ["Torch-Compiled Region", "Torch-Compiled Region: 0/1", "CompiledFunction",
                       "CompiledFunctionBackward"]),
        (Role.GUARDS, ["TorchDynamo Cache Lookup"]),
        (Role.PROLOGUE, ["AOTDispatcher Runtime Wrapper Prologue", "Pregraph bytecode"]),
        (Role.REGION_PART, ["## Call CompiledFxGraph fabc ##", "CompiledFxGraph fabc"]),
        (Role.COMPILE, ["entire_frame_compile (dynamo_timed)", "_compile.compile_inner", "compile_fx_inner"]),
        (Role.INPUT, ["enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "load_batch", "data loading",
                      "fetch_data", "preprocess", "next_batch", "data_wait"]),
        (Role.COLLECTIVE, ["gloo:broadcast", "mpi:all_reduce", "c10d::barrier", "_c10d_functional::wait_tensor"]),
        (Role.DISPATCH, ["nccl:all_reduce", "c10d::allreduce_", "record_param_comms", "FSDP::all_gather", "aten::mm",
                         "aten::copy_", "forward", "decode_token", "Optimizer.step#AdamW.step", "aten::add",
                         "aten::index_put_", "autograd::engine::evaluate_function: AddBackward0"]),
    ],
)  # fmt: skip
def test_an_operator_or_annotation_is_what_its_name_says(role, names):
    assert {name: role_of(name).name for name in names} == dict.fromkeys(names, role.name)


@pytest.mark.parametrize(
    ("role", "name"),
    [
        (Role.INPUT, "/usr/lib/python3/torch/utils/data/_utils/fetch.py(50): fetch"),
        (Role.COMPILE, "torch/_dynamo/convert_frame.py(500): __call__"),
        (Role.COMPILE, "/x/torch/_inductor/codecache.py(10): load"),
        (Role.REGION_PART, "torch/_dynamo/eval_frame.py(600): _fn"),  # runs compiled code, compiles nothing
        (Role.REGION_PART, "torch/_functorch/aot_autograd.py(1184): forward"),
        (Role.COMPILE, "torch/_functorch/aot_autograd.py(900): aot_module_simplified"),
        (Role.COMPILE, "torch/_inductor/runtime/triton_heuristics.py(900): benchmark_all_configs"),
        (Role.REGION_PART, "torch/_inductor/runtime/triton_heuristics.py(900): run"),
        (Role.COMPILE, "/src/triton/python/triton/backends/amd/compiler.py(300): make_llir"),
        (Role.COMPILE, "triton/compiler/compiler.py(226): compile"),
        (Role.DISPATCH, "/src/triton/python/triton/backends/amd/compiler.py(167): is_within_2gb"),
        (Role.DISPATCH, "triton/backends/compiler.py(88): get_tensor_specialization"),
        (Role.DISPATCH, "triton/compiler/compiler.py(482): launch_metadata"),
        (Role.INPUT, "/x/transformers/image_processing_utils_fast.py(3): preprocess"),
        (Role.INPUT, "data.py(3): __getitem__"),
        (Role.DISPATCH, "/x/torch/nn/modules/container.py(3): __getitem__"),
        (Role.DISPATCH, "my_torch/utils/database.py(3): query"),
    ],
)
def test_a_frame_is_what_its_file_says(role, name):
    assert role_of(name, FRAMES) == role


def test_neither_module_loading_nor_a_full_queue_is_the_profilers_own_time():
    names = pl.Series(["Activity Buffer Request", "Command Buffer Full", "Buffer Flush", "Lazy Function Loading",
                       "Runtime Triggered Module Loading"])  # fmt: skip
    assert matches(names, PROFILER_OVERHEAD).tolist() == [True, False, True, False, False]


def test_pageable_copies_say_so_in_their_names():
    names = pl.Series(["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)",
                       "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoD (Device -> Device)"])  # fmt: skip
    assert matches(names, PAGEABLE).tolist() == [True, True, False, False]


# -- kernels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("gemm", "nvjet_sm90_tst_64x8_64x16_4x2_h_bz_bias_TNT"),
        (
            "gemm",
            "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_warpsize2x2x1_tensor16x8x16_kernel",
        ),
        ("gemm", "ampere_sgemm_128x64_tn"),
        ("gemm", "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1_SN"),
        ("attention", "pytorch_flash::flash_fwd_kernel<...>"),
        ("attention", "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(...)"),
        ("attention", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x64x64_4x1x1_kernel0_0"),
        ("communication", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
        ("softmax", "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float, 9>(...)"),
        ("normalisation", "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(...)"),
        ("elementwise", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"),
        ("elementwise", "triton_poi_fused_add_0"),
        ("reduction", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(...)"),
        ("reduction", "triton_red_fused_sum_1"),
        ("convolution", "implicit_convolve_sgemm"),
        ("other", "my_kernel"),
    ],
)
def test_a_kernels_kind_is_read_from_its_name(kind, name):
    assert decode(name).kind == kind


@pytest.mark.parametrize(
    ("name", "precision", "tile", "tensor_cores"),
    [
        ("ampere_sgemm_128x64_tn", "fp32", "128x64", False),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn", "bf16", "128x64", True),
        ("nvjet_sm90_tst_64x8_64x16_4x2_h_bz_bias_TNT", "bf16", "64x8", True),
        ("volta_h884gemm_128x64_ldg8_nn", "fp16", "128x64", True),
        ("cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1", "fp64", "64x64", True),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_kernel", "tf32", None, True),
    ],
)
def test_a_matrix_products_number_format_and_cores_are_read_from_its_name(name, precision, tile, tensor_cores):
    found = decode(name)
    assert (found.precision, found.tensor_cores) == (precision, tensor_cores)
    if tile:
        assert found.tile.startswith(tile)


def test_other_kernels_have_no_number_format():
    found = decode("void at::native::vectorized_elementwise_kernel<4, float>()")
    assert (found.precision, found.tile, found.tensor_cores) == (None, None, None)
