"""A budget from TOML: a file of its own, or `[tool.tracecli]` of a pyproject.toml.

    baseline = "baseline.json"            # a report written by `tracecli analyze -o`, beside the budget
    steps = 5                             # a run of fewer steps settles no limit

    [limits]
    launches.per_step.max = 160
    devices.0.utilization.min = 0.2
    verdict.bound.equals = "compute-bound"
    trust.idle_reliable.equals = "baseline"
    annotations.decode_token.cpu_us_median = { max = "+5%", why = "what a token may cost" }

    [findings]
    forbid = ["blocking-sync"]
    at_most = { kernel-spike = 3, warning = 5 }

A limit in per cent, and one that equals the baseline, needs one. Every mistake is a TraceError that names the place.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from analyzer.errors import TraceError
from analyzer.report.findings import Severity
from analyzer.report.names import Parts, parse, spell
from analyzer.units import clean

BOUNDS = ("max", "min", "equals")
_OTHERS = (*BOUNDS, "allow_missing", "ignore_spread", "why")
FIELDS = (*_OTHERS, "steps")
_TOP = ("baseline", "steps", "limits", "findings")
#: What a limit equals that stands for the figure of the baseline.
SAME = "baseline"
_PERCENT = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*%", re.ASCII)
_START = "`tracecli check --init TRACE -o budget.toml` writes one to start from"


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound on the figures of a name.

    bound          "max", "min" or "equals".
    value          what the figure may be; with `relative`, per cent more than the baseline has, or `SAME`.
    allow_missing  a figure that is n/a, or an element that this run does not have, breaks nothing.
    ignore_spread  a relative limit is broken even by a change within the spread of the calls.
    steps          a run of fewer steps does not settle the limit.
    """

    parts: Parts
    bound: str
    value: int | float | str | bool
    relative: bool = False
    allow_missing: bool = False
    ignore_spread: bool = False
    steps: int = 0
    why: str | None = None

    @property
    def name(self) -> str:
        return spell(self.parts)

    @property
    def text(self) -> str:
        """`max 160`, `min -5% of the baseline`."""
        if self.relative and self.value == SAME:
            return "equals the baseline"
        if self.relative:
            assert isinstance(self.value, int | float)
            return f"{self.bound} {self.value:+.4g}%"
        return f"{self.bound} {clean(str(self.value)) if isinstance(self.value, str) else number(self.value)}"


@dataclass(frozen=True, slots=True)
class FindingLimit:
    """A finding, or a severity, may appear `at_most` so many times."""

    name: str
    at_most: int


@dataclass(frozen=True, slots=True)
class Budget:
    """path: of the file. baseline: as written there, relative to the file."""

    path: str
    limits: tuple[Limit, ...]
    findings: tuple[FindingLimit, ...]
    baseline: str | None = None


