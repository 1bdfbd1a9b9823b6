"""The state of an episode as a host reports it: counters, path and trace, without hidden values."""

from __future__ import annotations

from typing import Any

from molforge_env.episodes import Episode, Turn
from molforge_env.frozen import FrozenModel
from molforge_env.grading import grade
from molforge_env.models import ROLES
from molforge_env.molecules import MOLECULES
from molforge_env.oracles import true_properties
from molforge_env.role_views import show_message
from molforge_env.views import show_reading


class LaboratoryState(FrozenModel):
    """What a host may ask about an episode at any time."""

    episode_id: str
    step_count: int
    scenario_id: str
    difficulty: str
    state_label: str
    state_path: tuple[str, ...]
    coordination_mode: str
    enabled_roles: tuple[str, ...]
    target_name: str
    current_molecule: str
    remaining_budget: int
    budget_used: int
    max_budget: int
    visited_states: tuple[str, ...]
    known_assay_count: int
    invalid_action_count: int
    objection_count: int
    oracle_call_count: int
    message_count: int
    decision_count: int
    submitted: bool
    last_error_code: str
    reward_total: float
    metadata: dict[str, Any]


def report_state(episode: Episode, *, episode_id: str, debug: bool = False) -> LaboratoryState:
    """Report the state of an episode.

    Args:
        episode: The episode.
        episode_id: Its name.
        debug: Add the true properties, which a player must not see.
    """
    turn = episode.last_turn
    return LaboratoryState(
        episode_id=episode_id,
        step_count=episode.step,
        scenario_id=episode.scenario.scenario_id,
        difficulty=episode.scenario.difficulty,
        state_label=episode.state_path[-1],
        state_path=episode.state_path,
        coordination_mode="multi_agent",
        enabled_roles=ROLES,
        target_name=episode.scenario.target_name,
        current_molecule=episode.molecule.signature,
        remaining_budget=episode.remaining_budget,
        budget_used=episode.budget_used,
        max_budget=episode.max_budget,
        visited_states=tuple(MOLECULES[code].signature for code in episode.visited),
        known_assay_count=len(episode.readings),
        invalid_action_count=episode.invalid_actions,
        objection_count=episode.objection_messages,
        oracle_call_count=len(episode.oracle_log),
        message_count=len(episode.messages),
        decision_count=episode.step,
        submitted=episode.submitted,
        last_error_code="" if turn is None else turn.error_code,
        reward_total=episode.reward_total,
        metadata=_report_metadata(episode, debug=debug),
    )


def _report_metadata(episode: Episode, *, debug: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "state_label": episode.state_path[-1],
        "state_path": episode.state_path,
        "trace": [_report_turn(turn) for turn in episode.history],
        "message_log": [show_message(entry) for entry in episode.messages],
        "oracle_log": [
            {
                "step": entry.step,
                "tool_name": entry.tool_name,
                "runs": entry.runs,
                "molecule": MOLECULES[entry.molecule].signature,
                "cost": entry.cost,
                "results": [show_reading(reading) for reading in entry.results],
            }
            for entry in episode.oracle_log
        ],
        "role_metrics": {
            role: {
                "messages_sent": count.sent,
                "correct_messages": count.correct,
                "incorrect_messages": count.incorrect,
            }
            for role, count in episode.roles.items()
        },
        "terminal_grader_scores": grade(episode) if episode.submitted else {},
        # An addition to the public state, which has no scores for an episode that ended without a submission.
        "final_grader_scores": grade(episode) if episode.done else {},
    }
    if debug:
        properties = true_properties(episode.molecule, trap=episode.trap, shift=episode.shift)
        metadata["debug_hidden_properties"] = properties._asdict()
    return metadata


def _report_turn(turn: Turn) -> dict[str, Any]:
    return {
        "step": turn.step,
        "action": turn.action.as_map,
        "reward": turn.reward,
        "done": turn.done,
        "molecule": MOLECULES[turn.molecule].signature,
        "state_label": turn.state_label,
        "summary": turn.summary,
        "governance": turn.governance.status,
    }
