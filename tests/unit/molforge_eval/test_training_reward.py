"""What a training episode is paid."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from molforge_env.errors import UsageError
from molforge_eval.records.manifest import RewardPhase
from molforge_eval.training_reward import (
    AFTER_END_CODE,
    REFUSED_CODE,
    EpisodeConduct,
    conduct_of,
    phase_at,
    training_reward,
)
from molforge_train.config import resolve

WEIGHTS = {
    "final_score": 1.0, "constraint": 0.3, "evidence": 0.3, "candidate": 0.2,
    "invalid_call": 0.01, "vetoed_call": 0.02, "after_end_call": 0.04, "unfinished": 0.1,
}  # fmt: skip
SCORES = {"final_score": 0.5, "constraint_score": 0.4, "evidence_score": 0.2, "candidate_score": 0.1}


def conduct(*, done: bool, invalid: int = 0, vetoed: int = 0, after_end: int = 0) -> EpisodeConduct:
    return EpisodeConduct(done=done, invalid_calls=invalid, vetoed_calls=vetoed, after_end_calls=after_end)


def test_a_finished_episode_is_paid_its_weighted_grader_scores() -> None:
    assert training_reward(conduct(done=True), SCORES, WEIGHTS) == pytest.approx(0.5 + 0.12 + 0.06 + 0.02)


def test_an_unfinished_episode_is_paid_nothing_for_its_progress() -> None:
    assert training_reward(conduct(done=False), SCORES, WEIGHTS) == -0.1


def test_each_costly_call_takes_its_weight_off() -> None:
    paid = training_reward(conduct(done=True, invalid=2, vetoed=1, after_end=3), SCORES, WEIGHTS)

    assert paid == pytest.approx(0.7 - 0.02 - 0.02 - 0.12)


def test_an_absent_weight_weighs_nothing() -> None:
    assert training_reward(conduct(done=True, invalid=5), SCORES, {"final_score": 2.0}) == 1.0


def test_a_weight_of_no_part_is_refused_with_its_name() -> None:
    with pytest.raises(UsageError, match="progress"):
        training_reward(conduct(done=False), None, {"progress": 1.0})


def test_a_finished_episode_without_scores_is_refused() -> None:
    with pytest.raises(UsageError, match="no grader scores"):
        training_reward(conduct(done=True), None, WEIGHTS)


def test_calls_are_counted_once_each_by_what_went_wrong_first() -> None:
    calls = [
        ("ok", "", "executed"),
        ("ok", "", "policy_veto"),
        ("invalid", "NO_STATE_CHANGE", "needs_revision"),
        ("invalid", REFUSED_CODE, None),
        ("invalid", AFTER_END_CODE, None),
    ]

    assert conduct_of(calls, done=True) == conduct(done=True, invalid=2, vetoed=1, after_end=1)


def test_what_the_laboratory_pays_for_steps_is_paid_when_it_has_a_weight() -> None:
    calls = [("ok", "", "executed", 0.3, None), ("invalid", REFUSED_CODE, None), ("ok", "", "policy_veto", -0.35, None)]
    seen = conduct_of(calls, done=False)

    assert seen.step_rewards == pytest.approx(-0.05)
    assert training_reward(seen, None, {"step_rewards": 2.0}) == pytest.approx(-0.1)
    assert training_reward(seen, None, {}) == 0.0


def test_against_farming_an_assay_of_the_same_molecule_gains_nothing_more_and_may_still_cost() -> None:
    dock = ("dock_target", "0000")
    calls = [
        ("ok", "", "executed", 0.3, dock),
        ("ok", "", "executed", 0.2, dock),
        ("ok", "", "executed", -0.1, dock),
        ("ok", "", "executed", 0.25, ("dock_target", "0001")),
        ("ok", "", "executed", 0.25, ("run_md_simulation", "0000")),
    ]

    assert conduct_of(calls, done=False).step_rewards == pytest.approx(0.9)
    assert conduct_of(calls, done=False, anti_farming=True).step_rewards == pytest.approx(0.7)


def test_a_phase_holds_from_its_first_step_to_the_next_one() -> None:
    base = resolve("tiny-cpu", {}, {}, now=datetime(2026, 1, 1, tzinfo=UTC)).configuration
    phases = (
        RewardPhase(from_step=4, reward_mode="curriculum", reward_weights={"step_rewards": 1.0}),
        RewardPhase(from_step=10, reward_mode="dense", reward_weights={}),
    )
    configuration = base.model_copy(update={"reward_phases": phases})

    assert phase_at(base, 79).reward_weights == base.reward_weights
    assert [phase_at(configuration, step).reward_mode for step in (0, 3, 4, 9, 10, 99)] == [
        "assay_gated", "assay_gated", "curriculum", "curriculum", "dense", "dense",
    ]  # fmt: skip
