"""What an executed action does to the episode, and what it pays for that.

Each function takes the episode of this turn and returns the changed episode with an [`Effect`]
[molforge_env.effects.Effect]. The pay of an action is one number; its components are rounded for display and do not
always add up to it, as the rules want.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from molforge_env.arithmetic import round4
from molforge_env.assays import (
    LITERATURE,
    RESTART_COST,
    TOOL_COSTS,
    known_estimates,
    merge_readings,
    read_assay,
    runs_of,
)
from molforge_env.episodes import Component, Episode, OracleEntry, post_shift_potency_known
from molforge_env.governance import edited_molecule
from molforge_env.models import MEASURED, Action, Slot, ToolName
from molforge_env.molecules import molecule_from_code
from molforge_env.oracles import Properties, constraint_margin, objective, passed_constraints, true_properties
from molforge_env.tables import read_table

_REWARDS = read_table("rewards")
_EDIT = _REWARDS["edit"]
_ASSAY = _REWARDS["assay"]
_SUBMIT = _REWARDS["submit"]


class Effect(NamedTuple):
    """The pay of an action, its parts, and one line about it."""

    reward: float
    components: tuple[Component, ...]
    summary: str


def apply_action(episode: Episode, action: Action, before: Properties) -> tuple[Episode, Effect]:
    """Carry out a valid action that nobody vetoed.

    Args:
        episode: The episode with the step counter of this turn.
        action: What to carry out.
        before: True properties before the action.

    Returns:
        The changed episode and what the action pays.
    """
    if action.action_type == "edit":
        return _edit(episode, action, before)
    if action.action_type == "run_assay":
        return _run_assay(episode, action, before)
    if action.action_type == "restart":
        return _restart(episode)
    if action.action_type == "submit":
        return _submit(episode, before)
    reward: float = _REWARDS["defer"]
    return episode, Effect(reward, (Component("defer", reward),), "The decision was deferred.")


def _edit(episode: Episode, action: Action, before: Properties) -> tuple[Episode, Effect]:
    molecule = edited_molecule(episode.molecule, action)
    after = true_properties(molecule, trap=episode.trap, shift=episode.shift)
    delta = round4(objective(episode.scenario, after) - objective(episode.scenario, before))
    if episode.reward_mode == "dense":
        reward = _EDIT["dense_scale"] * delta
    else:
        reward = _EDIT["sign_step"] if delta > 0 else -_EDIT["sign_step"] if delta < 0 else 0.0
    components = [Component("edit_delta", round4(reward))]
    visited = episode.visited
    if molecule.code in visited:
        reward += _EDIT["loop_penalty"]
        components.append(Component("loop_penalty", _EDIT["loop_penalty"]))
    else:
        reward += _EDIT["novel_molecule"]
        visited = (*visited, molecule.code)
    reward += _EDIT["turn_cost"]
    components.append(Component("turn_cost", _EDIT["turn_cost"]))
    slot = cast("Slot", action.slot)
    summary = f"The {slot} now holds {molecule.fragment_in(slot)}."
    return episode._replace(molecule=molecule, visited=visited), Effect(reward, tuple(components), summary)


def _run_assay(episode: Episode, action: Action, before: Properties) -> tuple[Episode, Effect]:
    # Validation has seen to it that the tool is there.
    tool = cast("ToolName", action.tool_name)
    molecule = episode.molecule
    cost = TOOL_COSTS[tool]
    run = runs_of(episode.runs, molecule, tool) + 1
    results = read_assay(molecule, tool, run=run, properties=before, noise_seed=episode.noise_seed)
    reward = _ASSAY["start"]
    reward += _ASSAY["first_run"] if run == 1 else _ASSAY["repeat"]
    if tool == LITERATURE:
        reward += _ASSAY["literature"]
    components = []
    if episode.reward_mode == "curriculum" and run == 1:
        delivered = len({reading.property_name for reading in results}.intersection(MEASURED))
        bonus = _ASSAY["curriculum_per_property"] * delivered
        if bonus > 0:
            reward += bonus
            components.append(Component("curriculum_evidence_gate", round4(bonus)))
    components.append(Component("assay_information_gain", round4(reward)))
    spend = cost / episode.max_budget
    components.append(Component("budget_spend", round4(-spend)))
    reward -= spend
    entry = OracleEntry(episode.step, tool, run, molecule.code, cost, results)
    changed = episode._replace(
        remaining_budget=episode.remaining_budget - cost,
        runs={**episode.runs, (molecule.code, tool): run},
        readings=merge_readings(episode.readings, results),
        oracle_log=(*episode.oracle_log, entry),
    )
    return changed, Effect(reward, tuple(components), f"{tool} returned {len(results)} reading for {cost} credits.")


def _restart(episode: Episode) -> tuple[Episode, Effect]:
    molecule = molecule_from_code(episode.scenario.restart_molecule)
    visited = episode.visited if molecule.code in episode.visited else (*episode.visited, molecule.code)
    changed = episode._replace(
        molecule=molecule,
        trap=False,
        readings=(),
        runs={},
        restart_used=True,
        visited=visited,
        remaining_budget=episode.remaining_budget - RESTART_COST,
    )
    reward: float = _REWARDS["restart_penalty"]
    return changed, Effect(
        reward, (Component("restart_penalty", reward),), f"The series was restarted for {RESTART_COST} credits."
    )


def _submit(episode: Episode, before: Properties) -> tuple[Episode, Effect]:
    scenario = episode.scenario
    value = objective(scenario, before)
    margin = constraint_margin(scenario, before)
    within = all(passed_constraints(scenario, before))
    beats = value >= scenario.baseline
    known = known_estimates(episode.readings, episode.molecule)
    proven = all(name in known for name in MEASURED)
    current = not episode.shift or post_shift_potency_known(episode)
    valid = within and beats and proven and current
    quality = (_SUBMIT["valid_scale"] if valid else _SUBMIT["invalid_scale"]) * value
    violation = round4(_SUBMIT["violation_scale"] * (1 - margin))
    constraints = _SUBMIT["valid_bonus"] if valid else 0.0 if within else -violation
    baseline = 0.0 if beats else _SUBMIT["baseline_gate"]
    evidence = 0.0 if proven else _SUBMIT["evidence"]
    post_shift = 0.0 if current else _SUBMIT["post_shift"]
    share_left = max(0.0, episode.remaining_budget / episode.max_budget)
    efficiency = _SUBMIT["budget_scale"] * share_left if valid else 0.0
    reward = quality
    for part in (constraints, baseline, evidence, post_shift, efficiency):
        reward += part
    components = [
        Component("submission_quality", round4(quality)),
        Component("hard_constraints", constraints),
        Component("constraint_margin", round4(margin)),
        Component("baseline_gate", baseline),
        Component("submission_evidence", evidence),
        Component("post_shift_evidence", post_shift),
        Component("budget_efficiency", round4(efficiency)),
    ]
    if episode.reward_mode == "curriculum" and proven and current:
        bonus = _SUBMIT["curriculum_evidence"]
        if within:
            bonus += _SUBMIT["curriculum_constraints"]
        reward += bonus
        components.append(Component("curriculum_evidence_supported_submit", bonus))
    summary = "The candidate was submitted and meets every gate." if valid else "The candidate was submitted."
    return episode._replace(submitted=True, done=True), Effect(reward, tuple(components), summary)
