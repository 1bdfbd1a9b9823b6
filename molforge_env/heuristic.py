"""The scripted heuristic: a decision list over the observation, the strongest player without a search.

The first rule of the list that applies names the call. It knows the numbers of the public rules and nothing hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

from molforge_env.assays import RESTART_COST, TOOL_COSTS
from molforge_env.models import MEASURED, ToolName
from molforge_env.tables import read_table
from molforge_env.views import Observation

_PLAN = read_table("heuristic")
Call = tuple[str, dict[str, str]]
Edits = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Sight:
    """The observation and what the list keeps asking of it."""

    seen: Observation
    limits: dict[str, float]
    """What the observation names as limits, by constraint."""
    estimates: dict[str, float]
    is_hard: bool
    has_evidence: bool
    is_ready: bool
    is_last_chance: bool

    def can_pay(self, credits_needed: int) -> bool:
        return self.seen.remaining_budget >= credits_needed

    def lacks(self, name: str, tool: ToolName) -> bool:
        """Whether a property is unknown and the tool for it can be paid."""
        return name not in self.estimates and self.can_pay(TOOL_COSTS[tool])


def choose_call(observation: Observation) -> Call:
    """Choose the next call.

    Args:
        observation: What is visible in an open episode.

    Returns:
        Tool and arguments.
    """
    sight = _look(observation)
    return (
        _submit_when_proven(sight)
        or _prepare_series(sight)
        or _gather_evidence(sight)
        or _repair(sight)
        or _find_potency(sight)
        or _finish(sight)
    )


def _look(observation: Observation) -> _Sight:
    estimates = {name: value for name, value in observation.visible_metrics.items() if name in MEASURED}
    is_hard = observation.difficulty == "hard"
    has_potency = "potency" in estimates
    return _Sight(
        seen=observation,
        limits={row.name: float(row.target.split()[-1]) for row in observation.constraint_status},
        estimates=estimates,
        is_hard=is_hard,
        has_evidence=all(name in estimates for name in MEASURED),
        is_ready=not is_hard or (observation.step_index >= _PLAN["shift_step"] and has_potency),
        is_last_chance=observation.step_index >= observation.max_steps - 1,
    )


def _assay(tool: ToolName) -> Call:
    return "run_assay", {"tool_name": tool}


def _edit_towards(sight: _Sight, plan: Edits) -> Call | None:
    for slot, fragment in plan:
        if sight.seen.fragment_in(slot) != fragment:
            return "edit", {"slot": slot, "fragment": fragment}
    return None


def _plan(name: str) -> Edits:
    return [(slot, fragment) for slot, fragment in _PLAN[name]]


def _submit_when_proven(sight: _Sight) -> Call | None:
    if not (sight.has_evidence and sight.is_ready):
        return None
    final = _PLAN["final_hard" if sight.is_hard else "final"]
    within = all(row.satisfied for row in sight.seen.constraint_status)
    is_final = all(sight.seen.fragment_in(slot) == fragment for slot, fragment in final)
    return ("submit", {}) if within or is_final or sight.is_last_chance else None


def _prepare_series(sight: _Sight) -> Call | None:
    if not sight.is_hard:
        return _edit_towards(sight, _plan("first_edits"))
    if sight.seen.fragment_in("warhead") != "nitrile" and sight.can_pay(RESTART_COST):
        return "restart", {}
    return None


def _gather_evidence(sight: _Sight) -> Call | None:
    # The list names toxicity and synth twice, before and after the shift; both rules ask for the same.
    if sight.lacks("toxicity", "assay_toxicity"):
        return _assay("assay_toxicity")
    if sight.lacks("synth", "estimate_synthesizability"):
        return _assay("estimate_synthesizability")
    waits = sight.is_hard and sight.seen.step_index < _PLAN["shift_step"] - 1
    if not waits and sight.lacks("potency", "dock_target"):
        return _assay("dock_target")
    return None


def _repair(sight: _Sight) -> Call | None:
    seen = sight.seen
    toxicity = sight.estimates.get("toxicity")
    pocket = seen.fragment_in("back_pocket")
    is_risky = (
        (toxicity is not None and toxicity > sight.limits["toxicity_max"])
        or seen.fragment_in("solvent_tail") == "dimethylamino"
        or pocket == "trifluoromethyl"
        or (seen.fragment_in("hinge"), pocket) == ("fluorophenyl", "chloro")
    )
    return _edit_towards(sight, _plan("safer_edits")) if is_risky else None


def _find_potency(sight: _Sight) -> Call | None:
    potency = sight.estimates.get("potency")
    if potency is None or potency < sight.limits["potency_min"]:
        edit = _edit_towards(sight, _plan("potent_edits_hard" if sight.is_hard else "potent_edits"))
        if edit is not None:
            return edit
    was_tried = any(
        row["tool_name"] == "evaluate_properties" and row["molecule_signature"] == sight.seen.current_molecule
        for row in sight.seen.known_assays
    )
    if sight.lacks("potency", "evaluate_properties") and not was_tried:
        return _assay("evaluate_properties")
    if sight.lacks("potency", "dock_target"):
        return _assay("dock_target")
    if sight.is_hard and sight.has_evidence and not sight.is_ready and sight.can_pay(TOOL_COSTS["dock_target"]):
        return _assay("dock_target")
    return None


def _finish(sight: _Sight) -> Call:
    synth = sight.estimates.get("synth")
    if synth is not None and synth < sight.limits["synth_min"]:
        edit = _edit_towards(sight, _plan("shorter_edits"))
        if edit is not None:
            return edit
    if sight.has_evidence and (sight.is_ready or sight.is_last_chance):
        return "submit", {}
    if sight.can_pay(TOOL_COSTS["search_literature"]):
        return _assay("search_literature")
    return "defer", {}
