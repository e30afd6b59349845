"""What kind of program it is, as names in the trace tell: what advice fits depends on it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np

from analyzer.index.build import Chains
from analyzer.index.vocabulary import matches
from analyzer.report.columns import Name, Row, Text, column
from analyzer.report.results import Result

ORDER = 5

_TRAINING = r"^autograd::engine::|Backward0$"
_DATA_PARALLEL = r"DistributedDataParallel"
_READS = r"^aten::(?:item|nonzero)$"
Platform = Literal["cuda", "hip", "musa", "xpu"]
#: Runtime and driver calls of each platform, by their prefix.
_PLATFORMS: dict[Platform, str] = {
    "cuda": r"^(?:cuda|cu)[A-Z]",
    "hip": r"^hip[A-Z]",
    "musa": r"^(?:musa|mu)[A-Z]",
    "xpu": r"^(?:ur[A-Z]|ze[A-Z])",
}
#: Dynamo names the functions it resumes in.
_RESUME = r"torch_dynamo_resume_in_([\w.<>]+?)_at_(\d+)"


class Resumed(Row, frozen=True, kw_only=True):
    """Where a compiled function goes on after a graph break."""

    IDENTITY: ClassVar[str] = "function"

    function: Annotated[Name, column("function", "the user's function")]
    line: Annotated[Text, column("line", "of the function, that it resumes at")]


class Program(Row, frozen=True, kw_only=True):
    IDENTITY: ClassVar[str] = "training"

    platform: Annotated[
        Platform | None,
        column("platform", "whose runtime most calls are of; null: of none that is known, or no call"),
    ] = None
    training: Annotated[bool, column("training", "it runs backward")]
    data_parallel: Annotated[bool, column("data parallel", "DistributedDataParallel is there")]
    reads_values: Annotated[bool, column("reads values", "it reads values or sizes back: item, nonzero")]
    resumes: Annotated[tuple[Resumed, ...], column("", "graph breaks; empty also without Python stacks")]


class Traits(Result, frozen=True, kw_only=True):
    traits: Program


def analyze(chains: Chains) -> Traits:
    names = chains.trace.names
    found = names.str.extract_groups(_RESUME).struct
    places = {(f, line) for f, line in zip(found[0].to_list(), found[1].to_list(), strict=True) if f}
    return Traits(
        traits=Program(
            platform=_platform(chains),
            training=bool(names.str.contains(_TRAINING).any()),
            data_parallel=bool(names.str.contains(_DATA_PARALLEL).any()),
            reads_values=bool(names.str.contains(_READS).any()),
            resumes=tuple(Resumed(function=function, line=line) for function, line in sorted(places)),
        )
    )


def _platform(chains: Chains) -> Platform | None:
    calls = np.bincount(chains.host.name[chains.host.is_call], minlength=len(chains.trace.names))
    count = {name: int(calls[matches(chains.trace.names, pattern)].sum()) for name, pattern in _PLATFORMS.items()}
    most = max(_PLATFORMS, key=lambda name: count[name])
    return most if count[most] else None
