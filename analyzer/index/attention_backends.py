"""Which backend an attention operator is, by its name: cuDNN's kernels have "flash" in theirs."""

from __future__ import annotations

#: Operator -> backend. Forward calls only; first match wins.
BACKENDS: tuple[tuple[str, str], ...] = (
    (r"^aten::_scaled_dot_product_flash_attention(?:_for_cpu)?$", "flash"),
    (r"^aten::_scaled_dot_product_efficient_attention$", "efficient"),
    (r"^aten::_scaled_dot_product_cudnn_attention$", "cudnn"),
    (r"^aten::_scaled_dot_product_attention_math(?:_for_mps)?$", "math"),
    (r"^aten::_scaled_dot_product_fused_attention_overrideable$", "overrideable"),
    (r"^aten::_flash_attention_forward$", "flash"),
    (r"^aten::_efficient_attention_forward$", "efficient"),
    (r"^aten::_cudnn_attention_forward$", "cudnn"),
    (
        r"(?i)^flash_attn(?:_\w+)?::\w*fwd|^flash_attn\w*::_flash_attn\w*forward|^FlashAttn(?:VarlenFunc|Func)?$",
        "flash",
    ),
    (r"(?i)^xformers.*efficient_attention_forward_ck", "ck"),
    (r"(?i)^xformers.*efficient_attention_forward", "efficient"),
    (r"(?i)^sage\w*::\w*(?:attn|qk)|^sage_?attn\w*$", "sage"),
    (r"(?i)^aiter::\w*(?:fmha|mha|mla|attn|attention|pa)(?:_\w*)?(?:fwd|forward|prefill|decode)\w*$", "aiter"),
    (r"(?i)^flashinfer::\w*(?:attention|prefill|decode|mla)\w*", "flashinfer"),
    (r"(?i)^(?:triton_tem_fused|triton_flex)\w*flex_attention|^flex_attention$", "flex"),
    (r"(?i)^(?:vllm|sglang|sgl)::\w*attention|^_C(?:_cache_ops)?::paged_attention\w*", "serving engine"),
)
