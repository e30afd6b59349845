"""Convolutions convert their tensors' memory layout before and after each call.

What it means
    cuDNN's tensor-core kernels want channels last (NHWC). Tensors in PyTorch's default layout (NCHW) are converted on
    the way in and back on the way out, at every convolution, forward and backward. The conversions compute nothing.

How it is computed
    Kernels that convert between NCHW and NHWC, launched by a convolution. "Up to" is the device time in which nothing
    else ran. It fires from a hundredth of the window on, as a warning from a twentieth; and not where the run waits
    for its host: shorter kernels win nothing there.

What to try
    Keep everything channels last from the start:
        model = model.to(memory_format=torch.channels_last)
        images = images.to("cuda", memory_format=torch.channels_last, non_blocking=True)
    An operator in between that does not know the layout (a custom kernel, `.contiguous()`, a `view` that flattens)
    converts it back: look where the conversions that are left lie. torch.compile chooses the layout by itself.

When it is wrong
    Depthwise and grouped convolutions, very few channels, or fp32 without TF32 can be slower channels last: measure
    both. When the conversions go, the host may become the bottleneck.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer import units
from analyzer.analyses.conversions import Conversions
from analyzer.findings import SEEN, finding, grade, host_bound, share_of
from analyzer.report.findings import Finding, Severity
from analyzer.report.results import Results
from analyzer.units import plural

NAME = "layout-conversions"
LISTED = 3


def find(results: Results) -> Iterable[Finding]:
    found = results[Conversions].conversions
    share = share_of(results, found.layout_ns)
    if share < SEEN or host_bound(results):
        return
    texts = units.short_names([c.name for c in found.layouts[:LISTED]], 60)
    yield finding(
        results,
        NAME,
        grade(share, Severity.WARNING),
        f"{plural(found.convolutions, 'convolution')} convert layouts {plural(found.layout_calls, 'time')}",
        (
            f"{c.calls:,} × {texts[c.name]}: total {units.duration(c.total_ns)}, median {units.duration(c.median_ns)}"
            for c in found.layouts[:LISTED]
        ),
        "Keep model and inputs channels last: model.to(memory_format=torch.channels_last), "
        "images.to(memory_format=torch.channels_last).",
        found.layout_ns,
    )
