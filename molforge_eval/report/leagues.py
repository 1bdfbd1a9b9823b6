"""Leagues: the runs of a comparison that measure the same thing, every one of them with every other.

Letters are given inside a league. Runs of two leagues share none, and that says nothing: they were not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from molforge_eval.report.comparison_evidence import Tie
from molforge_eval.report.duels import Duel
from molforge_eval.report.tie_letters import find_ties, letter_of

APART = frozenset({"higher", "lower"})
UNTESTED = frozenset({"refused", "not tested"})


def find_leagues(runs: Sequence[str], duels: Sequence[Duel]) -> tuple[tuple[str, ...], ...]:
    """Part the runs that may be compared so that inside each part every pair was tested.

    A run joins the earliest league of which it was tested against every member; one that was tested against none
    stands alone.
    """
    tested = {pair for duel in duels if duel.meeting not in UNTESTED for pair in _both(duel)}
    leagues: list[list[str]] = []
    for run in runs:
        home = next((league for league in leagues if all((run, other) in tested for other in league)), None)
        if home is None:
            leagues.append([run])
        else:
            home.append(run)
    return tuple(tuple(league) for league in leagues)


def find_all_ties(leagues: Sequence[Sequence[str]], duels: Sequence[Duel]) -> tuple[Tie, ...]:
    """Find the ties of every league, lettered through; a league of one has none."""
    apart = [(duel.first, duel.second) for duel in duels if duel.meeting in APART]
    ties: list[Tie] = []
    for league in leagues:
        if len(league) > 1:
            inside = [pair for pair in apart if set(pair) <= set(league)]
            ties += [Tie(letter=letter_of(len(ties) + n), runs=tie) for n, tie in enumerate(find_ties(league, inside))]
    return tuple(ties)


def letters_of(ties: Sequence[Tie]) -> Mapping[str, str]:
    """Spell the letters of each run that has some."""
    found: dict[str, str] = {}
    for tie in ties:
        for run in tie.runs:
            found[run] = found.get(run, "") + tie.letter
    return found


def _both(duel: Duel) -> tuple[tuple[str, str], tuple[str, str]]:
    return (duel.first, duel.second), (duel.second, duel.first)
