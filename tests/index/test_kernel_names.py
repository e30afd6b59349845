# ruff: noqa: E501  a name that is cut is no name
"""What a kernel's name says. Names and what they are were recorded: dtype and operator of the run are known."""

from __future__ import annotations

import re

import pytest

from analyzer.index.kernel_names import Decoded, decode

#: (name, kind, precision, tile, tensor cores)
PRODUCTS = [
    # torch.mm of 2048 × 2048 in fp16, fp32, fp64 and fp32 with TF32 allowed, on an H200
    ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "gemm", "fp16", "256x128", True),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm_256x128_8x4_nn_align1::"
     "Params)", "gemm", "fp32", "256x128", False),
    ("sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize128x64x16_stage3_warpsize2x2x1_tensor16x8x8_execute_kernel__5x_"
     "cublas", "gemm", "fp64", "128x64x16", True),
    ("sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_"
     "cublas", "gemm", "tf32", "128x256x32", True),
    # bf16: cuBLAS on Hopper and Blackwell, CUTLASS of three generations
    ("nvjet_sm90_tst_64x8_64x16_1x4_h_badd_NNT", "gemm", "bf16", "64x8", True),
    ("nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT", "gemm", "bf16", "64x16", True),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_"
     "cublas", "gemm", "bf16", "128x128x64", True),
    ("void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1>(int)", "gemm", "bf16", "256x128", True),
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>(int)", "gemm", "bf16",
     "128x64", True),
    ("void cutlass::Kernel<cutlass_70_wmma_tensorop_f16_s161616gemm_f16_32x32_64x2_tn_align8>(int)", "gemm", "fp16",
     "32x32", True),
    # fp32: TF32 without saying so, and CUDA cores
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>(int)", "gemm", "tf32", "128x128", True),
    ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__"
     "5x_cublas", "gemm", "fp32", "128x128x8", False),
    ("ampere_sgemm_32x32_sliced1x4_tn", "gemm", "fp32", "32x32", False),
    ("volta_sgemm_128x64_nn", "gemm", "fp32", "128x64", False),
    ("ampere_gcgemm_64x64_nt", "gemm", "complex64", "64x64", None),
    ("void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4>(int)", "gemm",
     "bf16", None, False),
    # AMD: Tensile and hipBLASLt, MIOpen's assembly
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x256_MI16x16x1_SN_LDSB1", "gemm", "bf16", "16x16x256", True),
    ("Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x128_MI16x16x1_SN", "gemm", "bf16", "64x32x128", True),
    ("Cijk_Ailk_Bjlk_HHS_BH_MT128x128x32_MI32x32x8x1_SN", "gemm", "fp16", "128x128x32", True),
    ("Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN", "gemm", "fp32", "64x16x32", True),
    ("igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt128x64x32_wt32x32x8_ws1x1", "convolution", "bf16", "128x64x32", True),
    # microscaling formats, and weights that are narrower than the inputs
    ("bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_sm100f", "gemm", "fp4", "128x16x256", True),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "gemm", "bf16", "16x128", None),
    # convolutions
    ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x64x32_stage5_warpsize2x2x1_g1_"
     "tensor16x8x8_execute_kernel__5x_cudnn", "convolution", "tf32", "128x64x32", True),
    ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_256x64_16x4_nhwc_unity_stride_align4>(int)",
     "convolution", "tf32", "256x64", True),
    ("cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1", "convolution", "fp32", "128x64", False),
    # attention; cuDNN says f16 for either 16-bit format, so that the name does not tell which
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0", "attention",
     None, "64x128", True),
    ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
     "attention", "bf16", "64x64", True),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t> >",
     "attention", "bf16", None, True),
    ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext", "attention", "fp8", None, True),
    ("triton_tem_fused_mm_0", "gemm", None, None, None),
    ("triton_tem_fused_flex_attention_0", "attention", None, None, None),
]  # fmt: skip

