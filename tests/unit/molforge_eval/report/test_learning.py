from __future__ import annotations

import polars as pl
import pytest

from molforge_eval.catalogue import finding
from molforge_eval.findings import Finding
from molforge_eval.log_tables import gaps_of
from molforge_eval.report.learning import first_and_last, slope_of, trend_of
from molforge_eval.report.series import Curve, curve_of, curve_over_steps, trainer_rows


def curve(values) -> Curve:
    return curve_over_steps(list(range(len(values))), list(values), "loss")


def test_the_slope_of_a_line_is_its_own_over_ten_steps() -> None:
    slope = slope_of(curve([0.1 * step + (0.01 if step % 2 else -0.01) for step in range(20)]))

    assert slope is not None
    assert slope.low < 1.0 < slope.high
    assert slope.value == pytest.approx(1.0, abs=0.01)


def test_a_number_that_stands_in_the_file_as_nan_is_a_gap_of_its_curve() -> None:
    log = pl.DataFrame({"line": [1, 2], "type": ["train"] * 2, "step": [1, 2], "loss": [None, 0.5], "non_finite": "{}"})
    lost = finding("NUMBER_NOT_FINITE", "number NaN is not finite", file="a.jsonl", line=1, pointer="/loss")
    found = curve_of(trainer_rows(log, [lost], "a.jsonl"), "loss")

    assert [(point.step, point.value) for point in found.points] == [(1, None), (2, 0.5)]
    assert found.gaps == 1
    assert curve_of(trainer_rows(log, [lost], "b.jsonl"), "loss").gaps == 0


def test_a_gap_is_named_by_its_key_and_line_and_only_in_its_own_file() -> None:
    def lost(pointer: str, file: str = "a.jsonl", code: str = "NUMBER_NOT_FINITE") -> Finding:
        return finding(code, "number NaN is not finite", file=file, line=3, pointer=pointer)

    found = gaps_of(
        [lost("/kl"), lost("/a~1b"), lost("/loss", "b.jsonl"), lost("/x", code="NUMBER_TOO_WIDE")], "a.jsonl"
    )

    assert found == {3: {"kl": "number NaN is not finite", "a/b": "number NaN is not finite"}}


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


def test_a_perfect_line_has_a_slope_and_an_interval_without_width() -> None:
    slope = slope_of(curve([0.001 * step for step in range(1, 61)]))

    assert slope is not None
    assert slope.value == pytest.approx(0.01)
    assert slope.high - slope.low < 1e-6


def test_a_level_curve_has_no_slope_and_huge_values_stay_finite() -> None:
    import math

    assert slope_of(curve([0.001] * 10)) == (0.0, 0.0, 0.0)
    assert all(math.isfinite(number) for number in slope_of(curve([1e100 * (step % 3) for step in range(10)])) or ())


def test_numbers_at_the_edge_of_floats_break_nothing() -> None:
    edge = curve([1.7e308, -1.7e308, 1.6e308, 1.7e308, 0.0, 1.7e308])

    assert slope_of(edge) is None
    assert trend_of(edge) == "unknown"
    assert first_and_last(edge) == (1.7e308, 1.7e308)
    assert all(point.average is None or abs(point.average) <= 1.8e308 for point in edge.points)
