"""Matrix products and convolutions by number format and by the units that compute them."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

import polars as pl

from analyzer.events.schema import Cat
from analyzer.index import exposure
from analyzer.index.build import Chains
from analyzer.index.kernel_names import Decoded, decode
from analyzer.report.columns import Count, Ns, Row, Text, column
from analyzer.report.results import Result

ORDER = 53

#: Tensor cores take TF32 from this compute capability on.
AMPERE = 8
#: And fp16 from this one on, but for the small Turing models.
VOLTA = 7
_WITHOUT = re.compile(r"GTX 16|MX\d|T[456]00\b")


class Product(Row, frozen=True, kw_only=True):
    """Products of one format on one kind of unit."""

    IDENTITY: ClassVar[str] = "precision"

    precision: Annotated[Text | None, column("format", "of the inputs, as the kernels' names say; null: they do not")]
    tensor_cores: Annotated[bool | None, column("tensor cores", "matrix units of any vendor; null: names do not say")]
    could_use_tensor_cores: Annotated[
        bool, column("could", "matrices, not vectors, on a device whose tensor cores take fp32 as TF32")
    ]
    tensor_core_format: Annotated[
        Text | None,
        column("could use", "what the tensor cores here would take in their place: tf32, fp16, bf16; null: nothing"),
    ]
    events: Annotated[Count, column("events", "kernels")]
    device_ns: Annotated[Ns, column("device", "time in which one ran, each moment once")]
    kernels: Annotated[tuple[str, ...], column("", "names, as in `kernels`, the most device time first")]


class Products(Result, frozen=True, kw_only=True):
    """The most device time first."""

    products: tuple[Product, ...]


def analyze(chains: Chains) -> Products:
    devices = chains.trace.header.devices
    major = max((_major(d.get("computeMajor")) for d in devices if not _WITHOUT.search(str(d.get("name")))), default=0)
    capable = major >= AMPERE
    work = chains.device.frame.filter(pl.col("cat") == int(Cat.KERNEL))
    ids = work["name"].unique()
    decoded = [(text, decode(text)) for text in chains.trace.text(ids)]
    names = pl.DataFrame(
        {
            "name": ids,
            "text": [text for text, _ in decoded],
            "product": [d.kind in ("gemm", "convolution") for _, d in decoded],
            "precision": [d.precision for _, d in decoded],
            "tensor_cores": [d.tensor_cores for _, d in decoded],
            "could": [(capable or d.ampere) and not d.vector for _, d in decoded],
            "format": [_format(d, major) for _, d in decoded],
        },
        schema_overrides={
            "text": pl.String,
            "product": pl.Boolean,
            "precision": pl.String,
            "tensor_cores": pl.Boolean,
            "could": pl.Boolean,
            "format": pl.String,
        },
    ).filter("product")
    mine = work.join(names, on="name", maintain_order="left")
    key = ["precision", "tensor_cores", "could", "format"]
    rows = []
    for (precision, tensor_cores, could, taken), some in mine.group_by(key, maintain_order=True):
        largest = some.group_by("text").agg(pl.col("dur").sum()).sort("dur", "text", descending=[True, False])
        rows.append(
            Product(
                precision=precision,
                tensor_cores=tensor_cores,
                could_use_tensor_cores=could,
                tensor_core_format=taken,
                events=some.height,
                device_ns=int(exposure.once(some).sum()),
                kernels=tuple(largest["text"].to_list()),
            )
        )
    return Products(products=tuple(sorted(rows, key=lambda row: -row.device_ns)))


def _format(of: Decoded, major: int) -> str | None:
    """What tensor cores of a device of compute capability `major` would take in place of a product's format."""
    if of.vector:
        return None
    if of.precision == "fp32":
        return "tf32" if major >= AMPERE or of.ampere else "fp16" if major >= VOLTA else None
    least = {"fp16": VOLTA, "bf16": AMPERE}.get(of.precision or "")
    return of.precision if least is not None and major >= least else None


def _major(value: object) -> int:
    return value if isinstance(value, int) else 0
