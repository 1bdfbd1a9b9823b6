"""The three scenarios: what a lab has to reach, with what money and in how many steps.

A scenario is data; nothing here decides anything. Order is the rotation order of a reset without a name.
"""

from __future__ import annotations

from typing import Literal

from molforge_env.errors import UnknownScenarioError
from molforge_env.frozen import FrozenModel
from molforge_env.tables import read_table


class Weights(FrozenModel):
    """How much each property counts in the objective; they add up to one."""

    potency: float
    safety: float
    synth: float
    novelty: float


class Scenario(FrozenModel):
    """One task of the laboratory."""

    scenario_id: str
    difficulty: Literal["easy", "medium", "hard"]
    target_name: str
    brief: str
    budget: int
    """Credits for assays and the restart."""
    max_steps: int
    start_molecule: str
    restart_molecule: str
    weights: Weights
    potency_min: float
    toxicity_max: float
    synth_min: float
    shift_step: int | None
    """From this step on the target is another one; none when it never changes."""
    trap: bool
    """Whether the start series is capped until a restart."""
    baseline: float
    """Objective that a submission has to reach."""


def _read_scenarios() -> dict[str, Scenario]:
    rows = [Scenario.model_validate(row) for row in read_table("scenarios")["scenarios"]]
    return {row.scenario_id: row for row in rows}


SCENARIOS: dict[str, Scenario] = _read_scenarios()
SCENARIO_IDS: tuple[str, ...] = tuple(SCENARIOS)
CONSTRAINTS = ("potency_min", "toxicity_max", "synth_min")


def find_scenario(scenario_id: str) -> Scenario:
    """Find a scenario by name.

    Raises:
        UnknownScenarioError: No scenario has this name; the text lists those that exist.
    """
    try:
        return SCENARIOS[scenario_id]
    except KeyError:
        raise UnknownScenarioError(
            f"scenario {scenario_id!r} is not known",
            where="scenario_id",
            mend=f"Choose one of {', '.join(SCENARIO_IDS)}.",
        ) from None
