"""A run as comparisons see it: figures per unit of work, from the JSON contract of a report.

A unit is a call of an annotation that all runs have and that makes up most of each, else a profiler
step, else the whole trace. Totals are divided by the number of units, so that a run of three steps
compares fairly with one of two.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: An annotation is the unit where its calls hold at least this share of the steps' host time.
MOST = 0.5

Contract = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """kind: annotation, step or trace. name: of the annotation."""

    kind: str
    name: str | None = None

    @property
    def title(self) -> str:
        if self.kind == "annotation":
            return f"per call of {self.name}"
        return "per step" if self.kind == "step" else "whole trace"


@dataclass(frozen=True, slots=True)
class Item:
    """An operator or a kernel of one run. Times in ns; per unit but for the medians, which are per call.

    spread_ns  robust standard deviation over the calls.
    """

    name: str
    kind: str
    calls: float
    total_ns: float
    median_ns: float
    spread_ns: float


@dataclass(frozen=True, slots=True)
class Run:
    """One report, per unit of work. Times in ns; None where the report does not say.

    host_ns  what the host needs for a unit: without the profiler where all runs say, else `cpu_ns`.
    """

    label: str
    path: str
    units: int
    verdict: str
    device: str
    host_ns: float | None
    cpu_ns: float | None
    cpu_spread_ns: float
    tax_ns: float | None
    device_ns: float | None
    device_spread_ns: float
    idle_ns: float | None
    kernels: float | None
    copies: float | None
    fills: float | None
    launches: float | None
    backends: tuple[str, ...]
    findings: tuple[str, ...]
    causes: Mapping[str, float]
    operators: Mapping[str, Item]
    work: Mapping[str, Item]
    inflation: float | None
    unprofiled_ns: float | None

    @property
    def kernels_and_copies(self) -> float | None:
        return None if self.kernels is None else self.kernels + (self.copies or 0)

    @property
    def pace_ns(self) -> float | None:
        """Time that a unit takes at best when units follow each other: the slower of host and device."""
        known = [x for x in (self.host_ns, self.device_ns) if x is not None]
        return max(known) if known else None

    @property
    def host_bound(self) -> bool:
        return (self.host_ns or 0) > (self.device_ns or 0)


def unit_of(contracts: Sequence[Contract]) -> UnitOfWork:
    """The unit of work that all runs share."""
    common = set.intersection(*({a["name"] for a in c["annotations"]} for c in contracts)) if contracts else set()
    best: tuple[float, str] | None = None
    for name in sorted(common):
        shares = [_share(c, name) for c in contracts]
        if min(shares) >= MOST and (best is None or min(shares) > best[0]):
            best = (min(shares), name)
    if best is not None:
        return UnitOfWork("annotation", best[1])
    if all(c["steps"] for c in contracts):
        return UnitOfWork("step")
    return UnitOfWork("trace")


def _share(contract: Contract, name: str) -> float:
    annotation = _annotation(contract, name)
    whole = sum(s["cpu_us"] for s in contract["steps"]) or contract["window"]["duration_us"] or 0
    return annotation["cpu_us"] / whole if whole else 0.0


def _annotation(contract: Contract, name: str | None) -> Mapping[str, Any]:
    return next(a for a in contract["annotations"] if a["name"] == name)


def unprofiled(contract: Contract, unit: UnitOfWork) -> float | None:
    """Host time of a unit without the profiler (ns): stamped by the recorder, where a unit is a step."""
    stamp = contract.get("capture") or {}
    time = stamp.get("unprofiled_step_us")
    if not isinstance(time, int | float) or unit.kind == "trace":
        return None
    one_a_step = unit.kind == "step" or _annotation(contract, unit.name)["calls"] == len(contract["steps"])
    return time * 1000 if one_a_step else None


def figures(contract: Contract, label: str, unit: UnitOfWork, *, profiled: bool = True) -> Run:
    """Figures of one run per unit. profiled: False takes the host's time from unprofiled steps."""
    units, own = _per_unit(contract, unit)
    plain = unprofiled(contract, unit)
    causes: dict[str, float] = {}
    for row in contract["gaps"]["by_cause"]:
        causes[row["cause"]] = causes.get(row["cause"], 0.0) + row["total_us"] * 1000 / units
    idle = [d["idle_us"] for d in contract["devices"]]
    stamp = contract.get("capture") or {}
    names = sorted({d["name"] for d in contract["devices"] if d.get("name")})
    return Run(
        label=label,
        path=contract["trace"]["path"],
        units=units,
        device=", ".join(names),
        idle_ns=sum(idle) * 1000 / units if idle else None,
        backends=tuple(sorted({a["backend"] for a in contract["attention"]})),
        findings=tuple(dict.fromkeys(f["name"] for f in contract["findings"])),
        causes=causes,
        operators={
            o["name"]: Item(
                o["name"],
                "operator",
                o["calls"] / units,
                o["self_tax_us"] * 1000 / units,
                o["self_tax_median_us"] * 1000,
                o["self_tax_spread_us"] * 1000,
            )
            for o in contract["operators"]
        },
        work={
            k["name"]: Item(
                k["name"],
                k["kind"],
                k["calls"] / units,
                k["total_us"] * 1000 / units,
                k["median_us"] * 1000,
                k["spread_us"] * 1000,
            )
            for k in contract["kernels"]
        },
        inflation=stamp.get("inflation"),
        unprofiled_ns=plain,
        host_ns=own["cpu_ns"] if profiled else plain,
        **own,
    )


