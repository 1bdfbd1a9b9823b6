from __future__ import annotations

import pytest

from molforge_eval.report.learning import first_and_last, slope_of, trend_of
from molforge_eval.report.series import Curve, curve_over_steps


def curve(values) -> Curve:
    return curve_over_steps(list(range(len(values))), list(values), "loss")


def test_the_slope_of_a_line_is_its_own_over_a_hundred_steps() -> None:
    slope = slope_of(curve([0.1 * step + (0.01 if step % 2 else -0.01) for step in range(20)]))

    assert slope is not None
    assert slope.low < 10.0 < slope.high
    assert slope.value == pytest.approx(10.0, abs=0.1)


def test_below_five_points_no_trend_is_claimed() -> None:
    assert slope_of(curve([1, 2, 3, 4])) is None
    assert trend_of(curve([1, 2, 3, 4])) == "unknown"
    assert trend_of(None) == "unknown"


@pytest.mark.parametrize(
    ("values", "trend"),
    [
        ([1, 2, 3, 4, 5, 6.5], "rose"),
        ([6, 5, 4, 3, 2, 0.5], "fell"),
        ([1, -1, 1, -1, 1, -1, 1], "flat"),
    ],
)
def test_a_trend_is_the_sign_of_the_whole_interval(values, trend) -> None:
    assert trend_of(curve(values)) == trend


def test_first_and_last_are_means_of_tenths_so_that_a_peak_is_no_level() -> None:
    values = [0.62, 0.6] + [0.9] * 8 + [2.09] + [0.5] * 7 + [0.3, 0.26]

    assert first_and_last(curve(values)) == pytest.approx((0.61, 0.28))


def test_a_curve_without_finite_points_has_neither_first_nor_last() -> None:
    assert first_and_last(Curve(column="loss", points=(), gaps=0)) is None