KINDS = {
    "communication": ["ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                      "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
                      "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)"],
    "softmax": ["void (anonymous namespace)::softmax_warp_forward<float, float, float, 11, false, false>(float*)",
                "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float>(int)",
                "triton_red_fused__softmax_0"],
    "normalisation": ["void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int)",
                      "void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*)",
                      "void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float)",
                      "triton_per_fused_add_native_layer_norm_view_5"],
    "reduction": ["void at::native::reduce_kernel<512, 1, at::native::ReduceOp<double> >(int)", "triton_red_fused_sum_1"],
    "elementwise": ["void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
                    "triton_poi_fused_add_mul_relu_sin_sub_tanh_0", "SubTensorOpWithCastTensor1d",
                    "void rotary_embedding_kernel<c10::BFloat16, true>(long const*)"],
    "copy": ["void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>",
             "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1, 128, 1>(float*)",
             "void at::native::multi_tensor_apply_kernel<TensorListMetadata<2>, at::native::Copy<float, float> >(int)"],
    "layout": ["void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(float)", "batched_transpose_32x32_half"],
    "memset": ["void at::native::vectorized_elementwise_kernel<2, at::native::FillFunctor<double> >(int)"],
    "embedding": ["void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long>(int)"],
    "optimizer": ["void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)"],
    "pooling": ["void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>(int, float const*)"],
    "random": ["void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4>(int)"],
    "sort and scan": ["void cub::DeviceScanKernel<cub::AgentScanPolicy<128, 15, int> >(int)", "_topk_forward"],
    "other": ["my_kernel", "", "merge"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind", "precision", "tile", "tensor_cores"), PRODUCTS, ids=[p[0][:48] for p in PRODUCTS]
)
def test_a_product_says_its_format_tile_and_cores(name, kind, precision, tile, tensor_cores):
    of = decode(name)
    assert (of.kind, of.precision, of.tile, of.tensor_cores, of.stores) == (kind, precision, tile, tensor_cores, None)


#: What tells that a product was built for Ampere or later: no other name above does.
LATER = re.compile("ampere|sm[89]0|[Ss]m100|cutlass_80|nvjet")


@pytest.mark.parametrize("name", [p[0] for p in PRODUCTS], ids=[p[0][:48] for p in PRODUCTS])
def test_a_product_says_whether_tensor_cores_could_take_it(name):
    assert decode(name).ampere == (LATER.search(name) is not None)
    assert decode(name).vector == ("gemv" in name)


@pytest.mark.parametrize(
    ("name", "later"),
    [
        ("turing_fp16_s1688gemm_fp16_128x128", False),
        ("sm75_xmma_gemm_f16f16", False),
        ("sm70_gemm", False),
        ("sm86_xmma_gemm", True),
        ("sm_120_gemm", True),
        ("hopper_gemm", True),
        ("mgemmsm800_gemm", False),
    ],
)
def test_an_architecture_is_told_from_other_numbers(name, later):
    assert decode(name).ampere == later


@pytest.mark.parametrize(
    ("name", "stores"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)"
         "::{lambda(float)#1}>", "bf16"),
        ("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)"
         "::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, "
         "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >", "fp32"),
        ("void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)"
         "::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}>", None),
    ],
)  # fmt: skip
def test_a_conversion_says_what_it_stores(name, stores):
    assert decode(name).stores == stores


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
def test_other_kernels_say_their_kind_and_no_more(kind, name):
    assert decode(name) == Decoded(kind)


@pytest.mark.parametrize(
    "name",
    [
        "a" * 100_000,
        "gemm" * 20_000,
        "void f<" + "int, " * 20_000 + "int>()",
        "\x00\x1b[31m",
        "direct_copy_kernel_cuda" * 20_000 + "\n" + "LoadWithCast" * 20_000,
    ],
)
def test_a_hostile_name_is_read_in_linear_time(name):
    assert isinstance(decode(name), Decoded)
