"""What a player sees of an episode.

An observation is built from readings, budgets, messages and public rules. Hidden properties are asked for only after
the end, for the report card and the scores; before it, changing them without changing a reading changes nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

import orjson

from molforge_env.arithmetic import round4, text_of
from molforge_env.assays import Reading, known_estimates
from molforge_env.episodes import Episode, Turn
from molforge_env.grading import grade
from molforge_env.models import PROPERTIES, ROLES, SLOTS
from molforge_env.molecules import FRAGMENT_NAMES, LIBRARY, MOLECULES, Molecule, surrogate_smiles
from molforge_env.report_card import write_report_card
from molforge_env.role_views import observe_roles, show_message
from molforge_env.scenarios import Scenario
from molforge_env.tables import read_table

_WORDING = read_table("wording")
_COMPONENT_TEXT = _WORDING["components"]
_HINTS = {fragment.name: fragment.hint for slot in SLOTS for fragment in LIBRARY[slot]}
_SHOWN_MESSAGES = 8
_SHOWN_CANDIDATES = 8
_SHOWN_SUMMARIES = 3


@dataclass(frozen=True, slots=True)
class ConstraintStatus:
    """One limit and what the readings say about it."""

    name: str
    target: str
    """Sign and limit with two decimals, such as `<= 0.28`."""
    satisfied: bool | None
    actual: float | None
    """The visible estimate, never the true value."""
    evidence_status: str


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that is visible after a reset or a step; fields in the order of the rules."""

    done: bool
    reward: float
    metadata: Mapping[str, Any]
    scenario_id: str
    difficulty: str
    state_label: str
    state_path: tuple[str, ...]
    coordination_mode: str
    enabled_roles: tuple[str, ...]
    task_brief: str
    target_name: str
    current_molecule: str
    molecule_slots: tuple[Mapping[str, Any], ...]
    editable_slots: tuple[str, ...]
    step_index: int
    max_steps: int
    remaining_budget: int
    budget_used: int
    max_budget: int
    known_assays: tuple[Mapping[str, Any], ...]
    role_observations: tuple[Mapping[str, Any], ...]
    message_log: tuple[Mapping[str, Any], ...]
    governance: Mapping[str, Any]
    last_transition_summary: str
    visible_metrics: Mapping[str, float]
    constraint_status: tuple[ConstraintStatus, ...]
    reward_breakdown: tuple[Mapping[str, Any], ...]
    allowed_actions: tuple[str, ...]
    report_card: str

    def fragment_in(self, slot: str) -> str:
        """Name the fragment that sits in a slot."""
        return next(str(row["fragment"]) for row in self.molecule_slots if row["slot"] == slot)


def observe(episode: Episode, *, task_index: int | None = None) -> Observation:
    """Show an episode to a player.

    Args:
        episode: The episode after a reset or a step.
        task_index: Place in the rotation, where there is one.
    """
    turn = episode.last_turn
    molecule = episode.molecule
    readings = tuple(show_reading(reading) for reading in episode.readings)
    current = tuple(row for row in readings if row["molecule_signature"] == molecule.signature)
    estimates = known_estimates(episode.readings, molecule)
    slots = _SLOT_ROWS[molecule.code]
    candidates = _CANDIDATES[molecule.code]
    return Observation(
        done=episode.done,
        reward=0.0 if turn is None else turn.reward,
        metadata=_show_metadata(episode, task_index, candidates),
        scenario_id=episode.scenario.scenario_id,
        difficulty=episode.scenario.difficulty,
        state_label=episode.state_path[-1],
        state_path=episode.state_path,
        coordination_mode="multi_agent",
        enabled_roles=ROLES,
        task_brief=episode.scenario.brief,
        target_name=episode.scenario.target_name,
        current_molecule=molecule.signature,
        molecule_slots=slots,
        editable_slots=SLOTS,
        step_index=episode.step,
        max_steps=episode.max_steps,
        remaining_budget=episode.remaining_budget,
        budget_used=episode.budget_used,
        max_budget=episode.max_budget,
        known_assays=readings,
        role_observations=observe_roles(episode, current, estimates, candidates),
        message_log=tuple(show_message(entry) for entry in episode.messages[-_SHOWN_MESSAGES:]),
        governance=show_governance(episode),
        last_transition_summary="The episode has started." if turn is None else turn.summary,
        visible_metrics=_show_metrics(episode, estimates, len(current)),
        constraint_status=_show_constraints(episode.scenario, estimates),
        reward_breakdown=_show_components(turn),
        allowed_actions=_ALLOWED,
        report_card=write_report_card(episode) if episode.done else "",
    )


