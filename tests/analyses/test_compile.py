"""Compiled regions: what torch.compile costs the host at run time, split into its parts."""

from __future__ import annotations

from tests.micro import annotation, call, frame, kernel, launch, op

GUARDS = "TorchDynamo Cache Lookup"
PROLOGUE = "AOTDispatcher Runtime Wrapper Prologue"


def one_call(at: float, region: str, corr: int, *, guards: bool = True):
    """
    guards  [0, 20], then region [30, 130]:
      prologue       [35, 45]                               10
      generated code [50, 120], 70 long:
        triton launch [60, 65] made directly                 5
        aten::mm      [70, 100], launch in it [80, 85]      30
      generated's own 70 - 5 - 30 = 35, with its call 40;   region's own 100 - 10 - 70 = 20
    device: 10 + 7 = 17
    """
    return [
        *([op(GUARDS, at, 20)] if guards else []),
        annotation(region, at + 30, 100),
        op(PROLOGUE, at + 35, 10),
        op("## Call CompiledFxGraph fabc123 ##", at + 50, 70),
        call("cuLaunchKernel", at + 60, 5, corr=corr, cat="cuda_driver"), kernel("triton_poi", at + 140, 10, corr),
        op("aten::mm", at + 70, 30), launch("cudaLaunchKernel", at + 80, 5, corr + 1),
        kernel("gemm", at + 160, 7, corr + 1),
    ]  # fmt: skip


def region(contract, events):
    (found,) = contract(events)["compile"]["regions"]
    return found


PARTS = ("cpu", "guard", "prologue", "generated", "operators", "overhead", "device")


def test_a_region_is_split_into_parts_that_add_up(contract):
    found = region(contract, one_call(0, "Torch-Compiled Region: 0/0", 1))
    assert [found[f"{part}_us_median"] for part in PARTS] == [100, 20, 10, 40, 30, 20, 17]
    # The guards come before the region; the other four parts make it up.
    assert found["cpu_us_median"] == 10 + 40 + 30 + 20


def test_the_generated_code_is_named(contract):
    assert region(contract, one_call(0, "Torch-Compiled Region: 0/0", 1))["graph"] == "fabc123"


def test_calls_of_a_region_have_medians_and_totals(contract):
    micro = [e for i in range(3) for e in one_call(1000 * i, "Torch-Compiled Region: 0/0", 10 * i + 1)]
    found = region(contract, micro)
    assert (found["calls"], found["overhead_us"], found["overhead_us_median"]) == (3, 60, 20)


def test_a_lookup_belongs_to_the_next_region_on_its_thread_only(contract):
    """The lookup before the first region is not the second one's as well."""
    micro = [
        *one_call(0, "Torch-Compiled Region: 0/0", 1),
        *one_call(1000, "Torch-Compiled Region: 1/0", 11, guards=False),
    ]
    found = {r["name"]: r["guard_us_median"] for r in contract(micro)["compile"]["regions"]}
    assert found == {"Torch-Compiled Region: 0/0": 20, "Torch-Compiled Region: 1/0": None}


def test_a_lookup_without_a_region_ran_eagerly(contract):
    found = contract([*one_call(0, "Torch-Compiled Region: 0/0", 1), op(GUARDS, 500, 20)])["compile"]
    assert (found["guard_lookups"], found["lookups_without_region"]) == (2, 1)


def test_old_and_new_names_are_regions_and_nested_wrappers_are_not(contract):
    """New style 100 µs with 60 µs of generated code; old style 80 µs with CompiledFunction of 60: own 40 + 20."""
    micro = [
        annotation("Torch-Compiled Region: 0/0", 0, 100), op("## Call CompiledFxGraph f ##", 20, 60),
        {**annotation("Torch-Compiled Region: 0/0", 30, 90), "cat": "gpu_user_annotation", "pid": 0, "tid": 7},
        op("Torch-Compiled Region", 200, 80), op("CompiledFunction", 210, 60),
    ]  # fmt: skip
    regions = contract(micro)["compile"]["regions"]
    assert sum(r["calls"] for r in regions) == 2
    assert sum(r["cpu_us_median"] for r in regions) == 180
    assert {r["name"]: r["overhead_us"] for r in regions} == {
        "Torch-Compiled Region: 0/0": 40,
        "Torch-Compiled Region": 20,
    }


