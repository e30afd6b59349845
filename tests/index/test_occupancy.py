"""Theoretical occupancy, worked out by hand as NVIDIA's calculator does it."""

from __future__ import annotations

import pytest

from analyzer.index.occupancy import theoretical
from tests.micro import H100, kernel

A100 = {**H100, "computeMajor": 8, "computeMinor": 0, "sharedMemPerMultiprocessor": 167936}
T4 = {**H100, "computeMajor": 7, "computeMinor": 5, "maxThreadsPerMultiprocessor": 1024,
      "sharedMemPerMultiprocessor": 65536}  # fmt: skip
RTX4090 = {**A100, "computeMinor": 9, "maxThreadsPerMultiprocessor": 1536, "sharedMemPerMultiprocessor": 102400}


@pytest.mark.parametrize(
    ("device", "threads", "registers", "shared", "share", "limit", "arithmetic"),
    [
        (H100, 256, 64, 49152, 32 / 64, "registers",
         "8 warps a block; 64·32 = 2048 registers a warp, 65536/2048 = 32 warps: 4 blocks. "
         "Shared: 49152+1024 = 50176, 233472/50176 = 4 blocks. Both 4; 4·8 = 32 of 64 warps"),
        (H100, 384, 168, 230400, 12 / 64, "registers",
         "a GEMM by design: 12 warps; 168·32 = 5376 = 21·256; 65536/5376 = 12 warps: 1 block; shared: 1 block"),
        (H100, 1024, 32, 0, 1.0, "block size", "32 warps: 2 blocks fill 64; registers: 65536/1024 = 64 warps: 2"),
        (H100, 32, 16, 0, 32 / 64, "blocks per SM", "1 warp a block; at most 32 blocks: 32 of 64 warps"),
        (H100, 128, 40, 100_000, 8 / 64, "shared memory", "101024 -> 101120 (79 · 1280); 233472/101120 = 2 · 4 warps"),
        (H100, 96, 33, 0, 48 / 64, "registers",
         "3 warps; 33·32 = 1056 -> 1280; 65536/1280 = 51 -> 48 warps (groups of 4): 16 blocks of 3 warps = 48"),
        (A100, 256, 32, 65536, 16 / 64, "shared memory", "65536+1024 = 66560; 167936/66560 = 2 blocks of 8 warps"),
        (H100, 128, 32, 58368, 12 / 64, "shared memory",
         "58368 would fit four times; with the 1024 bytes that each block reserves, three: 3 · 4 warps"),
        (T4, 64, 32, 0, 32 / 32, "block size", "2 warps: 1024/64 = 16 blocks fill 32 warps; at most 16 blocks"),
        (T4, 256, 32, 32768, 16 / 32, "shared memory", "7.5 reserves nothing: 65536/32768 = 2 blocks of 8 warps"),
        (RTX4090, 32, 16, 0, 24 / 48, "blocks per SM", "at most 24 blocks of 1 warp; 1536/32 = 48 warps"),
        (H100, 33, 32, 0, 64 / 64, "block size", "33 threads are 2 warps: 32 blocks of 2 warps"),
    ],
)  # fmt: skip
def test_occupancy_is_what_the_scarcest_resource_allows(device, threads, registers, shared, share, limit, arithmetic):
    found = theoretical(threads, registers, shared, device)
    assert (found.share, found.limited_by) == (share, limit), arithmetic


@pytest.mark.parametrize(
    ("capability", "blocks"),
    [((7, 0), 32), ((7, 2), 32), ((7, 5), 16), ((8, 0), 32), ((8, 6), 16), ((8, 7), 16), ((8, 9), 24), ((9, 0), 32),
     ((10, 0), 32), ((10, 3), 32), ((11, 0), 24), ((12, 0), 24), ((12, 1), 24), ((99, 0), 32)],
)  # fmt: skip
def test_blocks_of_one_warp_are_as_many_as_an_sm_holds(capability, blocks):
    """Of 64 warps, the rest stays empty. From "Technical Specifications per Compute Capability"."""
    device = {**H100, "computeMajor": capability[0], "computeMinor": capability[1]}
    found = theoretical(32, 16, 0, device)
    assert (found.share, found.limited_by) == (blocks / 64, "blocks per SM")


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "device"),
    [
        (None, 32, 0, H100),
        (256, None, 0, H100),
        (256, 32, None, H100),
        (256, 32, 0, {}),
        (256, 32, 0, {**H100, "warpSize": 64}),  # AMD: waves of 64, other units
        (256, 32, 0, {k: v for k, v in H100.items() if k != "sharedMemPerMultiprocessor"}),
        (-1, 32, 0, H100),
        (256, -5, 0, H100),
        (256, 32, -5000, H100),
        (256, 32, 0, {**H100, "maxThreadsPerMultiprocessor": "2048"}),
        (256, 32, 0, {**H100, "regsPerMultiprocessor": [65536]}),
        (256, 32, 0, {**H100, "computeMajor": "9"}),
    ],
)
def test_what_the_trace_does_not_say_or_says_as_nonsense_is_not_guessed(threads, registers, shared, device):
    assert theoretical(threads, registers, shared, device) is None


def test_a_block_that_fits_nowhere_has_no_occupancy_above_zero():
    """255 registers for 1024 threads: 8192 a warp, 8 warps fit, the block has 32."""
    assert theoretical(1024, 255, 0, H100).share == 0


# -- in the report -----------------------------------------------------------------------------------------


def test_the_report_has_both_the_profilers_estimate_and_the_formulas(contract):
    """The profiler's is 12%, of what the grid fills; the formula's 50%, of what a full device could hold."""
    shape = {"grid": [4, 1, 1], "block": [256, 1, 1], "registers": 64, "shared": 49152, "occupancy": 12}
    (row,) = contract([kernel("gemm", 0, 10, **shape)])["kernels"]
    assert (row["occupancy_reported"], row["occupancy_theoretical"], row["limited_by"]) == (0.12, 0.5, "registers")
    assert (list(row["grid"]), list(row["block"])) == ([4, 1, 1], [256, 1, 1])


def test_it_is_that_of_the_launch_shape_that_took_the_most_time(contract):
    """1024 threads for 3 µs, 256 threads for 10: the latter counts, of two shapes."""
    micro = [
        kernel("k", 0, 3, block=[1024, 1, 1], registers=32, shared=0),
        kernel("k", 5, 10, block=[256, 1, 1], registers=64, shared=49152),
    ]
    (row,) = contract(micro)["kernels"]
    assert (list(row["block"]), row["launch_shapes"], row["occupancy_theoretical"]) == ([256, 1, 1], 2, 0.5)


@pytest.mark.parametrize("block", [[256], [256, 1], [], "256", [256, 1, None]])
def test_a_block_of_fewer_than_three_axes_has_no_occupancy_and_does_no_harm(contract, block):
    (row,) = contract([kernel("k", 0, 3, block=block, registers=32, shared=0)])["kernels"]
    assert (row["block"], row["occupancy_theoretical"]) == (None, None)
