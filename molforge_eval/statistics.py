"""Tests, intervals and plans of sample size for paired differences of scores.

The unit is a seed: its score is the mean over tasks, each task weighing the same. Every draw comes from a generator
that the caller hands in, and a number that cannot be known is `None`; the caller says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.random import Generator

Differences = NDArray[np.float64]

POWER = 0.8
"""Chance of seeing a difference that is there, used for the minimum detectable difference."""
TIE = 1e-12
"""Two flipped means closer than this are the same mean, spelled by another order of addition."""


_LEAST_SPELLED_P = 0.0001
_MOST_CELLS = 2**22
"""Numbers drawn at once: an evaluation of many seeds takes more rounds, not more memory."""


class SignFlip(NamedTuple):
    """Result of a two-sided sign-flip test."""

    p_value: float
    method: Literal["exact", "drawn"]
    flips: int
    """Sign patterns that were looked at, the observed one among them."""


class Interval(NamedTuple):
    """Lower and upper bound of a mean."""

    low: float
    high: float


def mean_of(values: Sequence[float] | Differences) -> float:
    """Return the mean, added without rounding error so that the order of episodes cannot move it.

    Raises:
        ZeroDivisionError: `values` is empty; an empty mean is the caller's `None`.
    """
    return math.fsum(float(value) for value in values) / len(values)


def distinct_count(values: Sequence[float]) -> int:
    """Count unlike scores; five copies of one deterministic episode are one."""
    return len(set(values))


def sign_flip_test(
    differences: Sequence[float] | Differences, *, rng: Generator, exact_up_to: int = 2**20, draws: int = 100_000
) -> SignFlip:
    """Test whether paired differences are symmetric about zero, against either side.

    All sign patterns are weighed when there are at most `exact_up_to` of them; otherwise `draws` patterns are drawn,
    and the observed one is counted with them, so that the p-value is never 0 and never too small.

    Args:
        differences: After minus before, one a unit; at least one.
        rng: Source of the drawn patterns; not touched by the exact test.
        exact_up_to: Most patterns that are weighed one by one.
        draws: Patterns drawn beyond that.

    Returns:
        Two-sided p-value with the way it was found.

    >>> sign_flip_test([0.1, 0.2, 0.3], rng=np.random.default_rng(7))
    SignFlip(p_value=0.25, method='exact', flips=8)
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"differences of shape {values.shape}, wanted a line of at least one")
    observed = abs(float(values.sum())) - TIE * values.size
    if 2**values.size <= exact_up_to:
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        extreme = int(np.count_nonzero(np.abs(sums) >= observed))
        return SignFlip(extreme / sums.size, "exact", int(sums.size))
    extreme = 0
    for block in _blocks(draws, min(10_000, _MOST_CELLS // values.size + 1)):
        signs = rng.integers(0, 2, size=(block, values.size), dtype=np.int8) * 2 - 1
        extreme += int(np.count_nonzero(np.abs(signs @ values) >= observed))
    return SignFlip((extreme + 1) / (draws + 1), "drawn", draws + 1)


def smallest_sign_flip_p(units: int) -> float:
    """Return the least p-value that a sign-flip test can give: 0.25 for three episodes, whatever they scored."""
    return min(1.0, 2.0 / 2.0**units)


def fewest_units(alpha: float) -> int:
    """Return the fewest units whose sign-flip test can give a p-value under a level, at least two.

    >>> fewest_units(0.05)
    6
    """
    units = 2
    while smallest_sign_flip_p(units) >= alpha:
        units += 1
    return units


def bootstrap_interval(
    scores: Differences, *, rng: Generator, confidence: float = 0.95, resamples: int = 10_000
) -> Interval | None:
    """Bootstrap the equal-weight mean over tasks of scores, or of paired differences of scores.

    Seeds are resampled within each task, so a task keeps its weight in every resample.

    Args:
        scores: Shape (seeds, tasks); for a paired interval after minus before.
        rng: Source of every draw. Equal state gives an equal interval.
        confidence: Coverage, between 0 and 1.
        resamples: Number of resamples.

    Returns:
        Bounds, or `None` when no task has two unlike scores: copies say nothing about spread.
    """
    table = np.asarray(scores, dtype=np.float64)
    seeds, tasks = table.shape
    if seeds < 2 or bool(np.all(table == table[:1])):
        return None
    means = []
    for block in _blocks(resamples, min(resamples, _MOST_CELLS // seeds + 1)):
        total = np.zeros(block)
        for column in table.T:
            total = total + column[rng.integers(0, seeds, (block, seeds))].mean(axis=-1) * (1.0 / tasks)
        means.append(total)
    tail = (1.0 - confidence) / 2.0
    ordered = np.sort(np.concatenate(means))
    return Interval(_quantile(ordered, tail), _quantile(ordered, 1.0 - tail))


def _quantile(ordered: Differences, share: float) -> float:
    """Interpolate between neighbours, in one order of arithmetic: that of numpy differs from version to version."""
    place, part = divmod(share * ordered.size + (1.0 - share), 1.0)
    lower, upper = ordered[int(place) - 1], ordered[min(int(place), ordered.size - 1)]
    return float((1.0 - part) * lower + part * upper)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values for looking at several tasks, by Holm's step-down rule; order is kept.

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)


def minimum_detectable_difference(differences: Sequence[float] | Differences, *, alpha: float) -> float | None:
    """Return the difference that this many seeds of this spread would show with 80 % power.

    Args:
        differences: After minus before, one a seed.
        alpha: Two-sided level of the test.

    Returns:
        A score difference; `None` without spread, or with too few seeds for a sign-flip test to reach `alpha`.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size < fewest_units(alpha) or bool(np.all(values == values[0])):
        return None
    return _quantiles(int(values.size) - 1, alpha) * float(values.std(ddof=1)) / math.sqrt(values.size)


def seeds_needed(differences: Sequence[float] | Differences, *, alpha: float, effect: float) -> int | None:
    """Return how many seeds of this spread would show a difference of `effect` with 80 % power.

    Returns:
        At least as many as a sign-flip test needs to reach `alpha`; `None` below two seeds or without spread.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size < 2 or bool(np.all(values == values[0])):
        return None
    from scipy.special import ndtri

    ratio = float(values.std(ddof=1)) / effect
    # The normal quantiles are the limit of many seeds, so their answer is a lower bound, short by a few.
    normal = float(ndtri(1.0 - alpha / 2.0) + ndtri(POWER))
    needed = max(fewest_units(alpha), math.ceil((normal * ratio) ** 2))
    while _quantiles(needed - 1, alpha) * ratio > math.sqrt(needed):
        needed += 1
    return needed


def student_quantile(share: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution below which a share of it lies."""
    # Not by way of `scipy.stats`, whose import takes longer than a whole validation.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


def _quantiles(degrees: int, alpha: float) -> float:
    return student_quantile(1.0 - alpha / 2.0, degrees) + student_quantile(POWER, degrees)


def _blocks(total: int, size: int) -> list[int]:
    return [size] * (total // size) + ([total % size] if total % size else [])


def spell_p_value(value: float) -> str:
    """Spell a p-value in three digits or four; one below 0.0001 is called so.

    >>> spell_p_value(0.25), spell_p_value(0.00781), spell_p_value(0.00002)
    ('0.250', '0.0078', '< 0.0001')
    """
    if value < _LEAST_SPELLED_P:
        return f"< {_LEAST_SPELLED_P}"
    return f"{value:.4f}" if value < 100 * _LEAST_SPELLED_P else f"{value:.3f}"
