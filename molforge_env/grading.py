"""The fourteen grader scores of an episode.

They depend on the state and never on the reward mode. The final score is the headline: a submission is judged by its
molecule, margin, coordination and evidence; without one, little is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from molforge_env.arithmetic import open01
from molforge_env.assays import known_estimates
from molforge_env.episodes import Episode, post_shift_potency_known
from molforge_env.models import MEASURED
from molforge_env.oracles import constraint_margin, objective, passed_constraints, true_properties
from molforge_env.tables import read_table

_TABLE = read_table("grading")
_PROGRESS = _TABLE["progress"]
_SUBMISSION = _TABLE["submission"]
_UNSUBMITTED = _TABLE["unsubmitted"]
_ENOUGH: float = _TABLE["enough_evidence"]

SCORE_NAMES = (
    "final_score",
    "potency_score",
    "safety_score",
    "synth_score",
    "novelty_score",
    "candidate_score",
    "constraint_score",
    "constraint_margin_score",
    "budget_score",
    "submitted_score",
    "submission_score",
    "progress_score",
    "coordination_score",
    "evidence_score",
)


@dataclass(frozen=True, slots=True)
class _Measures:
    base: float
    margin: float
    passed: float
    evidence: float
    coordination: float
    budget: float
    """Share of the budget that is left, unclamped."""
    lost_to_trap: bool


def grade(episode: Episode) -> dict[str, float]:
    """Grade the current state of an episode, finished or not.

    Returns:
        The fourteen scores by name, in the order of `SCORE_NAMES`.
    """
    scenario = episode.scenario
    properties = true_properties(episode.molecule, trap=episode.trap, shift=episode.shift)
    passed = passed_constraints(scenario, properties)
    measures = _Measures(
        base=objective(scenario, properties),
        margin=constraint_margin(scenario, properties),
        passed=passed.count(True) / 3,
        evidence=_evidence(episode),
        coordination=_coordination(episode),
        budget=episode.remaining_budget / episode.max_budget,
        lost_to_trap=scenario.trap and not episode.restart_used,
    )
    progress = _progress_score(episode, measures)
    submission = _submission_score(episode, measures) if episode.submitted else 0.0
    return {
        "final_score": open01(submission) if episode.submitted else _unsubmitted_score(measures, progress),
        "potency_score": open01(properties.potency),
        "safety_score": open01(1 - properties.toxicity),
        "synth_score": open01(properties.synth),
        "novelty_score": open01(properties.novelty),
        "candidate_score": open01(measures.base),
        "constraint_score": open01(measures.passed),
        "constraint_margin_score": open01(measures.margin),
        "budget_score": open01(measures.budget),
        "submitted_score": 1.0 if episode.submitted else 0.0,
        "submission_score": submission,
        "progress_score": progress,
        "coordination_score": measures.coordination,
        "evidence_score": open01(measures.evidence),
    }


def _evidence(episode: Episode) -> float:
    known = known_estimates(episode.readings, episode.molecule)
    share = len([name for name in MEASURED if name in known]) / 3
    if not episode.shift:
        return share
    return min(share, 1.0 if post_shift_potency_known(episode) else _TABLE["evidence_after_shift"])


def count_reviews(episode: Episode) -> tuple[int, int]:
    """Count the correct messages so far and those that the turns called for."""
    expected = 0
    for turn in episode.history:
        if turn.action.action_type != "defer":
            expected += 1 + len(turn.governance.required_roles)
    correct = 0
    for count in episode.roles.values():
        correct += count.correct
    return correct, expected


def _coordination(episode: Episode) -> float:
    correct, expected = count_reviews(episode)
    return open01(min(correct, expected) / expected if expected else 0.0)


def _progress_score(episode: Episode, measures: _Measures) -> float:
    score = (
        _PROGRESS["objective"] * measures.base
        + _PROGRESS["margin"] * measures.margin
        + _PROGRESS["evidence"] * measures.evidence
        + _PROGRESS["coordination"] * measures.coordination
        + _PROGRESS["budget"] * open01(measures.budget)
    )
    repeats = 0
    for runs in episode.runs.values():
        repeats += max(0, runs - 1)
    vetoes = len([turn for turn in episode.history if turn.governance.status == "policy_veto"])
    score -= min(_PROGRESS["repeat_limit"], _PROGRESS["repeat"] * repeats)
    score -= min(_PROGRESS["veto_limit"], _PROGRESS["veto"] * vetoes)
    if measures.passed < 1:
        score = min(score, _PROGRESS["constraint_cap_start"] + _PROGRESS["constraint_cap_share"] * measures.passed)
    if not episode.submitted and measures.evidence < _ENOUGH:
        score = min(score, _PROGRESS["no_evidence_cap"])
    if measures.lost_to_trap:
        score = min(score, _PROGRESS["trap_cap"])
    if episode.submitted:
        score += _PROGRESS["submitted"]
    return open01(score)


def _submission_score(episode: Episode, measures: _Measures) -> float:
    baseline = episode.scenario.baseline
    score = (
        _SUBMISSION["objective"] * measures.base
        + _SUBMISSION["margin"] * measures.margin
        + _SUBMISSION["coordination"] * measures.coordination
        + _SUBMISSION["evidence"] * measures.evidence
    )
    if measures.evidence >= _ENOUGH and measures.passed == 1 and measures.base >= baseline:
        score += _SUBMISSION["budget"] * max(0.0, measures.budget)
    if measures.evidence < 1:
        score = min(score, _SUBMISSION["evidence_cap_start"] + _SUBMISSION["evidence_cap_share"] * measures.evidence)
    if measures.passed < 1:
        score = min(score, _SUBMISSION["constraint_cap_start"] + _SUBMISSION["constraint_cap_share"] * measures.margin)
    if measures.base < baseline:
        score = min(score, _SUBMISSION["baseline_cap"])
    return open01(score)


def _unsubmitted_score(measures: _Measures, progress: float) -> float:
    score = _UNSUBMITTED["progress"] * progress
    if measures.passed < 1:
        cap = _UNSUBMITTED["constraint_cap_start"] + _UNSUBMITTED["constraint_cap_share"] * measures.passed
        score = min(score, cap)
    if measures.evidence < _ENOUGH:
        score = min(score, _UNSUBMITTED["no_evidence_cap"])
    if measures.lost_to_trap:
        score = min(score, _UNSUBMITTED["trap_cap"])
    return open01(score)
