"""What is found in each fixture is what an expert would sign: names, order, and the first advice.

The manifest says which findings, reviewed one by one. `python -m tests.findings.expected` prints the differences.
"""

from __future__ import annotations

import pytest

from analyzer import findings, pipeline
from tests.findings import expected
from tests.findings.expected import all_of, shown
from tests.recorded import FINDINGS, MANIFEST, NAMES, report_of

#: What a reader is told to do first, by words of the first finding's title, evidence and advice.
FIRST = {
    "decode_eager": ("overhead-bound", "CUDA graph", "149 a step"),
    "train_eager": ("overhead-bound", "torch.compile", "optimizer's fused=True"),
    "input_starved_w0": ("input-starvation", "num_workers", "_SingleProcessDataLoaderIter"),
    "attention_naive": ("unfused-attention", "scaled_dot_product_attention", "masked_fill_"),
    "attention_sdpa_math": ("sdpa-math-backend", "sdpa_kernel", "fp32"),
    "allocator_thrash": ("allocator-churn", "torch.cuda.empty_cache()", "aten::empty"),
    "cold_process": ("cold-start", "first aten::mm: 76.1 ms", "occupancy queries", "buffer request"),
    "ddp2.rank-0": ("exposed-communication", "Compare the ranks first"),
    "pointwise_chain_eager": ("dominant-kernel", "5 different kernels", "torch.compile fuses"),
    "spikes_other_process": ("kernel-spike", "14 lone calls", "5 bursts"),
}


def test_every_fixture_has_been_judged_and_nothing_else():
    assert set(FINDINGS) == set(MANIFEST)
    known = {module.NAME for module in pipeline.modules(findings)}
    for name, said in FINDINGS.items():
        assert set(said) == {"must", "notes", "why"}, name
        assert {*said["must"], *said["notes"]} <= known, name
        assert said["why"], name


@pytest.mark.parametrize("name", NAMES)
def test_a_fixture_shows_the_findings_that_it_must(name):
    assert expected.differences(name) == []


def test_the_command_says_what_came_what_went_and_what_to_write(monkeypatch, capsys):
    name = "decode_eager"
    assert expected.main([name]) == 0
    monkeypatch.setitem(FINDINGS, name, {"must": ["overhead-bound", "cold-start"], "notes": [], "why": "as it is"})
    assert expected.main([name]) == 1
    said = capsys.readouterr().out
    assert "no longer cold-start" in said
    assert "now cudnn-plan-cost (warning): cuDNN" in said
    assert '"must": ["overhead-bound", "cudnn-plan-cost"]' in said
    monkeypatch.setitem(FINDINGS[name], "must", ["cudnn-plan-cost", "overhead-bound"])
    assert "must: in another order" in expected.differences(name)


@pytest.mark.parametrize(("name", "said"), FIRST.items(), ids=list(FIRST))
def test_the_first_advice_is_the_one_an_expert_would_give_first(name, said):
    finding, *words = said
    first = report_of(name).findings[0]
    assert first.name == finding
    assert [word for word in words if word not in all_of(first)] == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_claims_more_than_the_window(name):
    assert [f for f in report_of(name).findings if f.share is not None and not 0 <= f.share <= 1] == []


def test_every_wait_of_hidden_syncs_is_named_with_its_operator():
    (waits,) = (f for f in report_of("hidden_syncs").findings if f.name == "blocking-sync")
    assert "3 a step" in waits.title
    for operator in ("aten::nonzero", "aten::is_nonzero > aten::item", "aten::to > aten::_to_copy > aten::copy_"):
        assert operator in "\n".join(waits.evidence)


def test_the_tax_that_the_device_hides_is_said_to_be_hidden():
    (tax,) = (f for f in shown("matmul_add_4096_warm_default_20")["notes"] if f.name == "compile-tax")
    assert "hidden behind the device" in tax.title
    assert tax.up_to_ns is None
