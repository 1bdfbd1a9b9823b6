"""The number conventions of the rules: rounding, clamping and folding.

Reward and score numbers are compared to four decimals, so every sum is a left fold in the stated order. The built-in
`sum` is not used, because Python 3.12 made it compensated and that moves a few rewards in the fourth decimal.
"""

from __future__ import annotations

from collections.abc import Iterable


def round4(value: float) -> float:
    """Round to four decimals, ties to even on the exact binary value."""
    return round(value, 4)


def clamp01(value: float) -> float:
    """Clamp into [0, 1]."""
    return 0.0 if value < 0.0 else min(value, 1.0)


def open01(value: float) -> float:
    """Clamp into [0.0001, 0.9999] and round: the range of a grader score.

    >>> open01(1.0), open01(0.0), open01(0.87654)
    (0.9999, 0.0001, 0.8765)
    """
    return round(0.0001 if value < 0.0001 else min(value, 0.9999), 4)


def fold(values: Iterable[float]) -> float:
    """Add from left to right, starting at zero."""
    total = 0.0
    for value in values:
        total += value
    return total


def text_of(value: float, *, decimals: int) -> str:
    """Format a number for people and models: the one place where a float becomes text.

    >>> text_of(0.5, decimals=3)
    '0.500'
    """
    return f"{value:.{decimals}f}"
