"""How times, bytes, shares and names are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "n/a"),
        (0, "0 ns"),
        (1, "1 ns"),
        (217, "217 ns"),
        (217.4, "217 ns"),
        (217.6, "218 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (8_384, "8.38 µs"),
        (9_994, "9.99 µs"),
        (9_996, "10.0 µs"),  # three digits, also where rounding adds one
        (99_949, "99.9 µs"),
        (99_960, "100 µs"),
        (512_400, "512 µs"),
        (999_600, "1.00 ms"),  # never "1,000 µs"
        (1_210_000_000, "1.21 s"),
        (3_600_000_000_000, "3,600 s"),
        (-8_384, "-8.38 µs"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_suits(ns, text):
    assert units.duration(ns) == text


@given(st.integers(0, 10**12).map(lambda halves: halves / 2))
def test_a_median_reads_the_same_once_it_was_saved(ns):
    """Half a nanosecond is lost in JSON's three decimals of a µs."""
    saved = round(units.us(ns) * 1000)
    assert units.duration(ns) == units.duration(saved)


@pytest.mark.parametrize(
    ("n", "text"),
    [(None, "n/a"), (0, "0 B"), (512, "512 B"), (1024, "1.00 KiB"), (381 * 1024**2, "381 MiB"),
     (1.5 * 1024**3, "1.50 GiB"),
     (5 * 1024**4, "5.00 TiB"), (-2048, "-2.00 KiB")],
)  # fmt: skip
def test_bytes_have_binary_prefixes(n, text):
    assert units.size(n) == text


@pytest.mark.parametrize(
    ("x", "text"),
    [(None, "n/a"), (0, "0.0%"), (0.0001, "<0.1%"), (0.001, "0.1%"), (0.05, "5.0%"),
     (0.47, "47%"), (0.945, "94.5%"), (1, "100%")],
)  # fmt: skip
def test_a_share_is_in_per_cent_and_what_is_not_nothing_is_not_nothing(x, text):
    assert units.share(x) == text


def test_rates_are_decimal_as_vendors_state_them():
    assert units.rate(3.35e12) == "3,350 GB/s"
    assert units.rate(24.5e9) == "24.5 GB/s"
    assert units.rate(None) == "n/a"


def test_counts_and_ratios():
    assert units.count(132152) == "132,152"
    assert units.count(2.5) == "2.5"
    assert units.count(3.0) == "3"
    assert units.count(None) == "n/a"
    assert units.ratio(14.64) == "14.6×"
    assert units.ratio(None) == "n/a"


def test_a_count_has_its_noun():
    assert units.plural(1, "launch", "launches") == "1 launch"
    assert units.plural(2000, "launch", "launches") == "2,000 launches"
    assert units.plural(0, "step") == "0 steps"


def test_microseconds_of_the_report_have_three_decimals_and_none_stays_none():
    assert units.us(8_384) == 8.384
    assert units.us(1.4826 * 777) == 1.152  # a spread: 1151.98 ns
    assert units.us(None) is None


# -- text of strangers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain name", "plain name"),
        ("größe 模型", "größe 模型"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m", "\\x9b31m"),  # the one-byte form of the same
        ("bell\x07 null\x00 delete\x7f", "bell\\x07 null\\x00 delete\\x7f"),
        ("abc\u202edcba", "abc\\u202edcba"),  # right-to-left override
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("a\u061cb", "a\\u061cb"),  # Arabic letter mark: changes direction as well
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("a\u2028b", "a\\u2028b"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("half \udcff", "half \\udcff"),
        ("[/foo] <b>|`", "[/foo] <b>|`"),  # markup is the renderers' business
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_escaped(raw, shown):
    assert units.clean(raw) == shown


@given(st.text())
def test_cleaned_text_can_be_printed_and_encoded(text):
    shown = units.clean(text)
    shown.encode("utf-8")
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)


# -- long names ------------------------------------------------------------------------------------------------

ADD = ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
       "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)")  # fmt: skip
MUL = ADD.replace("CUDAFunctor_add", "BinaryFunctor_mul").replace("3ul", "2ul")


