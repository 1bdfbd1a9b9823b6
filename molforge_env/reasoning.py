"""The small reward for stated reasons: a rationale, evidence that names visible facts, plausible expectations.

Reasons are judged by words alone and against the state after the action; nothing hidden takes part.
"""

from __future__ import annotations

from molforge_env.episodes import Episode
from molforge_env.models import TOOLS, Action, Direction
from molforge_env.scenarios import CONSTRAINTS
from molforge_env.tables import read_table

_REWARDS: dict[str, float] = read_table("rewards")["reasoning"]
_EFFECTS = read_table("effects")
_METRICS = frozenset(_EFFECTS["metrics"])
_RESTART = _EFFECTS["restart"]
EDIT_EFFECTS: dict[tuple[str, str], dict[str, Direction]] = {
    (row["slot"], row["fragment"]): row["effects"] for row in _EFFECTS["edits"]
}


def score_reasoning(episode: Episode, action: Action) -> float:
    """Score the stated reasons of an executed, non-terminal action.

    Args:
        episode: The episode after the action.
        action: The action with its reasons.

    Returns:
        An unrounded number in [-0.04, 0.04].
    """
    total = 0.0
    total += _REWARDS["rationale"] if action.rationale.strip() else _REWARDS["no_rationale"]
    items = [text for text in (item.lower().strip() for item in action.evidence) if text]
    if items:
        terms = _visible_terms(episode)
        grounded = len([item for item in items if any(term in item for term in terms)])
        total += _REWARDS["grounded"] * min(grounded, _REWARDS["grounded_limit"])
        if grounded < len(items):
            total += _REWARDS["ungrounded"] * min(len(items) - grounded, _REWARDS["penalty_limit"])
    else:
        total += _REWARDS["no_evidence"]
    effects = action.expected_effects
    if effects:
        plausible = len([metric for metric, direction in effects.items() if is_plausible(action, metric, direction)])
        total += _REWARDS["plausible"] * min(plausible, _REWARDS["plausible_limit"])
        if plausible < len(effects):
            total += _REWARDS["implausible"] * min(len(effects) - plausible, _REWARDS["penalty_limit"])
    else:
        total += _REWARDS["no_effects"]
    bound = _REWARDS["bound"]
    return max(-bound, min(bound, total))


def _visible_terms(episode: Episode) -> list[str]:
    terms = [
        episode.scenario.scenario_id,
        episode.scenario.difficulty,
        str(episode.remaining_budget),
        str(episode.max_budget),
        str(episode.step),
        str(episode.max_steps),
        *episode.molecule.fragments,
        *TOOLS,
        *CONSTRAINTS,
    ]
    terms += {reading.property_name for reading in episode.readings}
    return terms


def is_plausible(action: Action, metric: str, direction: str) -> bool:
    """Tell whether an expectation is one that a chemist could hold about this kind of action."""
    if metric not in _METRICS:
        return False
    if direction in ("unknown", "not_applicable"):
        return True
    kind = action.action_type
    if metric == "budget":
        return direction == ("down" if kind in ("run_assay", "restart") else "neutral")
    if kind == "restart":
        return direction in _RESTART[metric]
    if direction == "neutral":
        return True
    if kind != "edit" or not action.fragment or action.slot is None:
        return False
    return EDIT_EFFECTS.get((action.slot, action.fragment), {}).get(metric) == direction
