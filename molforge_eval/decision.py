"""The decision rule: from paired differences to improved, regressed, no change shown or inconclusive.

The rule is fixed in the plan before the run. False `improved` stays at or under the level of the test, because under
the null the signs of the differences are exchangeable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from molforge_env import seeding
from molforge_eval.records.evaluation import DecisionRule
from molforge_eval.statistics import (
    Differences,
    Interval,
    SignFlip,
    bootstrap_interval,
    fewest_units,
    sign_flip_test,
)

if TYPE_CHECKING:
    from numpy.random import Generator

Decided = Literal["improved", "regressed", "no change shown", "inconclusive"]


class Judgement(NamedTuple):
    """What the rule says about some differences."""

    outcome: Decided
    test: SignFlip
    interval: Interval | None
    """`None` where the seeds show no spread."""


def judge(differences: Differences, rule: DecisionRule) -> Judgement:
    """Apply the rule to paired differences.

    No change is shown only by as many seeds as could have shown one: six at the level of 0.05.

    Args:
        differences: Shape (seeds, tasks), after minus before; at least one seed.
        rule: Level, margin, confidence and the seed of every draw.
    """
    units = differences.mean(axis=1)
    test = sign_flip_test(
        units, rng=generator(rule, "sign-flip"), exact_up_to=rule.exact_flips_up_to, draws=rule.flip_draws
    )
    interval = interval_of(differences, rule, "difference")
    if test.p_value < rule.alpha:
        return Judgement("improved" if float(units.mean()) > 0.0 else "regressed", test, interval)
    if len(units) >= fewest_units(rule.alpha) and lies_inside(interval, rule.margin):
        return Judgement("no change shown", test, interval)
    return Judgement("inconclusive", test, interval)


def lies_inside(interval: Interval | None, margin: float) -> bool:
    """Tell whether an interval lies inside the band around zero; one that is unknown does not.

    That alone is no ground for `no change shown`: resampling fewer seeds than the test needs spans too little.
    """
    return interval is not None and -margin <= interval.low and interval.high <= margin


def interval_of(scores: Differences, rule: DecisionRule, name: str) -> Interval | None:
    """Bootstrap the equal-weight mean of a score table, from the stream of that name."""
    return bootstrap_interval(
        scores, rng=generator(rule, name), confidence=rule.confidence, resamples=rule.bootstrap_resamples
    )


def generator(rule: DecisionRule, name: str) -> Generator:
    """Return the generator of one use, so that another interval elsewhere cannot move this one."""
    import numpy as np

    return np.random.default_rng(seeding.stream_seed(rule.statistics_seed, "verdict", name))
