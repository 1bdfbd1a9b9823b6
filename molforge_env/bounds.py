"""What a state can still reach at best: the optimistic bound of the ceiling search.

A bound may be too high and never too low. It gives every missing reading at its lowest price, every review as
correct from now on, and every reading as favourable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from molforge_env.arithmetic import open01
from molforge_env.assays import RESTART_COST, TOOL_COSTS, measured_properties
from molforge_env.episodes import Episode, post_shift_potencies
from molforge_env.grading import count_reviews
from molforge_env.models import MEASURED
from molforge_env.molecules import MOLECULES, Molecule, molecule_from_code
from molforge_env.oracles import constraint_margin, objective, passed_constraints, true_properties
from molforge_env.scenarios import Scenario
from molforge_env.tables import read_table

_WEIGHTS: dict[str, float] = read_table("grading")["submission"]
# Rounding in another order of additions must not push a bound under the score that it bounds.
_SLACK = 1e-9
_CHEAPEST = {
    name: min(cost for tool, cost in TOOL_COSTS.items() if name in measured_properties(tool)) for name in MEASURED
}
_ALL_AT_ONCE = min(cost for tool, cost in TOOL_COSTS.items() if set(MEASURED) <= set(measured_properties(tool)))
_MESSAGES_A_TURN = 4


class _Target(NamedTuple):
    """A molecule that can be submitted, and what it is worth with full evidence."""

    worth: float
    """Score without coordination and budget."""
    molecule: Molecule
    gets_budget: bool
    cap: float


class _Route(NamedTuple):
    """A way on: as things are, or after a restart."""

    start: Molecule
    trap: bool
    turns: int
    cost: int
    known: dict[str, set[str]]
    """Properties with a reading, by molecule."""
    fresh: frozenset[str]
    """Molecules whose potency was read after the shift."""


class Bounds:
    """The bounds of one scenario.

    Args:
        scenario: The task.
    """

    __slots__ = ("_scenario", "_targets")

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._targets = {
            (trap, shift): _list_targets(scenario, trap=trap, shift=shift)
            for trap in {False, scenario.trap}
            for shift in {False, scenario.shift_step is not None}
        }

    def bound(self, episode: Episode) -> float:
        """Bound the final score of every ending that can follow an open episode."""
        # Without evidence for all three constraints a submission is capped; what is not submitted is lower still.
        best = _WEIGHTS["evidence_cap_start"] + _WEIGHTS["evidence_cap_share"] * 2 / 3
        coordination = _best_coordination(episode)
        for route in self._routes(episode):
            for shift in self._shifts(episode):
                best = self._best_target(episode, route, coordination, best, shift=shift)
        return open01(best + _SLACK)

    def _routes(self, episode: Episode) -> Iterator[_Route]:
        known: dict[str, set[str]] = {}
        for reading in episode.readings:
            known.setdefault(reading.molecule, set()).add(reading.property_name)
        fresh = post_shift_potencies(episode)
        yield _Route(episode.molecule, episode.trap, 0, 0, known, fresh)
        if not episode.restart_used and episode.remaining_budget >= RESTART_COST:
            yield _Route(molecule_from_code(self._scenario.restart_molecule), False, 1, RESTART_COST, {}, fresh)

    def _shifts(self, episode: Episode) -> Iterator[bool]:
        shift_step = self._scenario.shift_step
        if shift_step is None or episode.step + 1 < shift_step:
            yield False
        if shift_step is not None and episode.max_steps >= shift_step:
            yield True

    def _best_target(self, episode: Episode, route: _Route, coordination: float, best: float, *, shift: bool) -> float:
        budget = episode.remaining_budget - route.cost
        last_step = episode.max_steps if shift or self._scenario.shift_step is None else self._scenario.shift_step - 1
        turns = last_step - episode.step - route.turns - 1
        extra = _WEIGHTS["coordination"] * coordination
        most_extra = extra + _WEIGHTS["budget"]
        for target in self._targets[route.trap, shift]:
            if target.worth + most_extra <= best:
                break
            edits = _distance(route.start, target.molecule)
            missing = [name for name in MEASURED if name not in route.known.get(target.molecule.code, ())]
            if shift and target.molecule.code not in route.fresh and "potency" not in missing:
                missing.append("potency")
            for readings, price in _prices(missing):
                if edits + readings <= turns and price <= budget:
                    value = target.worth + extra
                    if target.gets_budget:
                        value += _WEIGHTS["budget"] * (budget - price) / episode.max_budget
                    best = max(best, min(value, target.cap))
        return best


def _list_targets(scenario: Scenario, *, trap: bool, shift: bool) -> list[_Target]:
    targets = []
    for molecule in MOLECULES.values():
        properties = true_properties(molecule, trap=trap, shift=shift)
        potent, tolerable, makeable = passed_constraints(scenario, properties)
        if not (tolerable and makeable):
            continue  # the reviewers veto its submission, whatever is known
        base = objective(scenario, properties)
        margin = constraint_margin(scenario, properties)
        worth = _WEIGHTS["objective"] * base + _WEIGHTS["margin"] * margin + _WEIGHTS["evidence"]
        cap = 1.0 if potent else _WEIGHTS["constraint_cap_start"] + _WEIGHTS["constraint_cap_share"] * margin
        if base < scenario.baseline:
            cap = min(cap, _WEIGHTS["baseline_cap"])
        targets.append(_Target(worth, molecule, potent and base >= scenario.baseline, cap))
    return sorted(targets, key=lambda target: -target.worth)


def _best_coordination(episode: Episode) -> float:
    correct, expected = count_reviews(episode)
    coming = _MESSAGES_A_TURN * (episode.max_steps - episode.step)
    return open01((min(correct, expected) + coming) / (expected + coming))


def _distance(one: Molecule, other: Molecule) -> int:
    return 4 - (
        (one.code[0] == other.code[0])
        + (one.code[1] == other.code[1])
        + (one.code[2] == other.code[2])
        + (one.code[3] == other.code[3])
    )


def _prices(missing: list[str]) -> Iterator[tuple[int, int]]:
    """Yield turns and credits of the two ways to read what is missing: one by one, or all at once."""
    price = 0
    for name in missing:
        price += _CHEAPEST[name]
    yield len(missing), price
    if len(missing) > 1:
        yield 1, _ALL_AT_ONCE
