from __future__ import annotations

from typing import Any

import pytest

from molforge_env.suites import SCENARIO_IDS
from molforge_eval.summaries import average_final_score, summarise, summarise_part

EASY, MEDIUM, HARD = SCENARIO_IDS


def test_planned_is_completed_errored_and_excluded(plan: Any, random_evaluation: Any, rescored: Any) -> None:
    broken = rescored(random_evaluation, {("sampled", EASY, 1): None, ("sampled", HARD, 2): None})
    summary = summarise_part(plan.parts[1], broken.episodes[:-1])

    assert (summary.planned, summary.completed, summary.errored, summary.excluded) == (24, 21, 2, 1)
    assert summary.excluded_reasons == {"not played": 1}
    assert summary.planned == summary.completed + summary.errored + summary.excluded


def test_an_episode_that_broke_is_averaged_nowhere(plan: Any, heuristic_evaluation: Any, rescored: Any) -> None:
    whole = summarise_part(plan.parts[1], heuristic_evaluation.episodes)
    broken = rescored(heuristic_evaluation, {("sampled", EASY, 1): None})
    summary = summarise_part(plan.parts[1], broken.episodes)

    assert summary.mean_final_score == whole.mean_final_score
    assert [task.counted for task in summary.tasks] == [7, 8, 8]
    assert [task.planned for task in summary.tasks] == [8, 8, 8]


def test_an_unfinished_episode_counts_as_zero(plan: Any, heuristic_evaluation: Any, rescored: Any) -> None:
    halved = rescored(heuristic_evaluation, {("sampled", EASY, seed): 0.0 for seed in range(4)})
    (easy, _, _) = summarise_part(plan.parts[1], halved.episodes).tasks

    assert easy.mean_final_score == pytest.approx(0.8703 / 2)
    assert easy.counted == 8


def test_tasks_weigh_the_same_in_the_mean_whatever_was_counted(
    plan: Any, random_evaluation: Any, rescored: Any
) -> None:
    scores: dict[Any, float | None] = {("sampled", task, seed): 0.3 for task in SCENARIO_IDS for seed in range(8)}
    scores |= {("sampled", EASY, seed): (0.9 if seed == 0 else None) for seed in range(8)}
    summary = summarise_part(plan.parts[1], rescored(random_evaluation, scores).episodes)

    assert summary.mean_final_score == pytest.approx((0.9 + 0.3 + 0.3) / 3)
    assert summary.distinct_scores == 2


def test_a_task_without_a_counted_episode_leaves_the_mean_unknown_with_a_reason(
    plan: Any, random_evaluation: Any, rescored: Any
) -> None:
    broken = rescored(random_evaluation, {("sampled", MEDIUM, seed): None for seed in range(8)})
    summary = summarise_part(plan.parts[1], broken.episodes)

    assert summary.mean_final_score is None
    assert summary.reason == f"no counted episode of {MEDIUM}"
    assert summary.tasks[1].mean_submission_score is None


def test_nothing_played_is_nothing_counted(plan: Any) -> None:
    summary = summarise_part(plan.parts[0], ())

    assert (summary.completed, summary.excluded, summary.mean_final_score, summary.distinct_scores) == (0, 3, None, 0)


def test_the_public_average_is_that_of_the_greedy_part(plan: Any, heuristic_evaluation: Any) -> None:
    summaries = summarise(plan, heuristic_evaluation.episodes)

    assert average_final_score(summaries) == pytest.approx(0.8773)
    assert average_final_score(summaries[1:]) is None
