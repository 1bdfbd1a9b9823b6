from __future__ import annotations

import dataclasses

from training_episodes import with_episodes

from molforge_eval.report.assembly import assemble_evidence


def test_a_reward_that_rises_while_the_score_falls_is_flagged(check, plan, random_evaluation) -> None:
    checked = check(random_evaluation, random_evaluation, plan)
    rewards = [0.11 + 0.02 * step + 0.001 * (step % 3) for step in range(20)]
    scores = [0.3 - 0.01 * step + 0.001 * (step % 2) for step in range(20)]
    evidence = assemble_evidence(with_episodes(checked, rewards, scores))

    assert evidence.sentinel.flagged
    assert (evidence.sentinel.reward, evidence.sentinel.score) == ("rose", "fell")
    assert {claim.key: claim.standing for claim in evidence.claims}["reward_tracks_score"] == "contradicted"
    assert evidence.number("sentinel.correlation").value < -0.9


def test_a_reward_and_a_score_that_rise_together_are_not(check, plan, random_evaluation) -> None:
    checked = check(random_evaluation, random_evaluation, plan)
    values = [0.1 + 0.02 * step + 0.001 * (step % 3) for step in range(20)]
    evidence = assemble_evidence(with_episodes(checked, values, values))

    assert not evidence.sentinel.flagged
    assert evidence.number("sentinel.reward_change").value == evidence.number("sentinel.score_change").value


def test_without_episodes_nothing_is_said_about_the_reward(check, plan, random_evaluation) -> None:
    checked = check(random_evaluation, random_evaluation, plan)
    none = checked._replace(run=dataclasses.replace(checked.run, rollouts=checked.run.rollouts.clear()))
    evidence = assemble_evidence(none)

    assert (evidence.sentinel.reward, evidence.sentinel.score) == ("unknown", "unknown")
    assert evidence.number("sentinel.reward_change").value is None
    assert evidence.number("training.episodes").value == 0
