from __future__ import annotations

import pytest

from molforge_env.grading import SCORE_NAMES, count_reviews, grade


def _prove(episode, play):
    for tool in ("evaluate_properties", "assay_toxicity", "estimate_synthesizability"):
        episode, _ = play(episode, "run_assay", tool_name=tool)
    return episode


def test_there_are_fourteen_scores_in_one_order(opened) -> None:
    assert tuple(grade(opened())) == SCORE_NAMES
    assert len(SCORE_NAMES) == 14


def test_scores_do_not_depend_on_the_reward_mode(opened, play) -> None:
    graded = []
    for mode in ("assay_gated", "curriculum", "dense"):
        episode, _ = play(_prove(opened(start_molecule="0003", reward_mode=mode), play), "submit")
        graded.append(grade(episode))

    assert graded[0] == graded[1] == graded[2]


def test_without_a_message_that_was_called_for_coordination_is_nothing(opened, play) -> None:
    deferred, _ = play(opened(), "defer")

    assert count_reviews(deferred) == (0, 0)
    assert grade(deferred)["coordination_score"] == 0.0001


def test_an_invalid_turn_calls_for_four_messages_unless_it_defers(opened, play) -> None:
    refused, _ = play(opened(), "edit", slot="hinge")
    deferred, _ = play(opened(), "defer", acting_role="toxicologist")

    assert count_reviews(refused) == (0, 4)
    assert count_reviews(deferred) == (0, 0)


def test_more_right_messages_than_called_for_are_capped(opened, play) -> None:
    said = {
        "assay_planner": "proposal",
        "toxicologist": "approval",
        "process_chemist": "approval",
        "lead_chemist": "proposal",
    }
    episode, _ = play(opened(), "run_assay", tool_name="dock_target", say=said)

    assert count_reviews(episode) == (4, 3)
    assert grade(episode)["coordination_score"] == 0.9999


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_evidence_is_the_share_of_constraints_that_were_read(opened, play, count) -> None:
    episode = opened()
    for tool in ("evaluate_properties", "assay_toxicity", "estimate_synthesizability")[:count]:
        episode, _ = play(episode, "run_assay", tool_name=tool)

    assert grade(episode)["evidence_score"] == pytest.approx(count / 3, abs=2e-4)


def test_old_potency_halves_the_evidence_after_the_shift(opened, play) -> None:
    episode = _prove(opened("hard", start_molecule="2003", trap=False), play)
    stale, _ = play(episode, "defer")
    fresh, _ = play(stale, "run_assay", tool_name="dock_target")

    assert grade(episode)["evidence_score"] == 0.9999
    assert grade(stale)["evidence_score"] == 0.5
    assert grade(fresh)["evidence_score"] == 0.9999


def test_a_submission_of_stale_evidence_is_capped(opened, play) -> None:
    episode, turn = play(_prove(opened("hard", start_molecule="2003", trap=False), play), "submit")

    assert turn.done
    assert grade(episode)["final_score"] == 0.375


def test_a_submission_that_breaks_a_limit_is_capped_by_its_margin(opened, play) -> None:
    episode, _ = play(_prove(opened(start_molecule="2101"), play), "submit")
    scores = grade(episode)

    assert scores["final_score"] == scores["submission_score"] == 0.45
    assert scores["submitted_score"] == 1.0


def test_a_submission_that_keeps_the_limits_and_the_baseline_uses_its_budget(opened, play) -> None:
    episode, _ = play(_prove(opened(start_molecule="0003"), play), "submit")
    richer = episode._replace(remaining_budget=episode.max_budget)

    assert grade(richer)["final_score"] > grade(episode)["final_score"] > 0.7


def test_without_a_submission_little_is_left(opened, play) -> None:
    nothing, _ = play(opened(max_steps=1), "defer")
    proven = _prove(opened(start_molecule="0003", max_steps=3), play)

    assert grade(nothing)["submission_score"] == 0.0
    assert grade(nothing)["final_score"] == 0.0833
    assert 0.15 < grade(proven)["final_score"] <= 0.35


def test_the_hard_task_without_a_restart_keeps_almost_nothing(opened, play) -> None:
    episode = _prove(opened("hard", start_molecule="2003"), play)

    assert grade(episode)["final_score"] == 0.08
    assert grade(episode)["progress_score"] == 0.3
    assert grade(episode._replace(restart_used=True))["final_score"] > 0.08


def test_repeated_assays_and_vetoes_lower_the_progress(opened, play) -> None:
    episode = _prove(opened(start_molecule="0003"), play)
    again, _ = play(episode, "run_assay", tool_name="evaluate_novelty")
    repeated, _ = play(again, "run_assay", tool_name="evaluate_novelty")
    vetoed, turn = play(again, "edit", slot="solvent_tail", fragment="dimethylamino")

    assert turn.governance.status == "policy_veto"
    assert grade(repeated)["progress_score"] < grade(again)["progress_score"]
    assert grade(vetoed)["progress_score"] < grade(again)["progress_score"]
