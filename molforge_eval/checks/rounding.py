"""When a recorded number is the computed one: equal up to how it was written, never looser than four decimals."""

from __future__ import annotations

from collections.abc import Iterable

_FEWEST_DECIMALS = 4
_MOST_DECIMALS = 9


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
