from __future__ import annotations

import pytest

from molforge_env.errors import EpisodeOverError
from molforge_env.transitions import step


def _names(turn) -> list[str]:
    return [part.name for part in turn.components]


def test_an_invalid_action_costs_one_and_a_step_and_says_why(opened, play) -> None:
    episode, turn = play(opened(), "edit", slot="hinge", fragment="benzene", say={"toxicologist": "approval"})

    assert turn.reward == -1.0
    assert turn.error_code == "UNKNOWN_FRAGMENT"
    assert turn.governance.status == "needs_revision"
    assert (episode.step, episode.invalid_actions, episode.messages) == (1, 1, ())
    assert episode.state_path == ("[start]", "[invalid]")


def test_the_error_code_is_that_of_the_latest_step(opened, play) -> None:
    episode, _ = play(opened(), "edit", slot="hinge")
    _, turn = play(episode, "defer")

    assert turn.error_code == ""


def test_a_vetoed_action_changes_nothing_but_the_log(opened, play) -> None:
    episode, turn = play(opened(), "submit", say={"toxicologist": "objection"})

    assert turn.governance.status == "policy_veto"
    assert not episode.submitted
    assert episode.molecule.code == "0121"
    assert len(episode.messages) == 1
    assert episode.state_path == ("[start]", "[policy_veto]")


def test_a_veto_that_repeats_stands_once_in_the_path(opened, play) -> None:
    episode, _ = play(opened(), "submit")
    episode, _ = play(episode, "submit")

    assert episode.state_path == ("[start]", "[policy_veto]")


def test_the_step_limit_ends_the_episode_and_costs(opened, play) -> None:
    episode = opened(max_steps=2)
    episode, first = play(episode, "defer")
    episode, last = play(episode, "defer")

    assert not first.done
    assert last.done
    assert _names(last)[-1] == "step_limit"
    assert episode.state_path[-2:] == ("[decision_02]", "[terminated:max_steps]")


def test_an_invalid_last_step_ends_the_episode_too(opened, play) -> None:
    _, turn = play(opened(max_steps=1), "edit", slot="hinge")

    assert turn.done
    assert turn.reward == -1.3


def test_a_spent_budget_ends_the_episode(opened, play) -> None:
    episode, turn = play(opened(max_budget=50), "run_assay", tool_name="evaluate_properties")

    assert turn.done
    assert _names(turn)[-1] == "budget_exhausted"
    assert episode.state_path[-1] == "[terminated:budget]"


def test_a_submission_on_the_last_step_is_no_step_limit(opened, play) -> None:
    episode = opened(start_molecule="0003", max_steps=2)
    episode, _ = play(episode, "run_assay", tool_name="run_md_simulation")
    episode, turn = play(episode, "submit")

    assert episode.submitted
    assert "step_limit" not in _names(turn)
    assert "reasoning_grounding" not in _names(turn)


def test_after_the_end_nothing_moves(opened, action, play) -> None:
    episode, _ = play(opened(max_steps=1), "defer")

    with pytest.raises(EpisodeOverError) as caught:
        step(episode, action("submit"))

    assert "after the end" in caught.value.what
    assert episode.step == 1


def test_a_step_leaves_the_episode_it_started_from_as_it_was(opened, play) -> None:
    before = opened()
    copy = before._replace()
    play(before, "run_assay", tool_name="dock_target")

    assert before == copy


def test_the_target_shifts_at_the_fourth_step_itself(opened, play) -> None:
    episode = opened("hard")
    shifted = []
    for _ in range(5):
        episode, _ = play(episode, "defer")
        shifted.append(episode.shift)

    assert shifted == [False, False, False, True, True]


def test_the_total_is_the_sum_of_the_rewards(opened, play) -> None:
    episode = opened()
    rewards = []
    for kind, fields in (("defer", {}), ("run_assay", {"tool_name": "dock_target"}), ("submit", {})):
        episode, turn = play(episode, kind, **fields)
        rewards.append(turn.reward)

    assert episode.reward_total == pytest.approx(sum(rewards))


def test_reasons_that_weigh_exactly_nothing_leave_no_part(opened, play) -> None:
    effects = {"budget": "neutral", "potency": "unknown"}
    _, turn = play(opened(), "defer", rationale="r", evidence=["unseen", "unheard"], expected_effects=effects)

    assert _names(turn) == ["defer"]


def test_a_residue_of_the_sum_shows_as_a_part_of_zero(opened, play) -> None:
    _, turn = play(opened(), "defer", rationale="r", expected_effects={"budget": "neutral"})

    assert [(part.name, part.value) for part in turn.components] == [("defer", -0.05), ("reasoning_grounding", 0.0)]


def test_curriculum_pays_progress_to_an_episode_without_a_submission(opened, play) -> None:
    strict, plain = play(opened(max_steps=1), "defer")
    _, paid = play(opened(max_steps=1, reward_mode="curriculum"), "defer")

    assert strict.done
    assert "curriculum_terminal_progress" not in _names(plain)
    assert _names(paid)[-1] == "curriculum_terminal_progress"
    assert paid.reward > plain.reward


def test_curriculum_charges_a_candidate_that_was_ready_and_not_submitted(opened, play) -> None:
    episode = opened(start_molecule="0003", max_steps=2, reward_mode="curriculum")
    episode, _ = play(episode, "run_assay", tool_name="run_md_simulation")
    _, turn = play(episode, "defer")

    assert _names(turn)[-2:] == ["curriculum_terminal_progress", "curriculum_missed_nomination"]


def test_a_submission_gets_no_progress_pay(opened, play) -> None:
    episode = opened(start_molecule="0003", reward_mode="curriculum")
    episode, _ = play(episode, "run_assay", tool_name="run_md_simulation")
    _, turn = play(episode, "submit")

    assert turn.done
    assert "curriculum_terminal_progress" not in _names(turn)
