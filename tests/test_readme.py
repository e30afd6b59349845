"""The README shows what the commands print, names every command, and its commands work."""

from __future__ import annotations

import re

import click
import pytest

from analyzer.cli import cli
from tests.readme import README, blocks, output

TEXT = README.read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "head", "shown"), blocks(TEXT), ids=lambda value: str(value)[:60])
def test_a_block_is_what_its_command_prints(command: str, head: str | None, shown: str) -> None:
    assert shown == output(command, head), "python -m tests.readme --write"


def test_there_are_blocks_to_check() -> None:
    assert len(blocks(TEXT)) >= 4


def test_every_command_is_named() -> None:
    for name in cli.list_commands(click.Context(cli)):
        assert f"tracecli {name}" in TEXT, name


def test_relative_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http|#)([^)]+)\)", TEXT):
        assert (README.parent / target).exists(), target