def _per_unit(contract: Contract, unit: UnitOfWork) -> tuple[int, dict[str, Any]]:
    """Number of units, and the figures that depend on what a unit is."""
    kinds = [(k["kind"], k["calls"]) for k in contract["kernels"]]
    tax = sum(o["self_tax_us"] for o in contract["operators"]) * 1000

    def count(*wanted: str, but: bool = False) -> int:
        return sum(calls for kind, calls in kinds if (kind in wanted) != but)

    if unit.kind == "annotation":
        a = _annotation(contract, unit.name)
        return a["calls"], {
            "verdict": a["verdict"] or contract["verdict"]["bound"],
            "cpu_ns": a["cpu_us_median"] * 1000,
            "cpu_spread_ns": a["cpu_us_spread"] * 1000,
            "tax_ns": a["tax_us_median"] * 1000,
            "device_ns": a["device_us_median"] * 1000 if contract["devices"] else None,
            "device_spread_ns": a["device_us_spread"] * 1000,
            "kernels": a["kernels_median"],
            "copies": a["copies_median"],
            "fills": a["memsets_median"],
            "launches": a["launches_median"],
        }
    steps = contract["steps"] if unit.kind == "step" else []
    units = len(steps) or 1
    busy = sum(d["busy_us"] for d in contract["devices"]) * 1000
    cpu = [s["cpu_us"] * 1000 for s in steps] or [(contract["window"]["duration_us"] or 0) * 1000]
    device = [s["device_busy_us"] * 1000 for s in steps] or [busy]
    return units, {
        "verdict": contract["verdict"]["bound"],
        "cpu_ns": statistics.median(cpu),
        "cpu_spread_ns": _spread(cpu),
        "tax_ns": tax / units,
        "device_ns": statistics.median(device) if contract["devices"] else None,
        "device_spread_ns": _spread(device),
        "kernels": count("copy", "memset", but=True) / units if contract["devices"] else None,
        "copies": sum(c["count"] for c in contract["copies"] if c["kind"].startswith("Memcpy")) / units,
        "fills": sum(c["count"] for c in contract["copies"] if c["kind"].startswith("Memset")) / units,
        "launches": contract["launches"]["count"] / units,
    }


def _spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return 1.4826 * statistics.median([abs(v - middle) for v in values])
