from __future__ import annotations

import pytest

from molforge_env.arithmetic import clamp01, fold, open01, round4, text_of


@pytest.mark.parametrize(("value", "score"), [(-1.0, 0.0001), (0.0, 0.0001), (0.5, 0.5), (1.0, 0.9999), (2.0, 0.9999)])
def test_a_score_never_reaches_zero_or_one(value: float, score: float) -> None:
    assert open01(value) == score


@pytest.mark.parametrize(("value", "clamped"), [(-0.1, 0.0), (0.0, 0.0), (0.3, 0.3), (1.0, 1.0), (1.1, 1.0)])
def test_clamping_keeps_what_lies_between(value: float, clamped: float) -> None:
    assert clamp01(value) == clamped


def test_rounding_judges_the_exact_binary_value() -> None:
    assert round4(0.00005) == 0.0001  # the double lies just above the tie
    assert round4(2.67495) == 2.6749  # and this one just below


def test_folding_adds_from_left_to_right_without_compensation() -> None:
    assert fold([1e16, 1.0, -1e16]) == 0.0
    assert fold([]) == 0.0


def test_a_number_becomes_text_with_the_decimals_that_are_asked_for() -> None:
    assert text_of(0.84, decimals=2) == "0.84"
    assert text_of(1, decimals=4) == "1.0000"