_ALLOWED = tuple(_WORDING["allowed_actions"])
_SLOT_ROWS: dict[str, tuple[Mapping[str, Any], ...]] = {
    code: tuple(
        {"slot": slot, "fragment": name, "editable": True} for slot, name in zip(SLOTS, molecule.fragments, strict=True)
    )
    for code, molecule in MOLECULES.items()
}


def _list_candidates(molecule: Molecule) -> tuple[Mapping[str, str], ...]:
    edits = [
        {"slot": slot, "fragment": name}
        for slot in SLOTS
        for name in sorted(FRAGMENT_NAMES[slot])
        if name != molecule.fragment_in(slot)
    ]
    return tuple(edits[:_SHOWN_CANDIDATES])


_CANDIDATES = {code: _list_candidates(molecule) for code, molecule in MOLECULES.items()}


def show_reading(reading: Reading) -> dict[str, Any]:
    """Write a reading as the map that players see."""
    return {
        "tool_name": reading.tool_name,
        "property_name": reading.property_name,
        "estimate": reading.estimate,
        "confidence_low": reading.confidence_low,
        "confidence_high": reading.confidence_high,
        "runs": reading.runs,
        "molecule_signature": MOLECULES[reading.molecule].signature,
        "summary": f"{reading.property_name} by {reading.tool_name}, run {reading.runs}",
    }


def show_governance(episode: Episode) -> dict[str, Any]:
    """Write the verdict on the latest turn as the map that players see."""
    verdict = episode.governance
    return {
        "status": verdict.status,
        "explanation": _WORDING["governance"][verdict.status],
        "required_roles": verdict.required_roles,
        "approvals": verdict.approvals,
        "objections": verdict.objections,
        "vetoes": verdict.vetoes,
        "executable": verdict.executable,
    }


def _show_components(turn: Turn | None) -> tuple[Mapping[str, Any], ...]:
    if turn is None:
        return ()
    return tuple(
        {"name": part.name, "value": part.value, "explanation": _explain_component(part.name)}
        for part in turn.components
    )


@cache
def _explain_component(name: str) -> str:
    found = _COMPONENT_TEXT.get(name)
    if found is None:
        # Review components end in the role's name, which holds one underscore.
        found = _COMPONENT_TEXT[next(prefix for prefix in _COMPONENT_TEXT if name.startswith(prefix))]
    return str(found)


def _show_metrics(episode: Episode, estimates: Mapping[str, float], count: int) -> dict[str, float]:
    shown = {
        "budget_fraction_remaining": round4(episode.remaining_budget / episode.max_budget),
        "current_molecule_assay_count": float(count),
    }
    for name in PROPERTIES:
        if name in estimates:
            shown[name] = estimates[name]
    return shown


def _show_constraints(scenario: Scenario, estimates: Mapping[str, float]) -> tuple[ConstraintStatus, ...]:
    return (
        _show_constraint("potency_min", ">=", scenario.potency_min, estimates.get("potency")),
        _show_constraint("toxicity_max", "<=", scenario.toxicity_max, estimates.get("toxicity")),
        _show_constraint("synth_min", ">=", scenario.synth_min, estimates.get("synth")),
    )


@cache
def _write_target(sign: str, limit: float) -> str:
    return f"{sign} {text_of(limit, decimals=2)}"


def _show_constraint(name: str, sign: str, limit: float, estimate: float | None) -> ConstraintStatus:
    target = _write_target(sign, limit)
    if estimate is None:
        return ConstraintStatus(name, target, None, None, "unknown")
    return ConstraintStatus(name, target, estimate >= limit if sign == ">=" else estimate <= limit, estimate, "known")


def _show_metadata(
    episode: Episode, task_index: int | None, candidates: tuple[Mapping[str, str], ...]
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "task_index": task_index,
        "oracle_budget_costs": _COSTS,
        "history_length": len(episode.history),
        "trace_tail": [turn.summary for turn in episode.history[-_SHOWN_SUMMARIES:]],
        "current_smiles": _SMILES[episode.molecule.code],
        "oracle_backend": {"rdkit": True, "tdc": False},
        "candidate_edits": candidates,
        "literature_hints": [_HINTS[name] for name in episode.molecule.fragments],
        "target_shift_active": episode.shift,
        "public_role_metrics": {
            role: {"messages_sent": count.sent, "correct_messages": count.correct}
            for role, count in episode.roles.items()
        },
    }
    if episode.done:
        shown["terminal_grader_scores"] = grade(episode)
    return shown


_COSTS = {row["name"]: row["cost"] for row in read_table("assays")["tools"]}
_SMILES = {code: surrogate_smiles(molecule) for code, molecule in MOLECULES.items()}


def digest_of(observation: Observation) -> str:
    """Hash an observation: SHA-256 over its JSON with sorted keys, lower-case hex."""
    return sha256(orjson.dumps(observation, option=orjson.OPT_SORT_KEYS)).hexdigest()
