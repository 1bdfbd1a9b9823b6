"""The variants that are kept for evaluation: seeded, solvable, and out of the reach of every training draw.

A training episode begins at an official start molecule or one substitution away from one. A variant here begins two
away from its own and at least two from the others', so no draw of training can be a variant. Each start molecule comes
with a way to a valid submission under the narrowest budget and limits of the family; what is wider allows it too.
"""

from __future__ import annotations

from random import Random

from molforge_env.frozen import FrozenModel
from molforge_env.scenarios import SCENARIO_IDS, SCENARIOS, Scenario
from molforge_env.tables import read_table

_TABLE = read_table("holdout")
_DECIMALS = 2
"""Limits are told to players with two decimals, so they have no more."""


class HoldoutDraw(FrozenModel):
    """What the holdout suite drew for one episode, beside its start molecule."""

    budget_scale: float
    potency_min: float
    toxicity_max: float
    synth_min: float
    shift_step: int | None
    """Step from which on the target is another one; none when it never changes."""


def start_molecules(scenario_id: str) -> tuple[str, ...]:
    """List the codes of the start molecules that are reserved for a scenario's variants."""
    return tuple(_TABLE["start_molecules"][scenario_id])


def draw_variant(scenario: Scenario | None, seed: int) -> tuple[Scenario, str, HoldoutDraw]:
    """Draw one variant; equal seeds give equal ones.

    Args:
        scenario: The task; drawn when it is not given.
        seed: Seed of the variant.

    Returns:
        The task as training knows it, the code of the start molecule, and what else was drawn.
    """
    drawn = SCENARIOS[Random(f"{_TABLE['stream']}:{seed}").choice(SCENARIO_IDS)]
    task = drawn if scenario is None else scenario
    rng = Random(f"{_TABLE['stream']}:{seed}:{task.scenario_id}")
    start = rng.choice(start_molecules(task.scenario_id))
    scale = rng.uniform(*rng.choice(_TABLE["budget_scales"]))
    limits = {name: round(getattr(task, name) + rng.choice(moves), _DECIMALS) for name, moves in _moves()}
    shift_step = None if task.shift_step is None else rng.choice(_TABLE["shift_steps"])
    return task, start, HoldoutDraw(budget_scale=scale, shift_step=shift_step, **limits)


def narrowest(scenario: Scenario, shift_step: int | None) -> HoldoutDraw:
    """Return the draw with the least money and the strictest limits that a scenario's variants can have."""
    strictest = {
        name: round(getattr(scenario, name) + (min(moves) if name.endswith("_max") else max(moves)), _DECIMALS)
        for name, moves in _moves()
    }
    least = min(low for low, _ in _TABLE["budget_scales"])
    return HoldoutDraw(budget_scale=least, shift_step=shift_step, **strictest)


def vary(scenario: Scenario, draw: HoldoutDraw) -> Scenario:
    """Return a scenario under the limits and the shift step of a draw."""
    return scenario.model_copy(update=draw.model_dump(exclude={"budget_scale"}))


def _moves() -> list[tuple[str, list[float]]]:
    return list(_TABLE["limit_moves"].items())