def test_a_name_that_fits_stays_as_it_is():
    assert units.short_name("aten::mm", 8) == "aten::mm"


def test_a_kernels_name_loses_return_type_namespaces_and_arguments_first():
    assert units.short_name(ADD, 90) == "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, char*[3] >"


@pytest.mark.parametrize("width", [16, 24, 40, 60, 80])
def test_two_instantiations_stay_apart_at_any_width(width):
    """What tells them apart stands at the back, in the template arguments."""
    assert units.short_name(ADD, width) != units.short_name(MUL, width)


def test_an_operator_keeps_its_namespace():
    assert units.short_name("aten::_scaled_dot_product_flash_attention", 20).startswith("aten::")


def test_arguments_with_brackets_of_their_own_are_cut_whole():
    assert units.short_name("void f<int>(void (*)(int), std::function<int (int)>)", 30) == "f<int>"


def test_a_name_that_a_compiler_wrote_is_shown_as_its_author_wrote_it():
    mangled = "_ZN5aiter17add_rmsnorm_quantIDF16bLi256ELb0EEEvPT_i"
    assert (
        units.short_name(mangled, 90)
        == "void aiter::add_rmsnorm_quant<std::bfloat16_t, 256, false>(std::bfloat16_t*, int)"
    )
    assert units.short_name(mangled, 60) == "aiter::add_rmsnorm_quant<bfloat16_t, 256, false>"
    assert units.short_name("_ZN5aiter17add_rms", 60) == "_ZN5aiter17add_rms"  # cut: nothing is guessed


def test_what_compilers_write_around_a_lambda_is_left_out():
    lambdas = "{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}"
    clamp = f"at::native::(anonymous namespace)::launch_clamp(at::TensorIteratorBase&, c10::Scalar)::{lambdas}"
    name = f"void at::native::vectorized_elementwise_kernel<4, {clamp}, std::array<char*, 2ul> >(int, {clamp})"
    assert units.short_name(name, 90) == "vectorized_elementwise_kernel<4, launch_clamp::{lambda(float)#1}, char*[2] >"
    # Two that differ in what is left out stay apart where they stand together.
    other = name.replace("()#7", "()#8")
    assert len(set(units.short_names([name, other], 90).values())) == 2


@given(st.text(min_size=1), st.integers(1, 60))
def test_a_short_name_is_never_wider_than_asked(text, width):
    assert len(units.short_name(text, width)) <= width


NVJET = [f"nvjet_sm90_tst_64x8_64x16_{cluster}_{way}_bz_bias_TNT" for cluster in ("4x2", "1x2") for way in "hv"]


@pytest.mark.parametrize("width", [14, 20, 30, 40])
def test_names_that_differ_in_the_middle_only_stay_apart_where_they_stand_together(width):
    """Cut in the middle, all four would be `nvjet_sm90_t…bias_TNT`."""
    shown = units.short_names(NVJET, width)
    assert len(set(shown.values())) == 4
    assert all(len(text) <= width for text in shown.values())


def test_names_that_differ_in_their_arguments_only_stay_apart():
    shown = units.short_names(
        ["void at::native::fill_kernel<4>(int, float*)", "void at::native::fill_kernel<4>(int, half*)"], 20
    )
    assert len(set(shown.values())) == 2


def test_names_that_look_different_anyway_are_cut_as_alone():
    assert units.short_names([ADD, MUL], 40) == {n: units.short_name(n, 40) for n in (ADD, MUL)}


@given(st.lists(st.text(alphabet="ab<>:,( )x", min_size=1, max_size=60), max_size=5), st.integers(8, 40))
def test_names_that_stand_together_are_never_wider_than_asked(names, width):
    assert all(len(text) <= width for text in units.short_names(names, width).values())


def test_a_name_that_is_only_a_bracket_does_no_harm():
    for name in (")" * 50, "(" * 50, "()" * 40, "void " + "x" * 50 + ")"):
        assert 0 < len(units.short_name(name, 10)) <= 10
