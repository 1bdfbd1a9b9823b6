from __future__ import annotations

import pytest

from molforge_eval.report import numerals
from molforge_eval.report.numerals import ABSENT, MINUS, THIN


@pytest.mark.parametrize(
    ("value", "text"), [(0.125, "0.12"), (-0.3, f"{MINUS}0.30"), (-0.001, "0.00"), (None, ABSENT), (12.0, "12.00")]
)
def test_a_decimal_has_fixed_places_a_true_minus_and_no_minus_zero(value, text) -> None:
    assert numerals.decimal(value) == text


def test_a_signed_decimal_shows_its_plus_and_zero_has_none() -> None:
    assert [numerals.decimal(value, signed=True) for value in (0.5, -0.5, 0.0)] == ["+0.50", f"{MINUS}0.50", "0.00"]


def test_what_is_unknown_is_a_dash_in_every_spelling() -> None:
    spellings = (numerals.decimal, numerals.whole, numerals.scientific, numerals.probability, numerals.percent)

    assert {spell(None) for spell in spellings} == {ABSENT}
    assert numerals.duration(None) == numerals.short_hash(None) == numerals.interval(None, 0.1) == ABSENT


def test_a_tiny_p_value_is_called_below_and_never_zero() -> None:
    assert numerals.probability(0.0) == "<\N{NO-BREAK SPACE}0.0001"


def test_a_negative_percentage_has_a_true_minus() -> None:
    assert numerals.percent(-1.67) == f"{MINUS}167{THIN}%"


def test_a_count_keeps_its_thousands_together() -> None:
    assert numerals.whole(1234567) == f"1{THIN}234{THIN}567"
    assert numerals.whole(-1234) == f"{MINUS}1{THIN}234"


def test_sizes_and_times_are_spelled_for_a_reader() -> None:
    assert [numerals.size(count) for count in (1, 999, 1000, 10_900_000, 2 * 10**9)] == [
        f"1{THIN}B", f"999{THIN}B", f"1.0{THIN}kB", f"10.9{THIN}MB", f"2.0{THIN}GB",
    ]  # fmt: skip
    assert [numerals.duration(seconds) for seconds in (0.4, 60, 3600)] == ["0 s", "1 min 0 s", "1 h 0 min"]


def test_an_interval_names_both_ends() -> None:
    assert numerals.interval(-0.1, 0.2, signed=True) == f"{MINUS}0.10 to +0.20"


def test_a_huge_number_is_spelled_short() -> None:
    assert numerals.decimal(1.7e308) == "1.7e308"
    assert numerals.decimal(-2.5e7, signed=True) == f"{MINUS}2.5e7"