def test_versions_above_zero_are_recompilations(contract):
    """Frame 0 in versions 0, 1, 2 and frame 1 in version 0: two recompilations, however often they ran."""
    names = ("0/0", "0/1", "0/2", "0/2", "1/0")
    micro = [annotation(f"Torch-Compiled Region: {name}", 200 * i, 100) for i, name in enumerate(names)]
    assert contract(micro)["compile"]["recompilations"] == 2


def test_regions_without_versions_do_not_say_whether_they_were_recompiled(contract):
    assert contract([annotation("Torch-Compiled Region", 0, 100)])["compile"]["recompilations"] is None


def test_graph_breaks_are_resume_functions_among_the_frames(contract):
    micro = [
        annotation("Torch-Compiled Region: 0/0", 0, 100),
        frame("model.py(9): torch_dynamo_resume_in_forward_at_9", 0, 300),
    ]
    assert contract(micro)["compile"]["graph_breaks"] == 1
    assert contract([micro[0], frame("model.py(9): forward", 0, 300)])["compile"]["graph_breaks"] == 0
    assert contract([micro[0]])["compile"]["graph_breaks"] == 0  # regions have numbers: an inner one would show
    assert contract([annotation("CompiledFunction", 0, 100)])["compile"]["graph_breaks"] is None


def test_a_region_inside_another_is_listed_by_itself_with_the_users_code_at_the_break(contract):
    """
    Twice: lookup [0, 5]; 0/0 [10, 110] with its graph [20, 40]; then print() until the lookup [70, 75]; 1/0 [80, 100]
    with its graph [82, 98].
    """
    micro = []
    for at in (0, 200):
        micro += [
            op("TorchDynamo Cache Lookup", at, 5), op("Torch-Compiled Region: 0/0", at + 10, 100),
            op("## Call CompiledFxGraph fa ##", at + 20, 20), op("TorchDynamo Cache Lookup", at + 70, 5),
            op("Torch-Compiled Region: 1/0", at + 80, 20), op("## Call CompiledFxGraph fb ##", at + 82, 16),
        ]  # fmt: skip
    found = contract(micro)["compile"]
    outer, inner = found["regions"]
    assert (found["graph_breaks"], found["guard_lookups"], found["lookups_without_region"]) == (1, 4, 0)
    assert (outer["name"], outer["parent"], outer["breaks"], outer["user_us_at_breaks"]) == (
        "Torch-Compiled Region: 0/0", None, 1, 60,
    )  # fmt: skip
    # Of 100: its graph 20, 25 of the inner one with its lookup; of the 55 that are left 30 are the user's.
    assert (outer["generated_us_median"], outer["overhead_us_median"], outer["operators_us_median"]) == (20, 25, 0)
    assert (inner["parent"], inner["calls"], inner["guard_us_median"]) == ("Torch-Compiled Region: 0/0", 2, 5)


def test_time_spent_compiling_is_counted_once(contract):
    """compile_fx [50, 250] inside entire_frame_compile [0, 400]."""
    micro = [op("entire_frame_compile (dynamo_timed)", 0, 400), op("compile_fx_inner (dynamo_timed)", 50, 200)]
    assert contract(micro)["compile"]["compile_time_us"] == 400


def test_an_eager_run_has_no_regions(contract):
    found = contract([op("aten::mm", 0, 10)])["compile"]
    assert (found["regions"], found["guard_lookups"], found["recompilations"]) == ([], 0, None)
