"""Letters for runs: two that share one were not told apart, two that share none were.

Being told apart is no order of places: A may not be told from B, nor B from C, while A and C are. Letters say that
without a rank. The way of finding them is insert and absorb (H.-P. Piepho, "An algorithm for a letter-based
representation of all-pairwise comparisons", Journal of Computational and Graphical Statistics 13, 2004).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from string import ascii_lowercase

Pairs = Collection[tuple[str, str]]


def find_ties(runs: Sequence[str], apart: Pairs) -> tuple[tuple[str, ...], ...]:
    """Find the largest sets of runs of which no two were told apart; each run is in at least one.

    Args:
        runs: In the order that the sets keep.
        apart: The pairs that were told apart, each once in any order.

    >>> find_ties(["A", "B", "C"], [("A", "C")])
    (('A', 'B'), ('B', 'C'))
    """
    if not runs:
        return ()
    sets = [frozenset(runs)]
    for first, second in apart:
        split = [kept for found in sets for kept in _split(found, first, second)]
        sets = [one for number, one in enumerate(split) if not _is_absorbed(one, number, split)]
    ordered = [tuple(run for run in runs if run in found) for found in sets]
    return tuple(sorted(ordered, key=lambda tie: [runs.index(run) for run in tie]))


def letter_of(number: int) -> str:
    """Name the set of a number: a to z, then aa, ab and so on.

    >>> letter_of(0), letter_of(25), letter_of(26)
    ('a', 'z', 'aa')
    """
    name = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_lowercase))
        name = ascii_lowercase[place] + name
    return name


def _split(found: frozenset[str], first: str, second: str) -> list[frozenset[str]]:
    if first in found and second in found:
        return [found - {first}, found - {second}]
    return [found]


def _is_absorbed(one: frozenset[str], number: int, sets: Sequence[frozenset[str]]) -> bool:
    """Tell whether a set says nothing that another does not; of equal ones the first stands."""
    return any(one < other or (one == other and place < number) for place, other in enumerate(sets))
