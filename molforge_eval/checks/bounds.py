"""What a statistic can be, whatever it was computed from.

A share lies in 0 to 1, a spread is not negative, a minimum is not above its mean. Only names are read here: a key whose
name says nothing about its range is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from molforge_eval.checks.quantities import Quantity, is_multiple, quantity_of
from molforge_eval.strict_json import escape_step

_SHARES = re.compile(r"(^|[/_.])(frac|fraction|share|rate|probability|accuracy|clip_ratio|clipped_ratio)([/_.]|$)")
"""A ratio by itself may be anything: that of two policies is often above 1."""
_RATES = re.compile(r"(^|[/_.])(learning|sampling|frame|sample|token|lr|decay|growth|change|improvement)_rate([/_.]|$)")
_ACTIONS = re.compile(
    r"(^|[/_.])(actions?|steps?|calls?|tools?|tokens?|turns?|messages?|completions?|clip(ped)?|assays?|edits?|veto(es)?)"
    r"([/_.]|$)"
)
"""What a share can be one of, and no episode."""
_SPREADS = re.compile(r"(^|[/_.])(std|stdev|stddev|variance|sem|stderr)([/_.]|$)")
_SIZES = re.compile(
    r"(^|[/_.])(grad_norm|entropy|learning_rate|num_tokens|epoch|step_time|train_runtime|total_flos|length"
    r"|elapsed_seconds|samples_per_second|steps_per_second|call_frequency|max_grad_norm)([/_.]|$)"
)
_FREQUENCIES = frozenset({"tools/failure_frequency"})
_SCORES = frozenset({"strict_score"})
_COUNTS = ("n", "count", "num_episodes", "episodes_counted", "n_valid", "samples")
"""Keys that say of how many values the other statistics of an object are, these before others that say so."""
_MOST_COUNTED = 1_000
_EVERY = frozenset(Quantity("count", subject) for subject in ("", "episode", "episodes", "sample", "samples"))
_ORDER = (
    *(("min", "mean"), ("mean", "max"), ("min", "max"), ("min", "median"), ("median", "max")),
    *(("low", "high"), ("low", "mean"), ("mean", "high")),
)
_ROOM = 1e-4
"""Relative; hosts average in single precision and some round to four decimals."""


class Bound(NamedTuple):
    """The range of a statistic; `None` is open."""

    low: float
    high: float | None
    words: str


@cache
def bound_of(key: str) -> Bound | None:
    """Return the range that the name of a key implies.

    >>> bound_of("submit_rate"), bound_of("learning_rate").high, bound_of("reward")
    (Bound(low=0.0, high=1.0, words='a share'), None, None)
    """
    name = key.lower()
    if name.startswith("frac_"):
        # The share of groups without a spread is named after the spread.
        return Bound(0.0, 1.0, "a share")
    said = quantity_of(key)
    if _SPREADS.search(name) or said.kind in ("std", "sem"):
        return Bound(0.0, None, "a spread")
    if said.kind == "share" and said.is_percent:
        return Bound(0.0, 100.0, "a percentage")
    if name in _FREQUENCIES or (_SHARES.search(name) and not _RATES.search(name)):
        return Bound(0.0, 1.0, "a share")
    if name in _SCORES:
        return Bound(0.0, 1.0, "a score")
    if name == "kl":
        # The estimator of the host is exp(d) - d - 1, which is never below zero.
        return Bound(0.0, None, "a divergence")
    return Bound(0.0, None, "a size") if _SIZES.search(name) else None


def contradictions(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Find numbers of one object that no data can have.

    Args:
        values: A flat object; what is no number is passed over.

    Yields:
        The key, and why it cannot be.

    >>> [key for key, _ in contradictions({"n": 1, "std": 0.01, "min": 0.4, "mean": 0.3, "success_rate": 1.2})]
    ['success_rate', 'min', 'std']
    """
    numbers = {key: float(value) for key, value in values.items() if _is_number(value)}
    for key, value in numbers.items():
        bound = bound_of(key)
        if bound is None:
            continue
        if value < bound.low - _ROOM:
            yield key, f"{key} is {value:g}, {bound.words} is never below {bound.low:g}"
        elif bound.high is not None and value > bound.high + _ROOM:
            yield key, f"{key} is {value:g}, {bound.words} is never above {bound.high:g}"
    for family in _families(numbers).values():
        yield from _check_family(family, numbers)
    yield from _check_count(numbers)


def contradictions_within(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Do what `contradictions` does for every object of a JSON value.

    Yields:
        The JSON pointer of the number, and why it cannot be.
    """
    if isinstance(value, Mapping):
        for key, what in contradictions(value):
            yield f"{pointer}/{escape_step(key)}", what
        for key, inner in value.items():
            yield from contradictions_within(inner, f"{pointer}/{escape_step(str(key))}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from contradictions_within(inner, f"{pointer}/{index}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _families(numbers: Mapping[str, float]) -> dict[str, dict[str, str]]:
    """Group the statistics of one thing: `reward/std`, `min_length` and `avgScore` each belong to one."""
    found: dict[str, dict[str, str]] = {}
    for key in numbers:
        said = quantity_of(key)
        if said.kind not in (None, "count", "share"):
            found.setdefault(said.subject, {}).setdefault(said.kind, key)
    return found


def _check_family(family: Mapping[str, str], numbers: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Smallest, mean and largest stand in this order, and no spread is wider than what they leave."""
    for low, high in _ORDER:
        if low in family and high in family:
            small, large = numbers[family[low]], numbers[family[high]]
            if small > large + _ROOM * max(1.0, abs(large)):
                yield family[low], f"{family[low]} is {small:g}, above {family[high]} {large:g}"
                return
    if {"min", "max", "std"} <= family.keys():
        reach = numbers[family["max"]] - numbers[family["min"]]
        # Of two values the corrected spread is their distance over the root of two, which no larger set exceeds.
        if numbers[family["std"]] > reach * 0.7072 + _ROOM * max(1.0, abs(reach)):
            yield family["std"], f"{family['std']} is {numbers[family['std']]:g}, the values reach over {reach:g}"


def _check_count(numbers: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """One value has no spread, and a share of n values is a number of n-ths."""
    others = [key for key in numbers if quantity_of(key) in _EVERY]
    count = next((numbers[key] for key in (*_COUNTS, *others) if key in numbers), None)
    if count is None:
        return
    for key, value in numbers.items():
        bound = bound_of(key)
        if bound is None:
            continue
        if bound.words == "a spread" and count <= 1 and abs(value) > 0.0:
            yield key, f"{key} is {value:g} over {count:g} value"
        is_share = bound.words in ("a share", "a percentage") and 0.0 <= value <= (bound.high or 0.0)
        is_percent = bound.words == "a percentage"
        if not is_share or _ACTIONS.search(key.lower()) or not 0 < count <= _MOST_COUNTED:
            continue
        if not is_multiple(value, int(count), is_percent=is_percent):
            yield key, f"{key} is {value:g}, which is no number of {count:g}-ths"
