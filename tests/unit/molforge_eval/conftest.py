"""Evaluations of reference policies, and evaluations with scores of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest

from molforge_eval.canonical import seal_of
from molforge_eval.plan import standard_plan
from molforge_eval.play import run_evaluation
from molforge_eval.records.evaluation import EpisodeRecord, Evaluation, EvaluationPlan
from molforge_eval.scripted_player import ScriptedPlayer
from molforge_eval.summaries import average_final_score, summarise

Rescore = Callable[[Evaluation, Mapping[tuple[str, str, int], float | None]], Evaluation]


def fixed_clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="session")
def plan() -> EvaluationPlan:
    """Three greedy episodes and eight sampled seeds a task."""
    return standard_plan(seeds=8)


@pytest.fixture(scope="session")
def random_evaluation(plan: EvaluationPlan) -> Evaluation:
    return run_evaluation(plan, ScriptedPlayer("random_valid"), "before training", clock=fixed_clock)


@pytest.fixture(scope="session")
def heuristic_evaluation(plan: EvaluationPlan) -> Evaluation:
    return run_evaluation(plan, ScriptedPlayer("heuristic"), "after training", clock=fixed_clock)


@pytest.fixture(scope="session")
def rescored() -> Rescore:
    """Give an evaluation other final scores, by part, task and seed; `None` is for an episode that broke."""

    def rescore(evaluation: Evaluation, scores: Mapping[tuple[str, str, int], float | None]) -> Evaluation:
        episodes = tuple(_with_score(episode, scores) for episode in evaluation.episodes)
        summaries = summarise(evaluation.plan, episodes)
        changes = {
            "episodes": episodes,
            "summaries": summaries,
            "average_final_score": average_final_score(summaries),
        }
        return evaluation.model_copy(update=changes)

    return rescore


def _with_score(episode: EpisodeRecord, scores: Mapping[tuple[str, str, int], float | None]) -> EpisodeRecord:
    key = (episode.part, episode.scenario_id, episode.seed)
    if key not in scores:
        return episode
    score = scores[key]
    ended_by = episode.ended_by if score is not None else "env_error"
    changed = episode.model_copy(update={"final_score": score, "ended_by": ended_by})
    return changed.model_copy(update={"seal": seal_of(changed)})
