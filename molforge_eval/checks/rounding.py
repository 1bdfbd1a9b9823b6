"""When a recorded number is the computed one: equal up to how it was written, never looser than four decimals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_FEWEST_DECIMALS = 4
_MOST_DECIMALS = 9
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,17})?")


def agrees(recorded: float | None, computed: float | None) -> bool:
    """Tell whether a recorded number is the computed one, rounded or not.

    A number with four decimals may be off by half of the fourth; one written in full by a billionth. Writing fewer
    decimals does not buy more room.

    >>> agrees(0.5123, 0.51234), agrees(0.5, 0.5123), agrees(None, 0.0), agrees(None, None)
    (True, False, False, True)
    """
    if recorded is None or computed is None:
        return recorded is computed
    decimals = len(f"{recorded!r}".partition(".")[2].partition("e")[0])
    room = 0.5 * 10.0 ** -min(max(decimals, _FEWEST_DECIMALS), _MOST_DECIMALS)
    return abs(recorded - computed) <= room * (1.0 + 1e-6) + 1e-12 * abs(computed)


def mean_of(values: Iterable[float]) -> float | None:
    """Average numbers, added from left to right; `None` of none."""
    total, count = 0.0, 0
    for value in values:
        total += value
        count += 1
    return total / count if count else None


def number_of(value: Any) -> float | None:
    """Read a number, and a text that is nothing but one: who writes a claim in quotation marks has claimed it.

    >>> number_of(3), number_of(" 0.89 "), number_of(True), number_of("0.89 of 1")
    (3.0, 0.89, None, None)
    """
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value.strip()) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def with_numbers(value: Any) -> Any:
    """Read numbers out of their quotation marks, in objects and lists too; nothing else is changed."""
    if isinstance(value, Mapping):
        return {key: with_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [with_numbers(inner) for inner in value]
    return number_of(value) if isinstance(value, str) and number_of(value) is not None else value
