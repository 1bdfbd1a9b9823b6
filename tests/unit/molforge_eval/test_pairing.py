from __future__ import annotations

from typing import Any

import pytest

from molforge_env.suites import SCENARIO_IDS
from molforge_eval.pairing import (
    counted_scores,
    difference_table,
    distinct_scores,
    equal_weight_mean,
    pair_scores,
    played_copies,
    score_table,
    task_scores,
)

EASY, MEDIUM, HARD = SCENARIO_IDS


def test_every_planned_seed_is_paired_when_all_were_counted(
    plan: Any, random_evaluation: Any, heuristic_evaluation: Any
) -> None:
    pairing = pair_scores(random_evaluation, heuristic_evaluation, plan, "sampled")

    assert pairing.paired_seeds == pairing.seeds == tuple(range(8))
    assert difference_table(pairing).shape == (8, 3)
    assert (difference_table(pairing) > 0.5).all()


def test_a_seed_that_broke_in_one_task_is_paired_nowhere(
    plan: Any, random_evaluation: Any, heuristic_evaluation: Any, rescored: Any
) -> None:
    broken = rescored(heuristic_evaluation, {("sampled", MEDIUM, 3): None})
    pairing = pair_scores(random_evaluation, broken, plan, "sampled")

    assert 3 not in pairing.paired_seeds
    assert len(pairing.paired_seeds) == 7
    assert len(pairing.after) == 23


def test_scores_outside_the_plan_are_left_out(plan: Any, heuristic_evaluation: Any) -> None:
    smaller = plan.model_copy(update={"parts": (plan.parts[1].model_copy(update={"seeds": (0, 1)}),)})
    pairing = pair_scores(heuristic_evaluation, None, smaller, "sampled")

    assert len(pairing.before) == 6
    assert pairing.after == {}
    assert pairing.paired_seeds == ()


def test_a_plan_without_the_part_pairs_nothing(plan: Any, heuristic_evaluation: Any) -> None:
    greedy_only = plan.model_copy(update={"parts": plan.parts[:1]})
    pairing = pair_scores(heuristic_evaluation, heuristic_evaluation, greedy_only, "sampled")

    assert pairing.tasks == ()
    assert pairing.paired_seeds == ()


def test_a_missing_evaluation_has_no_scores() -> None:
    assert counted_scores(None, "sampled") == {}


def test_the_table_is_seeds_by_tasks() -> None:
    cells = {("a", 1): 0.1, ("b", 1): 0.2, ("a", 2): 0.3, ("b", 2): 0.4}

    assert score_table(cells, ("a", "b"), (1, 2)).tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert score_table(cells, ("a", "b"), ()).shape == (0, 2)


def test_each_task_weighs_the_same_however_often_it_was_played() -> None:
    cells = {("a", 1): 1.0, ("a", 2): 1.0, ("a", 3): 1.0, ("b", 1): 0.0}

    assert equal_weight_mean(cells, ("a", "b")) == 0.5
    assert task_scores(cells, "a") == (1.0, 1.0, 1.0)
    assert distinct_scores(cells) == 2


@pytest.mark.parametrize("tasks", [(), ("a", "c")])
def test_a_task_without_a_counted_episode_leaves_the_mean_unknown(tasks: tuple[str, ...]) -> None:
    assert equal_weight_mean({("a", 1): 1.0}, tasks) is None


def test_a_deterministic_policy_plays_copies_and_a_random_one_does_not(
    random_evaluation: Any, heuristic_evaluation: Any
) -> None:
    assert played_copies(heuristic_evaluation, "sampled")
    assert not played_copies(random_evaluation, "sampled")


def test_one_episode_a_task_is_no_copy(heuristic_evaluation: Any) -> None:
    assert not played_copies(heuristic_evaluation, "greedy")
    assert not played_copies(None, "sampled")


def test_greedy_decoding_with_several_seeds_makes_copies(heuristic_evaluation: Any) -> None:
    greedy = heuristic_evaluation.plan.parts[0].model_copy(update={"seeds": (0, 1)})
    plan = heuristic_evaluation.plan.model_copy(update={"parts": (greedy,)})

    assert played_copies(heuristic_evaluation.model_copy(update={"plan": plan}), "greedy")


def test_a_sampled_model_is_taken_at_its_word(heuristic_evaluation: Any) -> None:
    # Sampling that comes out alike is luck or certainty, not copying.
    model = heuristic_evaluation.policy.model_copy(update={"kind": "hf"})

    assert not played_copies(heuristic_evaluation.model_copy(update={"policy": model}), "sampled")