def number(value: object) -> str:
    """A figure as it can be written into a budget: no grouping, no more digits than it has."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(round(value, 6))
    return str(value).lower() if isinstance(value, bool) else str(value)


def find(folder: Path) -> Path | None:
    """The nearest pyproject.toml from a folder upward that has a `[tool.tracecli]`."""
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if path.is_file() and isinstance(_table(_parse(path)), Mapping):
            return path
    return None


def read(path: Path) -> Budget:
    """The budget of a file. Raises TraceError where it cannot be read, is malformed or limits nothing."""
    data: Any = _parse(path)
    if path.name == "pyproject.toml":
        data = _table(data)
        if not isinstance(data, Mapping):
            raise TraceError("has no [tool.tracecli]", str(path), _START)
    return from_table(data, str(path))


def _table(data: Mapping[str, Any]) -> Any:
    tool = data.get("tool")
    return tool.get("tracecli") if isinstance(tool, Mapping) else None


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise TraceError("there is no such budget", str(path), _START) from None
    except OSError as e:
        raise TraceError(f"the budget cannot be read: {e.strerror or e}", str(path)) from None
    except UnicodeDecodeError as e:
        raise TraceError(f"is no TOML: byte {e.start} is not UTF-8", str(path)) from None
    except tomllib.TOMLDecodeError as e:
        raise TraceError(f"malformed TOML: {e}", str(path)) from None
    except RecursionError:
        raise TraceError("malformed TOML: nested too deeply", str(path)) from None


def from_table(data: Mapping[str, Any], path: str) -> Budget:
    """A budget from parsed TOML. path: for messages."""
    for key in data:
        if key not in _TOP:
            raise TraceError(f"unknown key {clean(key)!r}", path, _did_you_mean(key, _TOP))
    baseline = data.get("baseline")
    if baseline is not None and not (isinstance(baseline, str) and baseline):
        raise TraceError("baseline: a path is wanted", path, 'baseline = "baseline.json"')
    limits = _mapping(data.get("limits", {}), "limits", path)
    steps = _steps(data.get("steps", 0), "steps", path)
    findings = _mapping(data.get("findings", {}), "findings", path)
    budget = Budget(
        path,
        tuple(limit for key, value in limits.items() for limit in _limits(value, _top_name(key, path), steps, path)),
        tuple(_findings(findings, path)),
        baseline,
    )
    if not budget.limits and not budget.findings:
        raise TraceError("the budget limits nothing", path, _START)
    return budget


def _top_name(key: str, path: str) -> Parts:
    """No top-level key of a report has dots: a quoted `"launches.per_step"` is a dotted name."""
    try:
        return parse(key)
    except TraceError as e:
        raise TraceError(e.what, path, e.hint) from None


def _mapping(value: Any, name: str, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TraceError(f"{name}: a table is wanted, not {_kind(value)}", path, f"[{name}]")
    return value


def _limits(value: Any, parts: Parts, steps: int, path: str) -> Iterator[Limit]:
    if not isinstance(value, Mapping):
        raise TraceError(
            f"limits.{spell(parts)}: say which limit {clean(str(value))[:40]} is",
            path,
            f"{spell(parts)}.max = …, .min = … or .equals = …",
        )
    plain = {key: v for key, v in value.items() if not isinstance(v, Mapping)}
    if not any(key in FIELDS or difflib.get_close_matches(key, _OTHERS, cutoff=0.5) for key in plain):
        for key, inner in value.items():
            yield from _limits(inner, (*parts, key), steps, path)
        return
    where = f"limits.{spell(parts)}"
    for key in value:
        if key not in FIELDS:
            raise TraceError(f"{where}: a limit has no {clean(key)!r}", path, _did_you_mean(key, FIELDS))
    bounds = [key for key in BOUNDS if key in plain]
    if not bounds:
        raise TraceError(f"{where}: no limit given", path, f"give one of {', '.join(BOUNDS)}")
    flags = {key: _flag(plain.get(key, False), f"{where}.{key}", path) for key in ("allow_missing", "ignore_spread")}
    why = plain.get("why")
    if why is not None and not isinstance(why, str):
        raise TraceError(f"{where}.why: text is wanted, not {_kind(why)}", path)
    steps = _steps(plain.get("steps", steps), f"{where}.steps", path)
    for bound in bounds:
        amount, relative = _amount(plain[bound], bound, f"{where}.{bound}", path)
        yield Limit(parts, bound, amount, relative, flags["allow_missing"], flags["ignore_spread"], steps, why)


def _steps(value: Any, where: str, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TraceError(f"{where}: a whole number of steps is wanted, not {_kind(value)}", path, "steps = 5")
    return value


def _flag(value: Any, where: str, path: str) -> bool:
    if not isinstance(value, bool):
        raise TraceError(f"{where}: true or false is wanted, not {_kind(value)}", path)
    return value


def _amount(value: Any, bound: str, where: str, path: str) -> tuple[int | float | str | bool, bool]:
    if bound == "equals" and value == SAME:
        return value, True
    if isinstance(value, str) and bound != "equals":
        percent = _PERCENT.fullmatch(value.strip())
        if percent is None:
            raise TraceError(f"{where}: {clean(value)!r} is neither a number nor a percentage", path, 'such as "+5%"')
        return float(percent[1]), True
    good = isinstance(value, str | bool) if bound == "equals" else False
    if not good and (isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)):
        raise TraceError(f"{where}: a number is wanted, not {_kind(value)}", path)
    return value, False


def _findings(table: Mapping[str, Any], path: str) -> Iterator[FindingLimit]:
    for key in table:
        if key not in ("forbid", "at_most"):
            raise TraceError(
                f"findings: unknown key {clean(key)!r}", path, 'forbid = ["NAME"] or at_most = { NAME = 3 }'
            )
    forbid = table.get("forbid", [])
    if not isinstance(forbid, list) or not all(isinstance(name, str) for name in forbid):
        raise TraceError("findings.forbid: a list of names is wanted", path, 'forbid = ["blocking-sync"]')
    at_most = dict.fromkeys(forbid, 0)
    for name, most in _mapping(table.get("at_most", {}), "findings.at_most", path).items():
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise TraceError(f"findings.at_most.{clean(name)}: a whole number is wanted, not {_kind(most)}", path)
        if name in at_most:
            raise TraceError(f"findings: {clean(name)} is both forbidden and counted", path)
        at_most[name] = most
    known = [*finding_names(), *(s.value for s in Severity)]
    for name, most in at_most.items():
        if name not in known:
            raise TraceError(f"there is no finding {clean(name)!r}", path, _did_you_mean(name, known))
        yield FindingLimit(name, most)


def finding_names() -> list[str]:
    """Names of all findings, by their files: none is imported."""
    spec = find_spec("analyzer.findings")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return sorted(m.name.replace("_", "-") for m in iter_modules(places))


def _kind(value: Any) -> str:
    names = {bool: "true or false", str: "text", int: "a whole number", float: "a number", list: "a list"}
    return names.get(type(value), "a table" if isinstance(value, Mapping) else "a date or time")


def _did_you_mean(word: str, known: tuple[str, ...] | list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"there is: {', '.join(known)}"
