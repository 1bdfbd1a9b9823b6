from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from molforge_eval.statistics import (
    Interval,
    bootstrap_interval,
    distinct_count,
    fewest_units,
    holm,
    mean_of,
    minimum_detectable_difference,
    seeds_needed,
    sign_flip_test,
    smallest_sign_flip_p,
    student_quantile,
)


def _rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_mean_does_not_depend_on_the_order_of_episodes() -> None:
    values = [0.1, 0.2, 0.3, 1e-17, 0.7]

    assert mean_of(values) == mean_of(values[::-1])


def test_five_copies_are_one_distinct_score() -> None:
    assert distinct_count([0.5] * 5) == 1


def test_the_exact_test_agrees_with_scipy() -> None:
    differences = _rng(3).normal(0.1, 0.2, size=9)
    ours = sign_flip_test(differences, rng=_rng())
    theirs = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="two-sided",
        vectorized=False,
    )

    assert ours.method == "exact"
    assert ours.flips == 512
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_the_exact_test_counts_ties_of_unlike_spelling() -> None:
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit; they are one mean.
    assert sign_flip_test([0.3, 0.1, 0.2], rng=_rng()).p_value == sign_flip_test([0.1, 0.2, 0.3], rng=_rng()).p_value


def test_no_difference_at_all_gives_a_p_value_of_one() -> None:
    assert sign_flip_test([0.0] * 16, rng=_rng()).p_value == 1.0


def test_the_drawn_test_is_near_the_exact_one_and_never_zero() -> None:
    differences = _rng(5).normal(0.05, 0.1, size=12)
    exact = sign_flip_test(differences, rng=_rng())
    drawn = sign_flip_test(differences, rng=_rng(), exact_up_to=1, draws=25_000)
    sure = sign_flip_test([0.5] * 30, rng=_rng(), draws=999)

    assert drawn.method == "drawn"
    assert drawn.flips == 25_001
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.01)
    assert sure.p_value == 1 / 1000


def test_the_drawn_test_depends_on_its_generator_alone() -> None:
    differences = _rng(5).normal(0.05, 0.3, size=25)
    first = sign_flip_test(differences, rng=_rng(1), draws=2_000)

    assert first == sign_flip_test(differences, rng=_rng(1), draws=2_000)
    assert first != sign_flip_test(differences, rng=_rng(2), draws=2_000)


def test_twenty_units_are_tested_exactly_and_twenty_one_are_drawn() -> None:
    assert sign_flip_test([0.1] * 20, rng=_rng()).flips == 2**20
    assert sign_flip_test([0.1] * 21, rng=_rng(), draws=100).method == "drawn"


@pytest.mark.parametrize("values", [[], [[0.1, 0.2]]])
def test_anything_but_a_line_of_differences_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="wanted a line"):
        sign_flip_test(values, rng=_rng())


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=10))
def test_the_p_value_is_the_same_for_both_signs_and_never_under_its_bound(values: list[float]) -> None:
    p_value = sign_flip_test(values, rng=_rng()).p_value

    assert p_value == sign_flip_test([-value for value in values], rng=_rng()).p_value
    assert smallest_sign_flip_p(len(values)) <= p_value <= 1.0


def test_three_greedy_episodes_cannot_go_under_a_quarter() -> None:
    assert smallest_sign_flip_p(3) == 0.25
    assert sign_flip_test([0.7, 0.8, 0.6], rng=_rng()).p_value == 0.25


def test_equal_generators_give_equal_intervals() -> None:
    table = _rng(2).uniform(0, 1, size=(16, 3))

    assert bootstrap_interval(table, rng=_rng(1)) == bootstrap_interval(table, rng=_rng(1))
    assert bootstrap_interval(table, rng=_rng(1)) != bootstrap_interval(table, rng=_rng(2))


@pytest.mark.parametrize(("seeds", "tasks"), [(2, 1), (17, 3), (600, 3)])
def test_the_interval_is_that_of_scipy_to_the_last_bit(seeds: int, tasks: int) -> None:
    table = _rng(2).uniform(0, 1, size=(seeds, tasks))
    ours = bootstrap_interval(table, rng=_rng(1), confidence=0.9, resamples=999)
    theirs = stats.bootstrap(
        tuple(table.T),
        lambda *columns, axis: sum(column.mean(axis=axis) * (1.0 / tasks) for column in columns),
        n_resamples=999,
        confidence_level=0.9,
        method="percentile",
        vectorized=True,
        rng=_rng(1),
    ).confidence_interval

    assert ours == (theirs.low, theirs.high)


