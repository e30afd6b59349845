"""One report, several kinds: each has a schema, shows in every format, and is the same when read again."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from analyzer import saved
from analyzer.compare.report import compare
from analyzer.errors import TraceError
from analyzer.render import Options, load, names, render
from analyzer.report.document import Report
from tests import kinds

KINDS = ("run", "file", "comparison", "check")
WHOLE = Options(only=("all",), top=1000)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    return kinds.of_each(tmp_path_factory.mktemp("kinds"))


def test_all_kinds_are_known() -> None:
    assert set(saved.kinds()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_json_of_a_kind_is_as_its_schema_says(reports: dict[str, Report], kind: str) -> None:
    schema = saved.kinds()[kind].schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    plain = json.loads(render(reports[kind], "json", WHOLE))
    jsonschema.validate(plain, schema)
    assert set(plain) == set(schema["properties"])  # nothing is printed that is not declared
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**plain, "kind": "another"}, schema)


@pytest.mark.parametrize("kind", KINDS)
def test_every_declared_figure_says_what_it_means(kind: str) -> None:
    schema = saved.kinds()[kind].schema()
    objects = [schema, *schema["$defs"].values()]
    plain = {
        key: what
        for one in objects
        for key, what in one.get("properties", {}).items()
        if "$ref" not in what and what.get("type") != "array" and "anyOf" not in what and "const" not in what
    }
    assert plain
    assert [key for key, what in plain.items() if not what.get("description")] == []


@pytest.mark.parametrize("form", names())
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_shows_in_every_format_and_the_same_when_read_again(
    reports: dict[str, Report], kind: str, form: str, tmp_path: Path
) -> None:
    report = reports[kind]
    wanted = load(form).KINDS
    if wanted is not None and kind not in wanted:
        with pytest.raises(TraceError, match=f"{form} shows check only"):
            render(report, form, WHOLE)
        return
    path = tmp_path / "report.json"
    path.write_bytes(render(report, "json", WHOLE))
    again = saved.load(str(path))
    assert again is not None
    assert again.kind == report.kind
    assert render(again, form, WHOLE) == render(report, form, WHOLE) != b""


@pytest.mark.parametrize("kind", KINDS)
def test_a_section_is_shown_by_itself_and_cut_when_rendered(reports: dict[str, Report], kind: str) -> None:
    report = reports[kind]
    for section in report.sections:
        whole = render(report, "markdown", Options(only=(section.key,), top=1000)).decode()
        cut = render(report, "markdown", Options(only=(section.key,), top=1)).decode()
        assert whole.count("\n## ") == 1
        assert len(cut) <= len(whole)


def test_variants_are_a_comparison_too(reports: dict[str, Report], tmp_path: Path) -> None:
    """Three runs and more have tables of their own: a column a run."""
    run = reports["run"].results
    report = compare([run, run, run], ["a", "b", "c"])
    jsonschema.validate(json.loads(render(report, "json", WHOLE)), report.kind.schema())
    text = render(report, "markdown", WHOLE).decode()
    for title in ("Where the window went", "Device time by kind", "CPU tax by operator"):
        assert f"**{title}**" in text
    assert "| kind | a | b | c |" in text
