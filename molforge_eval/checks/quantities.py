"""What a key says that its number is: a spread, a mean, a count, a share, and of what; in any order and spelling."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

Kind = Literal["count", "mean", "median", "min", "max", "std", "sem", "low", "high", "interval", "share"]

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("mean", "avg", "average"), "mean"),
    "median": "median",
    **dict.fromkeys(("min", "minimum", "lowest", "worst"), "min"),
    **dict.fromkeys(("max", "maximum", "highest", "best"), "max"),
    **dict.fromkeys(("std", "stdev", "stddev", "sd"), "std"),
    **dict.fromkeys(("sem", "se", "stderr"), "sem"),
    **dict.fromkeys(("n", "num", "count", "number"), "count"),
}
_TWO_WORDS = (
    (re.compile(r"(?<![a-z])(std|standard|st)_(dev|deviation)(?![a-z])"), "std"),
    (re.compile(r"(?<![a-z])(std|standard|st)_(err|error)(?![a-z])"), "sem"),
)
_SHARES = frozenset({"rate", "ratio", "share", "frac", "fraction", "pct", "percent", "percentage"})
_PERCENT = frozenset({"pct", "percent", "percentage"})
_CHANGES = frozenset(
    {
        *("change", "changes", "decay", "delta", "diff", "difference", "drop", "gain", "growth", "improve"),
        *("improvement", "increase", "lift", "relative", "uplift"),
    }
)
_INTERVALS = frozenset({"ci", "confidence", "interval", "conf"})
_NO_ENDS = frozenset({"level", "width", "half", "method", "alpha", "coverage"})
_LOW = frozenset({"low", "lower", "lo", "min", "left"})
_HIGH = frozenset({"high", "upper", "hi", "max", "right"})
_OF_INTERVALS = _INTERVALS | _LOW | _HIGH | {"bound", "bounds", "bootstrap", "int", "percent", "pct", "limit"}
_PARTS = re.compile(r"[a-z]+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Quantity(NamedTuple):
    """What a key names."""

    kind: Kind | None
    """`None` when no word of the key says it, or when two say different things."""
    subject: str
    """The other words, joined by `_`."""
    is_percent: bool = False


@cache
def words_of(key: str) -> frozenset[str]:
    """Split a key into its words.

    >>> sorted(words_of("meanFinalScore")), sorted(words_of("ci95_low"))
    (['final', 'mean', 'score'], ['ci', 'low'])
    """
    return frozenset(_PARTS.findall(_HUMPS.sub("_", key).lower()))


@cache
def quantity_of(key: str) -> Quantity:
    """Read a key.

    >>> quantity_of("final_score_std_dev"), quantity_of("avgFinalScore").kind, quantity_of("ci95_low").kind
    (Quantity(kind='std', subject='final_score', is_percent=False), 'mean', 'low')
    >>> quantity_of("success_rate"), quantity_of("improvement_pct").kind, quantity_of("confidence_level").kind
    (Quantity(kind='share', subject='success', is_percent=False), None, None)
    """
    name = "_".join(_PARTS.findall(_HUMPS.sub("_", key).lower()))
    for pattern, word in _TWO_WORDS:
        name = pattern.sub(word, name)
    words = [word for word in name.split("_") if word and word != "of"]
    if not _INTERVALS.isdisjoint(words):
        return _interval(words)
    kinds = {_KINDS[word] for word in words if word in _KINDS}
    subject = "_".join(word for word in words if word not in _KINDS)
    if len(kinds) == 1:
        return Quantity(kinds.pop(), subject)
    if not kinds and not _SHARES.isdisjoint(words) and _CHANGES.isdisjoint(words):
        subject = "_".join(word for word in words if word not in _SHARES)
        return Quantity("share", subject, is_percent=not _PERCENT.isdisjoint(words))
    return Quantity(None, "_".join(words))


def _interval(words: list[str]) -> Quantity:
    if not _NO_ENDS.isdisjoint(words):
        return Quantity(None, "_".join(words))
    subject = "_".join(word for word in words if word not in _OF_INTERVALS and word not in _KINDS)
    is_low, is_high = not _LOW.isdisjoint(words), not _HIGH.isdisjoint(words)
    if is_low == is_high:
        return Quantity("interval", subject)
    return Quantity("low" if is_low else "high", subject)


def is_multiple(share: float, count: int, *, is_percent: bool = False) -> bool:
    """Tell whether a share, rounded to four decimals or better, can be one of so many.

    >>> is_multiple(0.3333, 3), is_multiple(0.5, 3), is_multiple(66.67, 3, is_percent=True)
    (True, False, True)
    """
    if count < 1:
        return True
    whole = share / 100.0 if is_percent and share > 1.0 else share
    return abs(whole * count - round(whole * count)) <= 6e-5 * count
