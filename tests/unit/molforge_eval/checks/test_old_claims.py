"""Statistics in keys of a stranger's own: what they are recognised as, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from molforge_eval.checks.old_claims import check_claims
from molforge_eval.records.old import OldEpisode

TASKS = (("level_0_easy", "easy"), ("level_1_medium", "medium"), ("level_2_hard", "hard"))
PATH = "eval_after_training.json"


def episodes(*scores: float) -> list[OldEpisode]:
    return [
        OldEpisode(
            scenario_id=TASKS[number % 3][0],
            difficulty=TASKS[number % 3][1],
            final_score=score,
            submission_score=score,
            progress_score=0.5 * score,
        )
        for number, score in enumerate(scores)
    ]


THREE = (0.4, 0.5, 0.9)
SIX = (0.4, 0.5, 0.9, 0.6, 0.7, 0.8)


def found(values: dict[str, Any], *scores: float, mean: float | None = None) -> list[tuple[str, str | None]]:
    return [(item.code, item.where.pointer) for item in check_claims(PATH, values, episodes(*scores), mean=mean)]


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"std_final_score": 0.01}, "/std_final_score"),
        ({"finalScoreStdDev": 0.01}, "/finalScoreStdDev"),
        ({"std": 0.01}, "/std"),
        ({"metrics": {"final_score": {"mean": 0.4, "stdev": 0.01}}}, "/metrics/final_score/stdev"),
    ],
)
def test_c120_one_episode_has_no_spread_however_it_is_spelled(values: dict[str, Any], pointer: str) -> None:
    assert found(values, 0.4) == [("NUMBER_IMPOSSIBLE", pointer)]


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"success_rate": 0.5}, "/success_rate"),
        ({"summary": {"submit_rate": 0.5}}, "/summary/submit_rate"),
        ({"pct_solved": 50.0}, "/pct_solved"),
        ({"stats": [{"n": 3, "rate": 0.5}]}, "/stats/0/rate"),
        ({"success_rate": 1.2}, "/success_rate"),
        ({"success_pct": 120.0}, "/success_pct"),
        ({"std_reward": -0.1}, "/std_reward"),
        ({"min_reward": 0.9, "avg_reward": 0.3}, "/min_reward"),
        ({"ci_low": 0.7, "ci_high": 0.8}, "/ci_low"),
        ({"ci95": [0.1, 0.2]}, "/ci95/1"),
        ({"confidence_interval": {"lower": 0.7, "upper": 0.9}}, "/confidence_interval/lower"),
        ({"reward_ci_upper": 0.1, "reward_ci_lower": 0.4}, "/reward_ci_lower"),
    ],
)
def test_c120_a_number_that_no_three_episodes_can_have_is_named(values: dict[str, Any], pointer: str) -> None:
    assert found(values, *THREE) == [("NUMBER_IMPOSSIBLE", pointer)]


def test_c120_a_minimum_above_the_public_mean_is_impossible() -> None:
    assert found({"min_final_score": 0.7}, *THREE, mean=0.6) == [("NUMBER_IMPOSSIBLE", "/min_final_score")]


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"mean": 0.7}, "/mean"),
        ({"avg_score": 0.7}, "/avg_score"),
        ({"median_final_score": 0.6}, "/median_final_score"),
        ({"std": 0.3}, "/std"),
        ({"sem_final_score": 0.3}, "/sem_final_score"),
        ({"average_progress_score": 0.6}, "/average_progress_score"),
        ({"metrics": {"final_score": 0.7}}, "/metrics/final_score"),
        ({"mean": {"submission_score": 0.7}}, "/mean/submission_score"),
        ({"per_task": {"level_0_easy": 0.55}}, "/per_task/level_0_easy"),
        ({"average_by_difficulty": {"hard": 0.9}}, "/average_by_difficulty/hard"),
        ({"tasks": [{"scenario_id": "level_0_easy", "mean_final_score": 0.9}]}, "/tasks/0/mean_final_score"),
        ({"by_task": {"level_1_medium": {"num_episodes": 4}}}, "/by_task/level_1_medium/num_episodes"),
        ({"n_by_task": {"level_1_medium": 4}}, "/n_by_task/level_1_medium"),
    ],
)
def test_a_statistic_that_the_episodes_do_not_give_is_named(values: dict[str, Any], pointer: str) -> None:
    assert found(values, *SIX) == [("SUMMARY_DIFFERS", pointer)]


@pytest.mark.parametrize(
    "values",
    [
        {"mean": 0.65, "std": 0.1708, "stdev_final_score": 0.1871, "min": 0.4, "max": 0.9, "median": 0.65, "n": 6},
        {"success_rate": 0.5, "submit_rate": 0.8333, "solved_pct": 66.67, "valid_action_rate": 0.97, "n": 6},
        {"mean_reward": 3.2, "std_reward": 1.1, "avg_length": 9.0, "validity": 0.9, "win_rate": 0.43},
        {"max_steps": 12, "max_level": 2, "n_tasks": 3, "max_episodes": 6, "min_p": 0.05, "num_beams": 1},
        {"per_task": {"level_0_easy": 0.5, "level_1_medium": 2, "hard": 0.85}},
        {"reward_by_task": {"level_0_easy": 1.7}, "success_by_task": {"level_0_easy": 0.4}},
        {"baseline": {"final_score": {"mean": 0.1}}, "reward": {"mean": 2.0, "std": 0.4}, "target_final_score": 0.9},
        {"best_episode": {"scenario_id": "level_2_hard", "final_score": 0.9}},
        {"rows": [{"scenario_id": "level_0_easy", "final_score": s} for s in (0.4, 0.6)]},
        {"config": {"n": 8, "mean": 0.1}, "max": {"final_score": 0.9}},
        {"ci95_low": 0.5, "ci95_high": 0.8, "ci_level": 0.95, "delta_ci": [0.1, 0.2]},
        {"improvement_pct": 250.0, "relative_change_rate": -0.4, "learning_rate": 2.0},
        {"mean": "high", "std": None, "success_rate": True},
    ],
)
def test_what_an_honest_file_may_state_is_left_alone(values: dict[str, Any]) -> None:
    assert found(values, *SIX, mean=0.65) == []
