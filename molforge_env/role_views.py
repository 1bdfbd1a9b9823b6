"""What each of the four roles sees: the part of the visible state that its work is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from molforge_env.assays import TOOL_COSTS, information_value, runs_of
from molforge_env.episodes import Episode, LoggedMessage
from molforge_env.models import ACTION_TYPES, MEASURED, ROLES, SLOTS, TOOLS, Role
from molforge_env.molecules import MOLECULES
from molforge_env.tables import read_table
from molforge_env.validation import MAY_ACT, MAY_SAY

_WORDING = read_table("wording")
_OBJECTIVES = _WORDING["objectives"]
_SHOWN_EDITS = 4
_SHOWN_RISKS = 4
_PERMISSIONS = {
    # The lead's permissions are its actions alone; who may not act has none to list.
    role: [kind for kind in ACTION_TYPES if kind in MAY_ACT[role]]
    + ([] if role == "lead_chemist" else list(MAY_SAY[role]))
    for role in ROLES
}
Rows = Sequence[Mapping[str, Any]]


def observe_roles(
    episode: Episode, current: Rows, estimates: Mapping[str, float], candidates: Rows
) -> tuple[Mapping[str, Any], ...]:
    """Show an episode to the four roles.

    Args:
        episode: The episode.
        current: Readings of the current molecule, as shown.
        estimates: Estimates of the current molecule by property.
        candidates: Edits that are suggested.

    Returns:
        One map for each role: its objective, its permissions and what it observes.
    """
    gaps = [name for name in MEASURED if name not in estimates]
    return (
        _show_role("lead_chemist", _observe_lead(episode, current, gaps, candidates)),
        _show_role("toxicologist", _observe_toxicity(episode, current)),
        _show_role("assay_planner", _observe_budget(episode, gaps)),
        _show_role("process_chemist", _observe_route(episode, current)),
    )


def show_message(entry: LoggedMessage) -> dict[str, Any]:
    """Write a logged message as the map that players see."""
    return {**entry.message.as_map, "message_id": entry.message_id}


def _show_role(role: Role, observation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": role,
        "local_objective": _OBJECTIVES[role],
        "permissions": _PERMISSIONS[role],
        "observation": observation,
    }


def _observe_lead(episode: Episode, current: Rows, gaps: list[str], candidates: Rows) -> dict[str, Any]:
    edits = [turn.action for turn in episode.history if turn.action.action_type == "edit"]
    return {
        "molecule_slots": dict(zip(SLOTS, episode.molecule.fragments, strict=True)),
        "edit_history": [action.as_map for action in edits[-_SHOWN_EDITS:]],
        "visible_assays": current,
        "candidate_edits": candidates,
        "open_questions": gaps,
    }


def _observe_toxicity(episode: Episode, current: Rows) -> dict[str, Any]:
    _, hinge, tail, pocket = episode.molecule.fragments
    texts = _WORDING["safety_alerts"]
    alerts = [texts[name] for name in (tail, pocket) if name in texts]
    if (hinge, pocket) == ("fluorophenyl", "chloro"):
        alerts.append(texts["fluorophenyl+chloro"])
    risks = [entry for entry in episode.messages if entry.message.sender == "toxicologist"]
    return {
        "toxicity_readouts": [row for row in current if row["property_name"] == "toxicity"],
        "hard_threshold": episode.scenario.toxicity_max,
        "safety_alerts": alerts,
        "risk_history": [show_message(entry) for entry in risks[-_SHOWN_RISKS:]],
    }


def _observe_budget(episode: Episode, gaps: list[str]) -> dict[str, Any]:
    molecule = episode.molecule
    is_easy = episode.scenario.difficulty == "easy"
    return {
        "budget_ledger": {
            "remaining_budget": episode.remaining_budget,
            "budget_used": episode.budget_used,
            "max_budget": episode.max_budget,
        },
        "tool_costs": TOOL_COSTS,
        "tool_usage_history": {
            f"{MOLECULES[code].signature}::{tool}": runs for (code, tool), runs in episode.runs.items()
        },
        "evidence_gaps": gaps,
        "estimated_information_value": {
            tool: information_value(tool, runs=runs_of(episode.runs, molecule, tool), is_easy=is_easy) for tool in TOOLS
        },
    }


def _observe_route(episode: Episode, current: Rows) -> dict[str, Any]:
    warhead, hinge, _, pocket = episode.molecule.fragments
    texts = _WORDING["route_warnings"]
    return {
        "synth_readouts": [row for row in current if row["property_name"] == "synth"],
        "route_warnings": [texts[name] for name in (hinge, warhead, pocket) if name in texts],
        "feasibility_flags": {
            "heavy_hinge": hinge == "quinazoline",
            "reactive_warhead": warhead == "vinyl_sulfonamide",
            "lipophilic_tail": pocket == "trifluoromethyl",
        },
    }
