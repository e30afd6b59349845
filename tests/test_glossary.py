"""`tracecli explain` knows every word that the report uses for time."""

from __future__ import annotations

import pytest

from analyzer import glossary
from analyzer.analyses.verdict import Judgement
from analyzer.index.activity import Cause
from analyzer.index.parts import Part
from analyzer.report.columns import columns_of


def test_every_cause_and_every_part_is_explained():
    assert set(glossary.CAUSES) == set(Cause)
    assert set(glossary.PARTS) == set(Part)


@pytest.mark.parametrize("word", [c.key for c in Cause] + [p.key for p in Part])
def test_a_word_is_explained_however_it_is_spelt(word):
    text = glossary.entry(word)
    assert text is not None
    assert word in text
    assert glossary.entry(word.replace("_", " ")) == glossary.entry(word.replace("_", "-").upper()) == text


def test_a_part_names_the_causes_that_it_is_made_of():
    text = glossary.entry("waits")
    assert text is not None
    assert "Causes of idle time in it: blocking_sync, pageable_copy." in text


def test_a_word_that_is_both_is_explained_as_both():
    text = glossary.entry("profiler")
    assert text is not None
    assert "profiler: a part of the window" in text
    assert "profiler: a cause of idle time" in text


def test_every_verdict_of_a_part_is_explained():
    bounds = columns_of(Judgement)["bound"].choices
    for bound in bounds:
        if bound not in ("mixed", "cpu-only", "nothing-to-judge"):
            assert glossary.entry(bound) is not None, bound


def test_explain_prints_a_finding_and_the_part_of_its_name():
    from click.testing import CliRunner

    from analyzer import cli

    runner = CliRunner()
    both = runner.invoke(cli.cli, ["explain", "overhead-bound"]).output
    assert "What to try" in both
    assert "dispatch: a part of the window" in both
    close = runner.invoke(cli.cli, ["explain", "launch-latencies"])
    assert close.exit_code == 2
    assert "launch_latency" in close.output
