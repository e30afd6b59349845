"""File -> frames -> chains -> analyses -> findings -> report."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from types import ModuleType
from typing import Any

from analyzer import analyses, findings, units
from analyzer.analyses.devices import Devices
from analyzer.analyses.overview import Overview
from analyzer.errors import TraceError
from analyzer.events import select
from analyzer.events.schema import Trace
from analyzer.index.build import Chains, build
from analyzer.model import SCHEMA_VERSION, Finding, Headline, Report, Result, Severity, Warning

#: How a saved report begins.
_SAVED = b'"schema_version"'
#: Told of bytes read, and of all, if known.
Progress = Callable[[int, int | None], None]

#: The distribution's name: `tracecli` belongs to another project.
DISTRIBUTION = "torch-tracecli"


@cache
def modules(package: ModuleType) -> tuple[ModuleType, ...]:
    """The plug-ins of a package, by ORDER and name: an addition is a file, and edits no registry."""
    found = [importlib.import_module(m.name) for m in pkgutil.iter_modules(package.__path__, package.__name__ + ".")]
    return tuple(sorted(found, key=lambda m: (getattr(m, "ORDER", 0), m.__name__)))


def version() -> str:
    try:
        return installed_version(DISTRIBUTION)
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "0+unknown"


def saved(path: str) -> dict[str, Any] | None:
    """The contract of a report saved earlier with `-o report.json`; None if the file is no such report.

    Raises TraceError where it is one, but of another schema version, or damaged.
    """
    import orjson

    if not os.path.isfile(path):
        return None  # a pipe is read once, by the reader
    try:
        with open(path, "rb") as file:
            if _SAVED not in file.read(256):
                return None
            file.seek(0)
            contract = orjson.loads(file.read())
    except OSError:
        return None  # whoever reads it as a trace says what is wrong with it
    except orjson.JSONDecodeError as e:
        raise TraceError(f"a saved report, but damaged: {e}", path, "save it again: tracecli analyze -o") from e
    if contract.get("schema_version") != SCHEMA_VERSION or "tool" not in contract:
        raise TraceError(
            f"a report of schema version {contract.get('schema_version')}, and this tool reads {SCHEMA_VERSION}", path
        )
    return dict(contract)


def contract_of(path: str, *, jobs: int | None = None, progress: Progress | None = None) -> Mapping[str, Any]:
    """The contract of a trace, or of a report saved earlier. Raises TraceError as the reader does."""
    from analyzer.sources.kineto.read import read

    found = saved(path) if path != "-" else None
    return found if found is not None else run(read(path, jobs=jobs, progress=progress)).contract


def run(trace: Trace, *, top: int = 10, step: str | None = None) -> Report:
    """Analyse a trace in memory.

    top   rows that a table shows; the contract is not cut by it.
    step  analyse one step only: its name, number or position; see `trace.select.step`.
    """
    chains = build(trace if step is None else select.step(trace, step))
    del trace  # the events live on in the trees: two copies would be the peak of memory
    results: dict[str, Result] = {
        module.__name__.rpartition(".")[2]: module.analyze(chains) for module in modules(analyses)
    }
    warnings = (*chains.trace.warnings, *chains.warnings)
    judged = _judge(results, chains)
    contract: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "tracecli", "version": version()},
        "trace": _trace(chains),
        "warnings": [_warning(w) for w in warnings],
    }
    for result in results.values():
        contract |= result.contract()
    contract["findings"] = [_finding(f) for f in judged]
    sections = [section for result in results.values() if (section := result.section(top)) is not None]
    return Report(contract, _headline(chains, results, top), sections, judged, warnings)


def _judge(results: Mapping[str, Result], chains: Chains) -> tuple[Finding, ...]:
    """All findings, the gravest first, and within one severity the one that could win most."""
    found = [finding for module in modules(findings) for finding in module.find(results, chains)]
    gravity = list(Severity)
    return tuple(sorted(found, key=lambda f: (gravity.index(f.severity), -(f.up_to_ns or 0), f.name)))


def _trace(chains: Chains) -> dict[str, Any]:
    trace = chains.trace
    distributed = trace.header.distributed
    return {
        # A file's name may be bytes that are no text; JSON is.
        "path": trace.path.encode("utf-8", "backslashreplace").decode(),
        "bytes": trace.bytes,
        "format": trace.format,
        "events": trace.events,
        "complete_events": trace.complete_events,
        "damaged_events": trace.damaged_events,
        "truncated": trace.truncated,
        "truncated_at_byte": trace.truncated_at_byte,
        "producer": trace.header.producer,
        "base_ns": trace.base_ns,
        "devices": [
            {"id": i, "name": chains.device_name(i), "sms": _integer(d.get("numSms"))}
            for i, d in chains.device_properties.items()
        ],
        "steps": chains.text(chains.host.frame["name"].gather(chains.steps)).to_list(),
        "rank": _integer(distributed.get("rank")),
        "world_size": _integer(distributed.get("world_size")),
    }


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _warning(w: Warning) -> dict[str, Any]:
    full = {"code": w.code, "message": w.message, "byte": w.byte, "count": w.count}
    return {key: value for key, value in full.items() if value is not None}


def _finding(f: Finding) -> dict[str, Any]:
    return {
        "name": f.name,
        "severity": f.severity.value,
        "title": f.title,
        "evidence": list(f.evidence),
        "advice": f.advice,
        "up_to_us": units.us(f.up_to_ns),
        "share": f.share,
        "docs": f"tracecli explain {f.name}",
    }


def _headline(chains: Chains, results: Mapping[str, Result], top: int) -> Headline:
    overview, devices = results["overview"], results["devices"]
    assert isinstance(overview, Overview)
    assert isinstance(devices, Devices)
    trace = chains.trace
    steps = len(chains.steps)
    window = units.duration(overview.window.duration) if overview.window else "no events"
    present = {d.id for d in devices.rows}
    names = sorted({name for i in present if (name := chains.device_name(i))})
    count = f"{len(present)} × " if len(present) > 1 else ""
    return Headline(
        source=(
            trace.path.replace("\\", "/").rpartition("/")[2],
            f"{units.plural(steps, 'step')}, {window}" if steps else window,
            count + ", ".join(names) if names else trace.header.producer,
            f"{trace.events:,} events",
        ),
        bound=overview.verdict.bound,
        reason=overview.verdict.reason,
        strips=devices.strips(top),
        trust=overview.trust(),
        path=trace.path,
    )