def test_the_quantiles_are_those_of_scipy() -> None:
    found = [student_quantile(share, degrees) for share in (0.8, 0.975) for degrees in range(1, 100)]

    assert found == [stats.t.ppf(share, degrees) for share in (0.8, 0.975) for degrees in range(1, 100)]


def test_the_interval_holds_the_mean_and_narrows_with_seeds() -> None:
    few, many = _rng(2).uniform(0, 1, size=(4, 3)), _rng(2).uniform(0, 1, size=(64, 3))
    narrow, wide = bootstrap_interval(many, rng=_rng()), bootstrap_interval(few, rng=_rng())

    assert isinstance(narrow, Interval)
    assert isinstance(wide, Interval)
    assert narrow.low < many.mean() < narrow.high
    assert narrow.high - narrow.low < wide.high - wide.low


def test_tasks_weigh_the_same_in_the_interval() -> None:
    # One task never varies, so the mean moves by half of the other's spread.
    varying = np.array([[0.0, 0.5], [1.0, 0.5]] * 20)
    interval = bootstrap_interval(varying, rng=_rng())

    assert interval is not None
    assert 0.25 < interval.low < 0.5 < interval.high < 0.75


@pytest.mark.parametrize("table", [[[0.3, 0.4, 0.5]], [[0.3, 0.4]] * 5])
def test_one_seed_or_copies_have_no_interval(table: list[list[float]]) -> None:
    assert bootstrap_interval(np.array(table), rng=_rng()) is None


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    hits = 0
    for seed in range(300):
        rng = _rng(seed)
        table = np.where(rng.random((16, 3)) < 0.5, 0.8, 0.1) - np.where(rng.random((16, 3)) < 0.2, 0.8, 0.1)
        interval = bootstrap_interval(table, rng=rng, resamples=400)
        hits += interval is not None and interval.low <= 0.7 * 0.3 <= interval.high

    assert 0.90 <= hits / 300 <= 0.99


def test_holm_multiplies_by_the_number_of_tasks_left_and_keeps_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


def test_the_detectable_difference_shrinks_with_seeds() -> None:
    spread = list(_rng(1).normal(0, 0.2, size=8))
    few = minimum_detectable_difference(spread, alpha=0.05)
    many = minimum_detectable_difference(spread * 8, alpha=0.05)

    assert few is not None
    assert many is not None
    assert many < few


def test_the_seeds_that_are_needed_show_the_effect_and_one_fewer_does_not() -> None:
    spread = list(_rng(1).normal(0, 0.2, size=40))
    needed = seeds_needed(spread, alpha=0.05, effect=0.05)

    assert needed is not None
    scale = float(np.std(spread, ddof=1))
    detectable = [
        (stats.t.ppf(0.975, count - 1) + stats.t.ppf(0.8, count - 1)) * scale / np.sqrt(count)
        for count in (needed - 1, needed)
    ]
    assert detectable[0] > 0.05 >= detectable[1]


@pytest.mark.parametrize("values", [[0.3], [0.3, 0.3, 0.3]])
def test_without_spread_nothing_is_planned(values: list[float]) -> None:
    assert minimum_detectable_difference(values, alpha=0.05) is None
    assert seeds_needed(values, alpha=0.05, effect=0.05) is None


def test_a_tiny_spread_needs_as_many_seeds_as_the_test_needs_to_reach_its_level() -> None:
    assert seeds_needed([0.3, 0.3 + 1e-9], alpha=0.05, effect=0.05) == fewest_units(0.05)
    assert smallest_sign_flip_p(fewest_units(0.05)) < 0.05 <= smallest_sign_flip_p(fewest_units(0.05) - 1)


def test_seeds_that_no_test_could_tell_apart_have_no_detectable_difference() -> None:
    assert minimum_detectable_difference([0.1, 0.2, 0.3, 0.4, 0.5], alpha=0.05) is None
    assert minimum_detectable_difference([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], alpha=0.05) is not None


def test_an_evaluation_of_many_seeds_takes_no_more_memory_at_once() -> None:
    many = np.random.default_rng(3).normal(size=(40_000, 1))
    tracemalloc.start()
    sign_flip_test(many[:, 0], rng=np.random.default_rng(7), draws=1_000)
    bootstrap_interval(many, rng=np.random.default_rng(7), resamples=500)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 150 * 2**20
