from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from molforge_eval.decision import generator, interval_of, judge, lies_inside
from molforge_eval.records.evaluation import DecisionRule

RULE = DecisionRule()
QUICK = DecisionRule(bootstrap_resamples=60)


def _draw(rng: np.random.Generator, *, share_good: float, seeds: int = 16) -> np.ndarray:
    """Scores as the laboratory gives them: unfinished, a floor, or one of the good endings."""
    good = rng.random((seeds, 3)) < share_good
    poor = np.where(rng.random((seeds, 3)) < 0.4, 0.0, rng.choice([0.08, 0.1167, 0.15], size=(seeds, 3)))
    return np.where(good, rng.choice([0.69, 0.84, 0.87], size=(seeds, 3)), poor)


def test_a_rise_in_every_seed_is_improved_and_a_fall_is_regressed() -> None:
    differences = np.random.default_rng(1).uniform(0.2, 0.6, size=(16, 3))

    assert judge(differences, RULE).outcome == "improved"
    assert judge(-differences, RULE).outcome == "regressed"


def test_five_seeds_can_never_be_improved() -> None:
    judgement = judge(np.full((5, 3), 0.5), RULE)

    assert judgement.test.p_value == 2 / 2**5
    assert judgement.outcome == "inconclusive"


def test_small_differences_around_zero_are_no_change_shown() -> None:
    differences = np.random.default_rng(1).uniform(-0.02, 0.02, size=(16, 3))

    assert judge(differences, RULE).outcome == "no change shown"


@pytest.mark.parametrize(("seeds", "outcome"), [(2, "inconclusive"), (5, "inconclusive"), (6, "no change shown")])
def test_fewer_than_six_seeds_show_no_change_as_little_as_they_show_one(seeds: int, outcome: str) -> None:
    judgement = judge(np.random.default_rng(1).uniform(-0.02, 0.02, size=(seeds, 3)), RULE)

    assert lies_inside(judgement.interval, RULE.margin)
    assert judgement.outcome == outcome


def test_a_stricter_level_needs_more_seeds() -> None:
    differences = np.random.default_rng(1).uniform(-0.02, 0.02, size=(7, 3))

    assert judge(differences, RULE).outcome == "no change shown"
    assert judge(differences, DecisionRule(alpha=0.01)).outcome == "inconclusive"


def test_wide_differences_around_zero_are_inconclusive() -> None:
    differences = np.array([[0.6, -0.5, 0.1], [-0.6, 0.5, -0.1]] * 8) + 0.01

    assert judge(differences, RULE).outcome == "inconclusive"


def test_no_spread_is_no_ground_for_saying_that_nothing_changed() -> None:
    judgement = judge(np.zeros((16, 3)), RULE)

    assert judgement.interval is None
    assert judgement.outcome == "inconclusive"


def test_equal_differences_give_equal_judgements() -> None:
    differences = np.random.default_rng(1).normal(0.02, 0.2, size=(24, 3))

    assert judge(differences, RULE) == judge(differences, RULE)


def test_an_interval_elsewhere_moves_no_other() -> None:
    table = np.random.default_rng(1).uniform(0, 1, size=(16, 3))
    before = interval_of(table, RULE, "before")

    assert generator(RULE, "before").random() != generator(RULE, "after").random()
    assert interval_of(table, RULE, "after") != before
    assert interval_of(table, RULE, "before") == before


def test_false_improved_stays_at_or_under_five_per_cent() -> None:
    rng = np.random.default_rng(20_260_101)
    runs = 2_000
    outcomes: Counter[str] = Counter()
    for run in range(runs):
        # The null is that training changed nothing, whether the model is poor, middling or good.
        share = (0.02, 0.1, 0.5, 0.9)[run % 4]
        outcomes[judge(_draw(rng, share_good=share) - _draw(rng, share_good=share), QUICK).outcome] += 1

    # One-sided half of the two-sided 5 %; the bound leaves one simulation in a thousand to chance.
    assert outcomes["improved"] <= stats.binom.ppf(0.999, runs, 0.025)
    assert outcomes["improved"] + outcomes["regressed"] <= stats.binom.ppf(0.999, runs, 0.05)
    assert outcomes["improved"] > 0


def test_a_real_rise_is_seen_most_of_the_time() -> None:
    rng = np.random.default_rng(4)
    runs = 200
    outcomes = Counter(
        judge(_draw(rng, share_good=0.6) - _draw(rng, share_good=0.1), QUICK).outcome for _ in range(runs)
    )

    assert outcomes["improved"] > 0.95 * runs
    assert outcomes["regressed"] == 0


@pytest.mark.parametrize(
    "loose",
    [
        {"alpha": 0.06},
        {"alpha": 1e-300},
        {"margin": 1e-300},
        {"confidence": 0.5},
        {"confidence": 0.9999999999999999},
        {"bootstrap_resamples": 1},
        {"flip_draws": 1},
    ],
)
def test_a_rule_that_is_looser_than_the_standard_one_or_beyond_reckoning_is_refused(loose: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DecisionRule(**loose)
