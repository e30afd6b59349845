"""`tracecli check` as a user runs it, and the workflow of the README."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from analyzer import cli

ROOT = Path(__file__).parents[2]
RUN = ROOT / "fixtures" / "decode_eager.json.gz"

#: The README's example, where the README does not have it.
WORKFLOW = """
jobs:
  budget:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install torch-tracecli
      - run: tracecli check traces/decode_eager.json.gz --budget budget.toml --format github
      - run: tracecli check traces/decode_eager.json.gz --budget budget.toml --format junit -o tracecli.xml
"""
BUDGET = """
[limits]
launches.per_step.max = 160
annotations.decode_token.cpu_us_median = { max = 6000, why = "what a token may cost the host" }
gaps.by_cause.blocking_sync.share.max = 0.05

[findings]
forbid = ["input-starvation", "graph-break"]
"""
TEST = """
from analyzer import analyze


def test_a_token_stays_cheap():
    report = analyze("traces/decode_eager.json.gz")
    assert report["annotations.decode_token.launches_median"] <= 160
    assert "blocking-sync" not in report.findings
"""


def run(*arguments: Any) -> tuple[int, str, str]:
    """Exit code, standard output, standard error; through `main`, which maps errors to exit codes."""
    runner = CliRunner()

    class Entry:
        """What the runner wants of a command, around the console script's own entry point."""

        name = "tracecli"

        def main(self, args: Any, prog_name: str, **_: Any) -> None:
            cli.main(list(args))

    result: Result = runner.invoke(Entry(), [str(a) for a in arguments])  # type: ignore[arg-type]
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.json"
    code, _, said = run("analyze", RUN, "-o", path)
    assert code == 0, said
    return path


def test_a_budget_is_made_checked_and_broken(here: Path) -> None:
    code, text, _ = run("check", "--init", RUN)
    assert code == 0
    assert run("check", "--init", RUN, "-o", "budget.toml")[0] == 0
    assert Path("budget.toml").read_text() == text
    assert run("check", "--init", RUN, "-o", "budget.toml")[0] == 2
    assert run("check", "--init", RUN, "-o", "budget.toml", "--force")[0] == 0
    code, out, _ = run("check", RUN, "--budget", "budget.toml")
    assert code == 0
    assert re.search(r"^HOLDS +all of \d+ limits hold$", out, re.M)
    Path("budget.toml").write_text(text.replace("launches.per_step.max = 157", "launches.per_step.max = 100"))
    code, out, _ = run("check", RUN, "--budget", "budget.toml")
    assert code == 1
    assert re.search(r"^BROKEN +1 of \d+ limits broken$", out, re.M)
    assert re.search(r"^broken +launches\.per_step +149 +max 100$", out, re.M)
    assert re.search(r"^  launches\.per_step: over by 49 \(49\.0%\)$", out, re.M)
    assert "→ tracecli analyze" in out


def test_a_budget_in_pyproject_is_found_from_below(here: Path, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "pyproject.toml").write_text('[tool.tracecli]\nfindings.forbid = ["graph-break"]\n')
    below = here / "a" / "b"
    below.mkdir(parents=True)
    (below / "pyproject.toml").write_text("[tool.other]\n")
    monkeypatch.chdir(below)
    code, out, _ = run("check", report)
    assert code == 0
    assert "findings.graph-break" in out


def test_a_saved_report_and_a_baseline_beside_the_budget(here: Path, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip # noqa: E501
    shutil.copy(report, here / "baseline.json")
    (here / "budget.toml").write_text(
        'baseline = "baseline.json"\n[limits]\nannotations.decode_token.cpu_us_median.max = "+5%"\n'
    )
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    code, out, _ = run("check", report, "--budget", "../budget.toml", "--format", "json")
    assert code == 0
    (line,) = json.loads(out)["limits"]
    assert line["value"] == line["baseline"]
    slower = json.loads(report.read_text())
    slower["annotations"][0]["cpu_us_median"] *= 1.5
    Path("slow.json").write_text(json.dumps(slower))
    assert run("check", "slow.json", "--budget", "../budget.toml")[0] == 1


@pytest.mark.parametrize(
    ("budget", "baseline", "said"),
    [
        ("[limits\n", None, "malformed TOML"),
        ("", None, "limits nothing"),
        ("limits.launchs.per_step.max = 3", None, "did you mean launches.per_step"),
        ("limits.launches.per_step.max = 300", "", "a baseline is a saved report"),
        ("limits.launches.per_step.max = 300", "{}", "a baseline is a saved report"),
        ("limits.launches.per_step.max = 300", "[1]", "a baseline is a saved report"),
        ("limits.launches.per_step.max = 300", '{"schema_version": 2,', "damaged"),
        ("limits.launches.per_step.max = 300", '{"schema_version": 1}', "of schema version 1; this tool reads 2"),
        ("baseline = 'gone.json'\nlimits.launches.per_step.max = 300", None, "a baseline is a saved report"),
    ],
)
def test_mistakes_exit_with_2(here: Path, report: Path, budget: str, baseline: str | None, said: str) -> None:
    Path("budget.toml").write_text(budget)
    more = []
    if baseline is not None:
        Path("baseline.json").write_text(baseline)
        more = ["--baseline", "baseline.json"]
    code, out, err = run("check", report, "--budget", "budget.toml", *more)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_unreadable_input_exits_with_2(here: Path, report: Path) -> None:
    Path("budget.toml").write_text("limits.launches.per_step.max = 300")
    assert run("check", "gone.json", "--budget", "budget.toml")[0] == 2
    assert run("check", report, "--budget", "gone.toml")[0] == 2
    assert run("check", report)[0] == 2
    assert run("check", report, "--budget", "budget.toml", "--step", "1")[0] == 2
    Path("report.json").write_text(re.sub(r'"schema_version": \d+', '"schema_version": 999', report.read_text()))
    code, _, err = run("check", "report.json", "--budget", "budget.toml")
    assert code == 2
    assert "version 999" in err


def readme(language: str, holds: str, instead: str) -> str:
    """The README's block in a language that holds some text; `instead` where there is none."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    return next((block for block in blocks if holds in block), instead)


@pytest.fixture
def project(here: Path) -> Path:
    """A user's project with the README's budget, and the trace that its workflow names."""
    (here / "traces").mkdir()
    shutil.copy(RUN, here / "traces")
    (here / "budget.toml").write_text(readme("toml", "[limits]", BUDGET), encoding="utf-8")
    return here


def test_the_workflow_of_the_readme_runs(project: Path) -> None:
    workflow = readme("ya?ml", "tracecli check", WORKFLOW)
    commands = [c.split()[1:] for c in re.findall(r"^\s*(?:- )?(?:run: )?(tracecli .+)$", workflow, re.MULTILINE)]
    assert commands
    assert all(command[0] == "check" for command in commands)
    for command in commands:
        code, out, err = run(*command)
        assert code == 0, (command, out, err)
    budget = (project / "budget.toml").read_text(encoding="utf-8")
    (project / "budget.toml").write_text(budget.replace("[limits]", "[limits]\nlaunches.count.max = 1"))
    assert run(*commands[0])[0] == 1


def test_the_pytest_example_of_the_readme_passes(project: Path) -> None:
    (project / "test_it.py").write_text(readme("python", "from analyzer import analyze", TEST), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, check=False)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
